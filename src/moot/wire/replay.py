"""Requests and answers about forks, comparisons and verification."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from moot.wire.json import JsonObject, WireStruct
from moot.wire.request import RequestStruct

Note = Annotated[str, Meta(min_length=1, max_length=500, description="A note on the fork.")]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
MOST_ENTRIES = 256


class RunOptionsOverlay(RequestStruct, frozen=True, kw_only=True):
    """Options of a run, each replacing the source's."""

    configurable: JsonObject = {}
    tags: list[str] | UnsetType = UNSET
    metadata: JsonObject = {}

    @property
    def empty(self) -> bool:
        return not self.configurable and self.tags is UNSET and not self.metadata


class ForkRun(RequestStruct, frozen=True, kw_only=True):
    """A fork by the protocol's route."""

    mode: Annotated[str, Meta(description="replay or branch.", examples=["replay"])]
    from_seq: Annotated[int, Meta(description="The event before which the fork begins.")] | None = (
        None
    )
    run_options_overlay: RunOptionsOverlay | None = None


class TurnEdit(RequestStruct, frozen=True, kw_only=True):
    """The new content of a turn."""

    content: Any


class ForkEdit(RequestStruct, frozen=True, kw_only=True):
    """At most one of ``inputs``, ``turn``, ``decision`` and ``answer``: they replace an event."""

    variables: Annotated[dict[Name, Any], Meta(max_length=MOST_ENTRIES)] = {}
    inputs: JsonObject | UnsetType = UNSET
    turn: TurnEdit | UnsetType = UNSET
    decision: JsonObject | UnsetType = UNSET
    answer: Any = UNSET
    models: Annotated[dict[Name, Name], Meta(max_length=MOST_ENTRIES)] = {}


class ForkRunEdited(RequestStruct, frozen=True, kw_only=True):
    """A fork that changes the event it begins with."""

    from_seq: int
    edit: ForkEdit = ForkEdit()
    note: Note | None = None


class VerifyRunBody(RequestStruct, frozen=True, kw_only=True):
    """An empty body."""


class ForkedRun(WireStruct, frozen=True):
    """A new run that continues or replays another one."""

    run_id: str
    source_run_id: str
    from_seq: int
    mode: str
    status: str
    events_url: str
    note: str | None = None


class EventDiff(WireStruct, frozen=True):
    """One difference between two logs."""

    seq: int
    op: str
    a_event: JsonObject | None = None
    b_event: JsonObject | None = None


class RunDiff(WireStruct, frozen=True):
    """The differences between two runs, by sequence."""

    a: str
    b: str
    diverged_at_seq: int | None
    event_diffs: list[EventDiff]
    state_diff: JsonObject
    truncated: bool = False

    @property
    def same(self) -> bool:
        return self.diverged_at_seq is None


class VerificationDifference(WireStruct, frozen=True):
    """The first event of a log that this host would not have written."""

    sequence: int
    kind: str
    expected: Any
    found: Any


class RunVerification(WireStruct, frozen=True):
    """The result of verifying a log against its workflow."""

    run_id: str
    events: int
    model_calls: int
    identical: bool
    first: VerificationDifference | None = None
