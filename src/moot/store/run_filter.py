"""Which runs a list is of."""

from typing import TYPE_CHECKING

from msgspec import Struct

from moot.core.state.conversation import THREAD

if TYPE_CHECKING:
    from moot.store.protocol import RunRow


class RunFilter(Struct, frozen=True, kw_only=True):
    statuses: tuple[str, ...] = ()
    workflow_id: str | None = None
    agent_id: str | None = None
    parent_run: str | None = None
    fork_of: str | None = None
    member: str | None = None
    prefix: str | None = None
    dead: bool = False
    scope_id: str | None = None
    #: a kind of record: only runs under whose id there is one; or, not ``marked``, is none
    mark: str | None = None
    marked: bool = True
    #: threads only, and those first that were used last
    used: bool = False

    def admits(self, row: "RunRow") -> bool:
        """Whether a run is one of them, but for its mark, which is told elsewhere."""
        return (
            (not self.statuses or row.status in self.statuses)
            and self.workflow_id in (None, row.workflow_id)
            and self.agent_id in (None, row.agent_id)
            and self.parent_run in (None, row.parent_run)
            and self.fork_of in (None, row.fork_of)
            and self.member in (None, row.member)
            and self.scope_id in (None, row.scope_id)
            and (not self.dead or row.dead_after is not None)
            and (not self.used or row.workflow_id == THREAD)
            and (self.prefix is None or row.run_id.startswith(self.prefix))
        )
