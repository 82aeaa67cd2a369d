"""Side threads: linked for everybody to see, and summed up where they were begun when they end."""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moot.core.conversations import turns
from moot.core.errors import BadRequest
from moot.core.errors.threads import TooManyLinks
from moot.core.events import NewEvent
from moot.core.state.conversation import LONGEST_TITLE, Conversation, thread_id
from moot.core.state.run import Run
from moot.core.workflows.graph import Flow

if TYPE_CHECKING:
    from moot.core.threads.decide import Control

LINKED = "moot.thread.linked"
MOST_LINKS = 256
LONGEST_SUMMARY = 2000


class SideEnded(Struct, frozen=True, kw_only=True):
    """A side thread has come to its end; ``summary`` is what came of it."""

    node_id: str
    thread: str
    summary: str
    at: int


class LinkedFrom(Struct, frozen=True, kw_only=True):
    """Another thread has linked this one."""

    node_id: str
    thread: str
    title: str
    at: int


def link(run: Run, flow: Flow, talk: Conversation, given: "Control", sender: str) -> list[NewEvent]:
    """``{"thread": ID, "title": TITLE}``: a thread that is there, as the caller has found."""
    said = given.content["link"]
    said = said if isinstance(said, dict) else {"thread": said}
    name, title = said.get("thread"), said.get("title", "")
    if not isinstance(name, str) or not 1 <= len(name) <= 512 or not isinstance(title, str):
        raise BadRequest("A link names a thread.", field="link.thread")
    if name == thread_id(run, talk):
        raise BadRequest("A thread is not linked to itself.", field="link.thread")
    if name in talk.links:
        return []
    if len(talk.links) >= MOST_LINKS:
        raise TooManyLinks(f"A thread has at most {MOST_LINKS} links.")
    payload = {
        "conversationId": talk.conversation_id,
        "threadId": name,
        "title": title[:LONGEST_TITLE],
        "by": sender,
        "via": given.who.principal,
    }
    linked = NewEvent(LINKED, payload, given.node_id, cause=talk.last_seq)
    linked.begins = given.begins
    return [linked]


def linked_from(run: Run, flow: Flow, given: LinkedFrom) -> list[NewEvent]:
    """A link back is told, once. Who has as many links as a thread can have gets none."""
    talk = run.conversations.get(given.node_id)
    if talk is None or not talk.open or not run.going or given.thread in talk.links:
        return []
    if len(talk.links) >= MOST_LINKS or given.thread == thread_id(run, talk):
        return []
    payload: dict[str, Any] = {
        "conversationId": talk.conversation_id,
        "threadId": given.thread,
        "title": given.title,
        "back": True,
    }
    text = f"This thread is linked from “{given.title}” ({given.thread})."
    return _said_with(payload, talk, text, given)


def ended(run: Run, flow: Flow, given: SideEnded) -> list[NewEvent]:
    """Its summary and a link are told, once."""
    talk = run.conversations.get(given.node_id)
    found = talk.links.get(given.thread) if talk is not None else None
    if talk is None or found is None or not found.open or not talk.open or not run.going:
        return []
    summary = given.summary[:LONGEST_SUMMARY]
    payload: dict[str, Any] = {
        "conversationId": talk.conversation_id,
        "threadId": given.thread,
        "title": found.title,
        "closed": True,
        "summary": summary,
    }
    text = f"The side thread “{found.title}” ({given.thread}) is closed: {summary}"
    return _said_with(payload, talk, text, given)


def _said_with(
    payload: dict[str, Any], talk: Conversation, text: str, given: SideEnded | LinkedFrom
) -> list[NewEvent]:
    """The link, and a turn of the host for whoever reads."""
    turn = turns.system_turn(talk, text, given.at)
    turn["meta"] = {"thread": given.thread, "tags": ["side-thread"]}
    said = {
        "conversationId": talk.conversation_id,
        "turnIndex": turn["turnIndex"],
        "turn": turn,
    }
    return [
        NewEvent(LINKED, payload, given.node_id, cause=talk.last_seq),
        NewEvent("conversation.exchanged", said, given.node_id, cause=talk.turn_seq),
    ]


def summary_of(outcome: Any, last: Any) -> str:
    """What came of a conversation in a line: its decision, its outcome, or its last word."""
    found = outcome.get("text") if isinstance(outcome, dict) else outcome
    for said in (found, last):
        if isinstance(said, str) and said.strip():
            return " ".join(said.split())[:LONGEST_SUMMARY]
    return "without a decision."
