"""The seams of a host under test, and the state that tests program."""

from typing import Any

from moot.agents.invocation.context import Invoke
from moot.api.access.auth import TEST_PREFIX
from moot.api.http.request import Endpoint, Request
from moot.api.runs.create import FORCEABLE_VERSIONS
from moot.api.seams import Seams
from moot.api.services import Services
from moot.conformance.capability_toggle import check_flow
from moot.conformance.fixtures import register_fixtures
from moot.conformance.mock_model import MockPrograms
from moot.conformance.nodes.call_prompt import PROVIDERS
from moot.conformance.nodes.registry import conformance_types
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import NodeType


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
        check_flow(self.overlay, flow)

    def change_claims(self, claims: dict[str, Any]) -> dict[str, Any]:
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


def _apply_overlay(claims: dict[str, Any], overlay: dict[str, bool]) -> dict[str, Any]:
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
