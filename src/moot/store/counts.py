"""Counts of a standing agent's runs, and its open questions to people.

Each look-up reads a limited number of rows.
"""

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from moot.store.protocol import InboxRow, RunIndexRow

DAY_MS = 86_400_000


class Tally(Struct, frozen=True):
    """The number of runs of a workflow by start day (UTC, since the epoch) and status."""

    workflow_id: str
    day: int
    status: str
    count: int


class TallyStore(Protocol):
    """Counts of a standing agent's runs. Child runs are not counted."""

    async def tally(self, tenant: str, member: str, since: int, most: int) -> list[Tally]:
        """Count the agent's runs since ``since``, by workflow, day and status.

        Only its newest ``most`` runs are read.
        """

    async def newest_runs(self, tenant: str, member: str, most: int) -> "list[RunIndexRow]":
        """Return the newest run of each workflow among the agent's newest ``most`` runs."""

    async def asked_by(self, tenant: str, member: str, most: int) -> "list[tuple[int, InboxRow]]":
        """Return the agent's rows among the first ``most`` of the inbox, each with its number."""
