"""Link side threads, and report in the main thread when they end."""

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from moot.core.conversations import turns
from moot.core.errors import BadRequest
from moot.core.errors.threads import TooManyLinks
from moot.core.events import NewEvent
from moot.core.payloads.conversations import ThreadLinked
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.run import Run
from moot.core.text.titles import LONGEST_TITLE
from moot.core.workflows.flow import Flow

if TYPE_CHECKING:
    from moot.core.threads.decide import Control

THREAD_LINKED = ThreadLinked.event_type
MOST_LINKS = 256
LONGEST_SUMMARY = 2000


class SideThreadEnded(Struct, frozen=True, kw_only=True):
    """A linked side thread has ended with this summary."""

    node_id: str
    thread: str
    summary: str
    at: int


class ThreadLinkedFrom(Struct, frozen=True, kw_only=True):
    """Another thread has linked this one."""

    node_id: str
    thread: str
    title: str
    at: int


def link_thread(
    run: Run, flow: Flow, conversation: Conversation, control: "Control", sender: str
) -> list[NewEvent]:
    """Link ``{"thread": ID, "title": TITLE}``. The caller has checked that the thread exists."""
    value = control.content["link"]
    value = value if isinstance(value, dict) else {"thread": value}
    thread, title = value.get("thread"), value.get("title", "")
    if not isinstance(thread, str) or not 1 <= len(thread) <= 512 or not isinstance(title, str):
        raise BadRequest("A link names a thread.", field="link.thread")
    if thread == thread_id(run, conversation):
        raise BadRequest("A thread is not linked to itself.", field="link.thread")
    if thread in conversation.links:
        return []
    if len(conversation.links) >= MOST_LINKS:
        raise TooManyLinks(f"A thread has at most {MOST_LINKS} links.")
    payload = ThreadLinked(
        conversation_id=conversation.conversation_id,
        thread_id=thread,
        title=title[:LONGEST_TITLE],
        by=sender,
        via=control.who.principal,
    )
    linked = NewEvent(payload, control.node_id, cause=conversation.last_seq)
    linked.begins = control.begins
    return [linked]


def record_backlink(run: Run, flow: Flow, command: ThreadLinkedFrom) -> list[NewEvent]:
    """Record the link from another thread once, unless this one has too many links."""
    conversation = run.conversations.get(command.node_id)
    if (
        conversation is None
        or not conversation.open
        or not run.going
        or command.thread in conversation.links
    ):
        return []
    if len(conversation.links) >= MOST_LINKS or command.thread == thread_id(run, conversation):
        return []
    payload = ThreadLinked(
        conversation_id=conversation.conversation_id,
        thread_id=command.thread,
        title=command.title,
        back=True,
    )
    text = f"This thread is linked from “{command.title}” ({command.thread})."
    return _link_events(payload, conversation, text, command)


def record_side_thread_end(run: Run, flow: Flow, command: SideThreadEnded) -> list[NewEvent]:
    """Record the end and the summary of a side thread once."""
    conversation = run.conversations.get(command.node_id)
    thread_link = conversation.links.get(command.thread) if conversation is not None else None
    if (
        conversation is None
        or thread_link is None
        or not thread_link.open
        or not conversation.open
        or not run.going
    ):
        return []
    summary = command.summary[:LONGEST_SUMMARY]
    payload = ThreadLinked(
        conversation_id=conversation.conversation_id,
        thread_id=command.thread,
        title=thread_link.title,
        closed=True,
        summary=summary,
    )
    text = f"The side thread “{thread_link.title}” ({command.thread}) is closed: {summary}"
    return _link_events(payload, conversation, text, command)


def _link_events(
    payload: ThreadLinked,
    conversation: Conversation,
    text: str,
    command: SideThreadEnded | ThreadLinkedFrom,
) -> list[NewEvent]:
    """Return the link event, and a turn of the host about it."""
    turn = turns.system_turn(conversation, text, command.at)
    turn = replace(turn, meta={"thread": command.thread, "tags": ["side-thread"]})
    return [
        NewEvent(payload, command.node_id, cause=conversation.last_seq),
        turns.exchanged_event(conversation, command.node_id, turn),
    ]


def summarise_outcome(outcome: Any, last_turn: Any) -> str:
    """Return one line: the decision, the outcome, or the last turn."""
    decision = outcome.get("text") if isinstance(outcome, dict) else outcome
    for text in (decision, last_turn):
        if isinstance(text, str) and text.strip():
            return " ".join(text.split())[:LONGEST_SUMMARY]
    return "without a decision."
