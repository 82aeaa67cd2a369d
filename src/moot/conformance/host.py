"""The seams of a host under test, and the state that tests program."""

import logging
from collections.abc import Iterable, Mapping

from moot.agents.definitions.manifest import Agent
from moot.agents.invocation.context import Invoke
from moot.api.access.auth import DEFAULT_TENANT, TEST_PREFIX
from moot.api.http.request import Endpoint, Request
from moot.api.runs.create import FORCEABLE_VERSIONS
from moot.api.seams import Seams
from moot.api.services import Services
from moot.config.settings import find_openwop_dir
from moot.conformance.nodes.mock_nodes import PROVIDERS
from moot.conformance.nodes.registry import conformance_types
from moot.conformance.nodes.structured_output import MockPrograms
from moot.core.agents.deployments import NEXT_STATE, DeploymentChange
from moot.core.errors import BadRequest, CapabilityRequired, MootError
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import NodeType

log = logging.getLogger("moot.server")

#: The agent of the fixture about channels.
CHANNEL_AGENT = "core.conformance.channel-agent"
#: Prefixes of fixtures about capabilities that this host lacks.
OTHER_CAPABILITIES = (
    "conformance-agent-pack-", "conformance-envelope-nl-to-format", "conformance-envelope-recovery",
)  # fmt: skip
#: Node type -> claims that must all hold.
REQUIRED_CLAIMS = {
    "core.conversationGate": ("conversationPrimitive",),
    SUPERVISOR: ("agents.orchestrator", "orchestrator.supported"),
    DISPATCH: ("agents.dispatch", "dispatch.supported"),
}

MAPPINGS = ("inputMapping", "outputMapping", "perWorkerInputMappings", "perWorkerOutputMappings")

#: Id, type and config of a node.
NodeRow = tuple[str, str, Mapping[str, object]]


class ConformanceSeams(Seams):
    """The seams of one server under test. Their state lives as long as the server does."""

    under_test = True
    mock_providers = tuple(PROVIDERS)

    def __init__(self, endpoints: tuple[Endpoint, ...]) -> None:
        self.endpoints = endpoints
        #: Published fixtures that run here.
        self.fixtures: list[str] = []
        #: Capabilities that a test has switched.
        self.overlay: dict[str, bool] = {}
        #: (tenant, a test's name for a council) -> its run
        self.councils: dict[tuple[str, str], str] = {}
        #: Programmed answers of the mock model.
        self.programs = MockPrograms()

    def reset(self) -> None:
        """Forget everything that tests have switched, opened and programmed."""
        self.overlay.clear()
        self.councils.clear()
        self.programs.clear()

    def node_types(self, invoke: Invoke) -> tuple[NodeType, ...]:
        return conformance_types(self.programs, invoke)

    def has_capabilities(self, *names: str) -> bool:
        return False not in (self.overlay.get(name) for name in names)

    def check_flow(self, flow: Flow) -> None:
        if self.overlay:
            nodes = flow.nodes.values()
            rows = ((each.id, each.type.type_id, each.definition.config) for each in nodes)
            check_nodes(self.overlay, rows)

    def change_claims(self, claims: dict[str, object]) -> dict[str, object]:
        low, high = FORCEABLE_VERSIONS
        test_claims = {
            "fixtures": self.fixtures,
            "conformance": {"mockAgent": True},
            "testing": {
                "mockProviders": list(self.mock_providers),
                "testKeyPrefix": TEST_PREFIX,
                "forceEngineVersionRange": {"min": low, "max": high},
            },
        }
        return _apply_overlay(claims | test_claims, self.overlay)

    async def prepare(self, services: Services) -> None:
        self.fixtures = await register_fixtures(services)


def seams_of(request: Request) -> ConformanceSeams:
    seams = request.services.seams
    assert isinstance(seams, ConformanceSeams)
    return seams


def _apply_overlay(claims: dict[str, object], overlay: Mapping[str, bool]) -> dict[str, object]:
    """Apply the claims that a test has switched, by dotted name."""
    for name, value in overlay.items():
        place = claims
        *path, last = name.split(".")
        for word in path:
            step = place.setdefault(word, {})
            place = step if isinstance(step, dict) else {}
        if not isinstance(place.get(last), dict):
            place[last] = value
        elif not value:  # a host without the capability leaves it out
            del place[last]
    return claims


def check_nodes(overlay: dict[str, bool], nodes: Iterable[NodeRow]) -> None:
    """Raise CapabilityRequired or BadRequest for a node that needs a capability which is off."""
    off = {name for name, value in overlay.items() if value is False}
    for name, type_id, config in nodes if off else ():
        for claim in REQUIRED_CLAIMS.get(type_id, ()):
            if claim in off:
                raise CapabilityRequired(
                    f"Node '{name}' needs {claim}, which is switched off.",
                    requiredCapability=claim,
                    offendingTypeId=type_id,
                    nodeId=name,
                )
        for claim, field, required in _used_claims(type_id, config):
            if claim in off:
                message = f"Node '{name}' uses {field}, which is switched off."
                raise BadRequest(message, requiredCapability=required, nodeId=name)


def _used_claims(type_id: str, config: Mapping[str, object]) -> Iterable[tuple[str, str, str]]:
    """Yield (claim, config field that needs it, name in the refusal)."""
    if type_id == "core.subWorkflow" and config.get("inputMapping"):
        yield "subWorkflow.inputMapping", "inputMapping", "subWorkflow.inputMapping"
    if type_id != DISPATCH:
        return
    for name in MAPPINGS:
        if config.get(name):
            yield "agents.dispatchMapping", name, "agents.dispatchMapping"
    if config.get("askUserRouting") == "conversation":
        yield "conversationPrimitive", "askUserRouting conversation", "conversationPrimitive"
    if config.get("fanOutPolicy") == "parallel":
        yield "dispatch.fanOutSupported", "fanOutPolicy parallel", "dispatch.fanOut"


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
