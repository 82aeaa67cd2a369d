"""The published fixture workflows, registered on a host under trial: those that really run here."""

import logging

from moot.api.access.auth import DEFAULT_TENANT
from moot.api.services import Services
from moot.config.settings import openwop_dir
from moot.conformance.seams.agents import CHANNEL_AGENT, stand_in
from moot.core.agents.deployments import PROMOTED, Change
from moot.core.errors import MootError

log = logging.getLogger("moot.server")

#: their nodes exist here, but they are about capabilities this host does not have
OTHER_CAPABILITIES = (
    "conformance-agent-pack-",
    "conformance-envelope-nl-to-format",
    "conformance-envelope-recovery",
)


async def seed(services: Services) -> list[str]:
    """Ids of the fixtures that were registered. One with unknown nodes is left out, not fatal."""
    folder = openwop_dir(services.settings)
    if folder is None:
        log.warning("No published fixtures found; set MOOT_OPENWOP_DIR to list any.")
        return []
    await _serve(services)
    found = []
    for file in sorted((folder / "fixtures").glob("*.json")):
        if file.stem.startswith(OTHER_CAPABILITIES):
            continue
        try:
            flow = await services.host.flows.register(
                DEFAULT_TENANT, file.read_bytes(), source="fixture"
            )
        except MootError as refusal:
            log.info("Fixture %s is left out: %s", file.stem, refusal.message)
        else:
            found.append(flow.definition.id)
    return await _whole(services, found)


async def _whole(services: Services, names: list[str]) -> list[str]:
    """A fixture whose child is not here cannot run either."""
    whole = []
    for name in names:
        try:
            await services.host.flows.newest(DEFAULT_TENANT, name)
        except MootError:
            continue
        whole.append(name)
    return whole


async def _serve(services: Services) -> None:
    """The fixture of channels names an agent that serves one."""
    agent = stand_in(CHANNEL_AGENT)
    await services.agents.put(DEFAULT_TENANT, agent, by="fixture")
    found = await services.deployments.of(DEFAULT_TENANT, agent)
    while found.of(agent.version).state in PROMOTED:
        change = Change(version=agent.version, transition="promote")
        found, _ = await services.deployments.change(DEFAULT_TENANT, agent, change, "fixture")
