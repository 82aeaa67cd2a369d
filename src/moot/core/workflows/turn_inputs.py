"""What a supervisor knows when its turn comes: a function of the log alone, the same on replay.

A turn is described by places in the log; what stands there is data for the supervisor, never an
instruction to it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from moot.core.events import Event

if TYPE_CHECKING:
    from moot.core.state.run import Run

#: events of the log that a turn looks back on
WINDOW = 200
#: characters of one event that are shown
LONGEST = 4000

_encode = msgspec.json.Encoder(order="sorted").encode

#: no text can end a fence that it cannot spell
_SPELLED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


class Turn(Struct, frozen=True, kw_only=True):
    """The turn that a supervisor is in."""

    #: counted from 1; a decision that a person took back is taken again in the same turn
    iteration: int
    #: decisions it has taken itself so far
    own: int
    #: what it looks back on: from the first event up to, and not including, the second
    first: int
    until: int
    #: what was remembered before this event is what the turn may know
    memory_boundary: int
    #: how the workers of its last decision ended: {workerId, childRunId, status, error?}
    workers: list[dict[str, Any]] = []
    #: what a person said to its last decision, if anything was asked
    answer: list[Any] = []


class Entry(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One event of the transcript. ``content`` is fenced: whatever it says, it is data."""

    sequence: int
    type: str
    content: str
    node_id: str | UnsetType = UNSET


class TurnInputs(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Everything a turn is decided from, besides the variables of the run."""

    iteration: int
    memory_boundary: int
    transcript: list[Entry]
    workers: list[dict[str, Any]]
    answer: Any = UNSET


def next_iteration(run: "Run") -> int:
    """The turn that the next decision belongs to."""
    known = run.orchestrator
    if known is None:
        return 1
    return known.iteration + 1 if known.decision else known.iteration


def turn_of(run: "Run", node_id: str) -> Turn:
    """The turn that the supervisor at this node is in. A held decision is held within its turn, so
    that whoever ratifies it changes nothing of what the turn knows."""
    known = run.orchestrator
    state = run.nodes.get(node_id)
    until = state.started_seq if state is not None else run.next_sequence
    iteration = next_iteration(run)
    again = known is not None and known.iteration == iteration
    return Turn(
        iteration=iteration,
        own=known.own if known is not None else 0,
        first=max(0, until - WINDOW),
        until=until,
        memory_boundary=known.began if known is not None and again else until,
        workers=known.workers if known is not None else [],
        answer=known.answer if known is not None else [],
    )


def inputs(turn: Turn, events: Iterable[Event]) -> TurnInputs:
    """The turn with what it looks back on; events of other places are left out."""
    return TurnInputs(
        iteration=turn.iteration,
        memory_boundary=turn.memory_boundary,
        transcript=[_entry(each) for each in events if turn.first <= each.sequence < turn.until],
        workers=turn.workers,
        answer=turn.answer[0] if turn.answer else UNSET,
    )


def _entry(event: Event) -> Entry:
    return Entry(event.sequence, event.type, fenced(event.payload), event.node_id)


def fenced(value: Any) -> str:
    """A value as data for somebody who reads text: marked, and unable to end the mark."""
    text = _encode(value).decode().translate(_SPELLED)
    return f"<data>{text if len(text) <= LONGEST else text[:LONGEST] + '…'}</data>"
