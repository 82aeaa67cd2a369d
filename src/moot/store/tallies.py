"""What standing agents have done, counted; and what of their work waits for a person.

Each look-up reads so many rows at most.
"""

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from moot.store.protocol import InboxRow, RunRow

DAY_MS = 86_400_000


class Tally(Struct, frozen=True):
    """How many runs of a workflow were begun on a day (UTC, since the epoch) and are so now."""

    workflow_id: str
    day: int
    status: str
    count: int


class TallyStore(Protocol):
    """Runs that another run has begun count with that one."""

    async def tally(self, tenant: str, member: str, since: int, most: int) -> list[Tally]:
        """Of a standing agent's newest runs, ``most`` of them, those since then; by workflow, day
        and status."""

    async def newest_runs(self, tenant: str, member: str, most: int) -> "list[RunRow]":
        """The newest of each workflow among its newest runs, ``most`` of them; by workflow."""

    async def asked_by(self, tenant: str, member: str, most: int) -> "list[tuple[int, InboxRow]]":
        """What its runs ask people, with its number among the first ``most`` of the inbox."""
