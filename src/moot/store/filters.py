"""Which runs a list is of."""

from msgspec import Struct


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
