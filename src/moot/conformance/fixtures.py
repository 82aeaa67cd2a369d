"""Register the published fixture workflows that can run on this host."""

import logging

from moot.agents.definitions.manifest import Agent
from moot.api.access.auth import DEFAULT_TENANT
from moot.api.services import Services
from moot.config.settings import find_openwop_dir
from moot.core.agents.deployments import NEXT_STATE, DeploymentChange
from moot.core.errors import MootError

log = logging.getLogger("moot.server")

#: The agent of the fixture about channels.
CHANNEL_AGENT = "core.conformance.channel-agent"
#: Prefixes of fixtures about capabilities that this host lacks.
OTHER_CAPABILITIES = (
    "conformance-agent-pack-",
    "conformance-envelope-nl-to-format",
    "conformance-envelope-recovery",
)


async def register_fixtures(services: Services) -> list[str]:
    """Return the ids of the registered fixtures. A fixture with unknown nodes is left out."""
    folder = find_openwop_dir(services.settings)
    if folder is None:
        log.warning("No published fixtures found; set MOOT_OPENWOP_DIR to list any.")
        return []
    await _serve_channel_agent(services)
    names = []
    for file in sorted((folder / "fixtures").glob("*.json")):
        if file.stem.startswith(OTHER_CAPABILITIES):
            continue
        try:
            body = file.read_bytes()
            flow = await services.host.flows.register(DEFAULT_TENANT, body, source="fixture")
        except MootError as refusal:
            log.info("Fixture %s is left out: %s", file.stem, refusal.message)
        else:
            names.append(flow.definition.id)
    return await _with_children(services, names)


async def _with_children(services: Services, names: list[str]) -> list[str]:
    """Return the fixtures whose child workflows are here, too."""
    whole = []
    for name in names:
        try:
            await services.host.flows.newest(DEFAULT_TENANT, name)
        except MootError:
            continue
        whole.append(name)
    return whole


async def _serve_channel_agent(services: Services) -> None:
    agent = stand_in_agent(CHANNEL_AGENT)
    await services.agents.put(DEFAULT_TENANT, agent, by="fixture")
    deployment = await services.deployments.of(DEFAULT_TENANT, agent)
    while deployment.of(agent.version).state in NEXT_STATE:
        change = DeploymentChange(version=agent.version, transition="promote")
        deployment, _ = await services.deployments.change(DEFAULT_TENANT, agent, change, "fixture")


def stand_in_agent(agent_id: str) -> Agent:
    """Return an agent for an id that a suite names."""
    name = agent_id.removeprefix("host:").rpartition(".")[2]
    manifest = None if agent_id.startswith("host:") else agent_id
    return Agent(name=name, prompt="You stand in for an agent of a test.", manifest=manifest)
