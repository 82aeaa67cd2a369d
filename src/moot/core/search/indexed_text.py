"""What of a log is found by its words: titles, turns, decisions, what runs were given and gave.

Pure, and made from the event as it stands in the log: what is masked there is masked here.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import msgspec
from msgspec import UNSET, Struct

from moot.core.conversations import decisions
from moot.core.events import Event, decode
from moot.core.state.conversation import THREAD
from moot.core.text.names import is_person

Kind = Literal["thread", "turn", "decision", "run"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: how the ids of threads begin
THREAD_PREFIX = "th_"

#: characters of what a run was given or gave; of a turn all count
LONGEST = 20_000


class Text(Struct, frozen=True, kw_only=True):
    """One text that can be found, and who said it."""

    kind: Kind
    text: str
    by: str = ""
    #: the conversation within its run: node and attempt, with a tilde between
    talk: str = ""
    to: str | None = None
    turn: int | None = None


def texts(event: Event) -> list[Text]:
    """In the same order whenever it is asked. Total: an odd payload has nothing to be found."""
    found = FOUND.get(event.type)
    if found is None:
        return []
    try:
        return [text for text in found(event) if text.text.strip()]
    except (AttributeError, KeyError, TypeError, ValueError):
        return []


def texts_of(body: bytes) -> list[Text]:
    """The same of an event as it is stored."""
    try:
        return texts(decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def _started(event: Event) -> Iterator[Text]:
    said = event.payload
    by, inputs = str(said.get("person", "user")), said.get("inputs", {})
    if said.get("workflowId") == THREAD:
        # what a program asks that takes no part itself is put by the host: see _opened
        asked = "" if is_person(by) else inputs.get("question", "")
        yield Text(kind="thread", text=_words([inputs.get("title", ""), asked]).strip(), by=by)
        return
    about = [said.get("workflowId", ""), said.get("tags", []), inputs]
    yield Text(kind="run", text=_words(about, LONGEST), by=by)


def _renamed(event: Event) -> Iterator[Text]:
    said = event.payload
    by = str(said.get("by") or said.get("from") or "")
    yield Text(kind="thread", text=_words(said.get("title", "")), by=by, talk=_talk(event))


def _ended(event: Event) -> Iterator[Text]:
    """What came of it. A conversation's outcome is found where it was closed."""
    said = event.payload
    error = said.get("error") or {}
    about = [said.get("outputs"), error.get("message")]
    yield Text(kind="run", text=_words(about, LONGEST))


def _opened(event: Event) -> Iterator[Text]:
    """A thread that the host opens begins with its title, which is found as such."""
    turn = event.payload.get("initialTurn", {})
    if turn.get("role") != "system" or not event.run_id.startswith(THREAD_PREFIX):
        yield from _turn(event, turn)


def _exchanged(event: Event) -> Iterator[Text]:
    yield from _turn(event, event.payload.get("turn"))


def _closed(event: Event) -> Iterator[Text]:
    said = event.payload
    final = said.get("finalTurn", {})
    decided = decisions.read(said.get("outcome"))
    if decided is not None:
        by = str(final.get("from", ""))
        yield Text(kind="decision", text=_words(_minuted(decided)), by=by, talk=_talk(event))
    if final.get("role") != "system":
        yield from _turn(event, final)


def _minuted(decided: decisions.Decision) -> list[Any]:
    """The words of a decision, of who was against it, and of what is to be done."""
    return [
        decided.text,
        *([vote.by, vote.vote, vote.reason] for vote in decided.votes),
        *([each.by, each.text] for each in decided.dissent),
        *([action.text, action.owner] for action in decided.action_items),
    ]


def _turn(event: Event, said: Any) -> Iterator[Text]:
    index, to = said.get("turnIndex"), said.get("to")
    yield Text(
        kind="turn",
        text=_words(said.get("content")),
        by=str(said.get("from", "")),
        talk=_talk(event),
        to=None if to is None else str(to),
        turn=index if isinstance(index, int) else None,
    )


def _talk(event: Event) -> str:
    node = event.node_id if event.node_id is not UNSET else ""
    return f"{node}~{str(event.payload.get('conversationId', '')).rpartition(':')[2]}"


def _words(value: Any, most: int | None = None) -> str:
    """A text as it is; of anything else the texts and numbers in it, a line each."""
    if isinstance(value, str):
        return value if most is None else value[:most]
    lines, waiting = [], [value]
    left = most
    while waiting and left != 0:
        found = waiting.pop()
        if isinstance(found, dict):
            waiting += [] if "conversationId" in found else reversed(found.values())
        elif isinstance(found, list):
            waiting += reversed(found)
        elif isinstance(found, str | int | float) and not isinstance(found, bool):
            line = str(found) if left is None else str(found)[:left]
            left = None if left is None else left - len(line)
            lines.append(line)
    return "\n".join(lines)


#: event type -> what of it can be found
FOUND: dict[str, Callable[[Event], Iterator[Text]]] = {
    "run.started": _started,
    "run.completed": _ended,
    "run.failed": _ended,
    "conversation.opened": _opened,
    "conversation.exchanged": _exchanged,
    "conversation.closed": _closed,
    "moot.thread.renamed": _renamed,
}
