"""Extract the searchable texts of an event.

Pure. Texts come from the event as recorded, so masked values stay masked.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import msgspec
from msgspec import UNSET, Struct

from moot.core.conversations import closing_decision
from moot.core.events import Event, decode
from moot.core.payloads.base import Payload
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
    ThreadRenamed,
    Turn,
)
from moot.core.payloads.runs import RunCompleted, RunFailed, RunStarted
from moot.core.state.conversation import THREAD
from moot.core.text.names import is_person

TextKind = Literal["thread", "turn", "decision", "run"]
KINDS: tuple[TextKind, ...] = get_args(TextKind)

#: how the ids of threads begin
THREAD_PREFIX = "th_"

#: indexed characters of a run's inputs or outputs; turns are indexed in full
MAX_RUN_TEXT = 20_000


class IndexedText(Struct, frozen=True, kw_only=True):
    """One searchable text and its author."""

    kind: TextKind
    text: str
    by: str = ""
    #: the conversation within its run: NODE~ATTEMPT
    talk: str = ""
    to: str | None = None
    turn: int | None = None


def indexed_texts(event: Event) -> list[IndexedText]:
    """Return the texts in a fixed order. An unexpected payload has none; never raise."""
    payload = event.payload
    extract = EXTRACTORS.get(type(payload)) if isinstance(payload, Payload) else None
    if extract is None:
        return []
    try:
        return [text for text in extract(event) if text.text.strip()]
    except (AttributeError, KeyError, TypeError, ValueError):
        return []


def texts_from_bytes(body: bytes) -> list[IndexedText]:
    """Return the texts of a stored event."""
    try:
        return indexed_texts(decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def _on_run_started(event: Event) -> Iterator[IndexedText]:
    payload = event.payload
    assert isinstance(payload, RunStarted)
    by, inputs = payload.person or "user", payload.inputs
    if payload.workflow_id == THREAD:
        # a question by a program that takes no part is asked by the host: see _on_opened
        question = "" if is_person(by) else inputs.get("question", "")
        yield IndexedText(
            kind="thread", text=_join_texts([inputs.get("title", ""), question]).strip(), by=by
        )
        return
    values = [payload.workflow_id, payload.tags or [], inputs]
    yield IndexedText(kind="run", text=_join_texts(values, MAX_RUN_TEXT), by=by)


def _on_renamed(event: Event) -> Iterator[IndexedText]:
    payload = event.payload
    assert isinstance(payload, ThreadRenamed)
    yield IndexedText(
        kind="thread",
        text=_join_texts(payload.title),
        by=payload.by or "",
        talk=_conversation(event),
    )


def _on_run_ended(event: Event) -> Iterator[IndexedText]:
    """Index the outputs or the error. A conversation's outcome is indexed where it closed."""
    payload = event.payload
    outputs = payload.outputs if isinstance(payload, RunCompleted) else None
    message = payload.error.message if isinstance(payload, RunFailed) else None
    values = [outputs, message]
    yield IndexedText(kind="run", text=_join_texts(values, MAX_RUN_TEXT))


def _on_opened(event: Event) -> Iterator[IndexedText]:
    """Skip the title with which the host opens a thread; it is indexed as a title."""
    assert isinstance(event.payload, ConversationOpened)
    turn = event.payload.initial_turn
    if turn.role != "system" or not event.run_id.startswith(THREAD_PREFIX):
        yield from _turn(event, turn)


def _on_exchanged(event: Event) -> Iterator[IndexedText]:
    assert isinstance(event.payload, ConversationExchanged)
    yield from _turn(event, event.payload.turn)


def _on_closed(event: Event) -> Iterator[IndexedText]:
    payload = event.payload
    assert isinstance(payload, ConversationEnded)
    final = payload.final_turn
    decision = closing_decision.read_decision(payload.outcome)
    if decision is not None:
        yield IndexedText(
            kind="decision",
            text=_join_texts(_decision_join_texts(decision)),
            by=final.from_,
            talk=_conversation(event),
        )
    if final.role != "system":
        yield from _turn(event, final)


def _decision_join_texts(decision: closing_decision.CouncilDecision) -> list[Any]:
    """Return the words of a decision: its text, votes, dissent and action items."""
    return [
        decision.text,
        *([vote.by, vote.vote, vote.reason] for vote in decision.votes),
        *([each.by, each.text] for each in decision.dissent),
        *([action.text, action.owner] for action in decision.action_items),
    ]


def _turn(event: Event, turn: Turn) -> Iterator[IndexedText]:
    yield IndexedText(
        kind="turn",
        text=_join_texts(turn.body),
        by=turn.from_,
        talk=_conversation(event),
        to=turn.to,
        turn=turn.turn_index,
    )


def _conversation(event: Event) -> str:
    node = event.node_id if event.node_id is not UNSET else ""
    conversation_id = getattr(event.payload, "conversation_id", "")
    return f"{node}~{conversation_id.rpartition(':')[2]}"


def _join_texts(value: Any, limit: int | None = None) -> str:
    """Return a text as it is; from other values their texts and numbers, one per line."""
    if isinstance(value, str):
        return value if limit is None else value[:limit]
    lines, waiting = [], [value]
    left = limit
    while waiting and left != 0:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [] if "conversationId" in item else reversed(item.values())
        elif isinstance(item, list):
            waiting += reversed(item)
        elif isinstance(item, str | int | float) and not isinstance(item, bool):
            line = str(item) if left is None else str(item)[:left]
            left = None if left is None else left - len(line)
            lines.append(line)
    return "\n".join(lines)


#: event type -> the function that extracts its texts
EXTRACTORS: dict[type[Payload], Callable[[Event], Iterator[IndexedText]]] = {
    RunStarted: _on_run_started,
    RunCompleted: _on_run_ended,
    RunFailed: _on_run_ended,
    ConversationOpened: _on_opened,
    ConversationExchanged: _on_exchanged,
    ConversationEnded: _on_closed,
    ThreadRenamed: _on_renamed,
}
#: types of the events that have texts
TYPES_WITH_TEXT = frozenset(payload.event_type for payload in EXTRACTORS)
