"""Collect what a supervisor knows in its turn. It follows from the log alone.

A turn names positions in the log. The content at these positions is data for the supervisor, never
an instruction to it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from moot.core.events import Event, payload_fields

if TYPE_CHECKING:
    from moot.core.state.run import Run

#: how many past events a turn includes
WINDOW = 200
#: characters of one event that are included
MAX_CONTENT = 4000

_encode = msgspec.json.Encoder(order="sorted").encode

#: a fenced text cannot contain the characters that would end the fence
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


class SupervisorTurn(Struct, frozen=True, kw_only=True):
    """The turn that a supervisor is in."""

    #: counted from 1; a rejected decision is taken again in the same turn
    iteration: int
    #: decisions that the supervisor has taken so far
    own: int
    #: the included events: from ``first`` up to, but not including, ``until``
    first: int
    until: int
    #: the turn may know memory from before this event
    memory_boundary: int
    #: the ended workers of its last decision: {workerId, childRunId, status, error?}
    workers: list[dict[str, Any]] = []
    #: a person's answer to its last decision, if there was a question
    answer: list[Any] = []


class TranscriptEntry(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One event of the transcript. ``content`` is fenced, so that it is read as data."""

    sequence: int
    type: str
    content: str
    node_id: str | UnsetType = UNSET


class TurnInputs(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Everything that a decision is based on, besides the variables of the run."""

    iteration: int
    memory_boundary: int
    transcript: list[TranscriptEntry]
    workers: list[dict[str, Any]]
    answer: Any = UNSET


def next_iteration(run: "Run") -> int:
    """Return the number of the turn that the next decision belongs to."""
    orchestrator = run.orchestrator
    if orchestrator is None:
        return 1
    return orchestrator.iteration + 1 if orchestrator.decision else orchestrator.iteration


def supervisor_turn(run: "Run", node_id: str) -> SupervisorTurn:
    """Return the turn that the supervisor at this node is in.

    A held decision stays within its turn, so that an approval does not change what the turn knows.
    """
    orchestrator = run.orchestrator
    state = run.nodes.get(node_id)
    until = state.started_seq if state is not None else run.next_sequence
    first = max(0, until - WINDOW)
    turn = SupervisorTurn(
        iteration=next_iteration(run), own=0, first=first, until=until, memory_boundary=until
    )
    if orchestrator is None:
        return turn
    repeated = orchestrator.iteration == turn.iteration
    return replace(
        turn,
        own=orchestrator.own,
        memory_boundary=orchestrator.began if repeated else until,
        workers=orchestrator.workers,
        answer=orchestrator.answer,
    )


def build_turn_inputs(turn: SupervisorTurn, events: Iterable[Event]) -> TurnInputs:
    """Return the turn's inputs with the events that it includes."""
    return TurnInputs(
        iteration=turn.iteration,
        memory_boundary=turn.memory_boundary,
        transcript=[_entry(event) for event in events if turn.first <= event.sequence < turn.until],
        workers=turn.workers,
        answer=turn.answer[0] if turn.answer else UNSET,
    )


def _entry(event: Event) -> TranscriptEntry:
    content = fence_data(payload_fields(event))
    return TranscriptEntry(event.sequence, event.type, content, event.node_id)


def fence_data(value: Any) -> str:
    """Return a value as marked data that cannot end its mark."""
    text = _encode(value).decode().translate(_ESCAPES)
    return f"<data>{text if len(text) <= MAX_CONTENT else text[:MAX_CONTENT] + '…'}</data>"
