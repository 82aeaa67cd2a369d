"""The seams of a server, where a host under test differs from a normal one."""

from typing import TYPE_CHECKING

from moot.agents.invocation.context import Invoke
from moot.api.http.request import Endpoint
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import NodeType

if TYPE_CHECKING:
    from moot.api.services import Services


class Seams:
    """The seams of a normal host: it adds nothing and refuses nothing more.

    A host under test overrides them.
    """

    #: Whether a test key may name a mock provider or an engine version.
    under_test: bool = False
    #: Routes beside the host's own.
    endpoints: tuple[Endpoint, ...] = ()
    #: Ids of the mock providers that a run may name.
    mock_providers: tuple[str, ...] = ()

    def node_types(self, invoke: Invoke) -> tuple[NodeType, ...]:
        """Return node types that are added to the host's own or replace them."""
        return ()

    def has_capabilities(self, *names: str) -> bool:
        """Return whether no test has switched one of these capabilities off."""
        return True

    def check_flow(self, flow: Flow) -> None:
        """Raise for a workflow that needs a capability which a test has switched off."""

    def change_claims(self, claims: dict[str, object]) -> dict[str, object]:
        """Return the claims of the discovery document with those that tests add or switch."""
        return claims

    async def prepare(self, services: "Services") -> None:
        """Register what tests need, before the host's own folders are read."""
