"""List the interrupts of a run that wait for a person.

A conversation is listed only while a participant addresses a person. External events are never
listed.
"""

from collections.abc import Mapping

from msgspec import Struct

from moot.core.ids import derived_id
from moot.core.state import awaited_people
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Floor
from moot.core.state.interrupt import Interrupt
from moot.core.state.run import Run

#: kind of interrupt -> its actions, when the question names none
ACTIONS = {
    "clarification": ["answer"],
    "custom": ["answer"],
    "low-confidence": ["accept", "reject"],
}


class InboxEntry(Struct, frozen=True, kw_only=True):
    """One interrupt that waits for a person."""

    id: str
    run_id: str
    node_id: str
    kind: str
    question: str
    actions: list[str]
    asked_by: str
    since: int
    deadline: int | None = None


def inbox_items(run: Run) -> list[InboxEntry]:
    """Return the items of a run; a run that has ended has none."""
    if not run.interrupts or run.terminal or run.replayed:
        return []
    items = []
    for node_id, interrupt in run.interrupts.items():
        if interrupt.kind == "external-event":
            continue
        if interrupt.kind.startswith("conversation."):
            items += _conversation_items(run, node_id, interrupt)
        else:
            items.append(question_item(run, node_id, interrupt))
    return items


def _conversation_items(run: Run, node_id: str, interrupt: Interrupt) -> list[InboxEntry]:
    conversation = run.conversations.get(node_id)
    if conversation is None or not conversation.open:
        return []
    items = [_awaited_item(run, interrupt, conversation)] if conversation.asked else []
    if conversation.floor is not None:
        items += _floor_items(run, interrupt, conversation, conversation.floor)
    return items


def _floor_items(
    run: Run, interrupt: Interrupt, conversation: Conversation, floor: Floor
) -> list[InboxEntry]:
    """Return held turns and tool requests that wait for a person."""
    held_turns = [
        (f"held:{name}", "held-turn", f"{turn.get('speakerId', 'Somebody')} has a turn held back",
         ["admit", "drop"], interrupt.requested_at)
        for name, turn in floor.held.items()
    ]  # fmt: skip
    tool_requests = [
        (f"tool:{name}", "tool", f"Let {request.agent} use {request.tool}?: {request.given}",
         ["allow", "deny"], request.since)
        for name, request in floor.asks.items()
        if request.allowed is None
    ]  # fmt: skip
    return [
        InboxEntry(
            id=f"{interrupt.interrupt_id}:{name}",
            run_id=run.run_id,
            node_id=conversation.node_id,
            kind=kind,
            question=text,
            actions=actions,
            asked_by=conversation.conversation_id,
            since=since,
        )
        for name, kind, text, actions, since in [*held_turns, *tool_requests]
    ]


def _item_id(run: Run, interrupt: Interrupt) -> str:
    """Return a different id in a fork, because its source asks the same question."""
    if interrupt.seq >= run.inherited:
        return interrupt.interrupt_id
    return derived_id("int_", run.run_id, interrupt.interrupt_id)


def question_item(run: Run, node_id: str, interrupt: Interrupt) -> InboxEntry:
    return InboxEntry(
        id=_item_id(run, interrupt),
        run_id=run.run_id,
        node_id=node_id,
        kind=interrupt.kind,
        question=_question_text(interrupt.data),
        actions=list(interrupt.data.get("actions") or ACTIONS.get(interrupt.kind, ["answer"])),
        asked_by=f"{run.workflow_id}/{node_id}",
        since=interrupt.requested_at,
        deadline=interrupt.due,
    )


def _awaited_item(run: Run, interrupt: Interrupt, conversation: Conversation) -> InboxEntry:
    """Return the item of a conversation in which people are asked."""
    turn, since = awaited_people.longest_awaited(conversation.asked)
    return InboxEntry(
        id=_item_id(run, interrupt),
        run_id=run.run_id,
        node_id=conversation.node_id,
        kind="conversation",
        question=f"{', '.join(conversation.asked)}: asked in turn {turn}",
        actions=["answer"],
        asked_by=conversation.conversation_id,
        since=since,
        deadline=interrupt.due,
    )


def _question_text(data: Mapping[str, object]) -> str:
    if isinstance(questions := data.get("questions"), list):
        return " ".join(str(each.get("question", "")) for each in questions)
    names = ("title", "customKind", "prompt", "eventType")
    text = next((str(data[name]) for name in names if data.get(name)), "A question")
    return f"{text}: {data['description']}" if data.get("description") else text
