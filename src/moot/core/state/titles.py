"""Titles of conversations and threads, and opening turns that are only a title."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moot.core.events import Event
from moot.core.payloads.base import Payload
from moot.core.payloads.conversations import ThreadRenamed
from moot.core.state.conversation import THREAD, Conversation
from moot.core.state.node import node_id_of
from moot.core.text.titles import LONGEST_TITLE

if TYPE_CHECKING:
    from moot.core.state.run import Run


def first_title(run: "Run", conversation: Conversation) -> str:
    """Return the title at the beginning: the run's title, else its question, else its node."""
    source = run.inputs.get("title") or run.inputs.get("question")
    text = source[: 4 * LONGEST_TITLE] if isinstance(source, str) else ""
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    return (line or f"{run.workflow_id}/{conversation.node_id}")[:LONGEST_TITLE]


def current_title(run: "Run", conversation: Conversation) -> str:
    return first_title(run, conversation) if conversation.title is None else conversation.title


def is_opened_by_title(run: "Run") -> bool:
    """Return whether the thread's first turn is only its title, which does not count as a turn."""
    return run.workflow_id == THREAD and not run.inputs.get("question")


def count_turns(run: "Run", conversation: Conversation) -> int:
    return conversation.turns if is_opened_by_title(run) else conversation.turns + 1


def _apply_thread_renamed(run: "Run", payload: ThreadRenamed, event: Event, at: int) -> None:
    conversation = run.conversations.get(node_id_of(event))
    if conversation is not None:
        conversation.title = payload.title[:LONGEST_TITLE]
        conversation.last_seq = event.sequence


HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    ThreadRenamed: _apply_thread_renamed,
}
