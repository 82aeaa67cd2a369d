"""What waits for a person, given the state of a run.

A row for each open question a person can answer; for a conversation only while a person is
addressed. External events and idle conversations wait for nobody in particular.
"""

from typing import Any

from msgspec import Struct

from moot.core.ids import derived_id
from moot.core.state import awaited_people
from moot.core.state.conversation import Interrupt
from moot.core.state.run import Run

#: kinds of question -> the actions a person has, where the question does not name its own
ACTIONS = {
    "clarification": ["answer"],
    "custom": ["answer"],
    "low-confidence": ["accept", "reject"],
}


class Item(Struct, frozen=True, kw_only=True):
    id: str
    run_id: str
    node_id: str
    kind: str
    question: str
    actions: list[str]
    asked_by: str
    since: int
    deadline: int | None = None


def items(run: Run) -> list[Item]:
    """Empty for a run that has ended: nobody needs to answer any more."""
    if not run.interrupts or run.terminal or run.replayed:
        return []
    found = []
    for node_id, asked in run.interrupts.items():
        if asked.kind == "external-event":
            continue
        item = _talk(run, node_id, asked) if _is_talk(asked) else question(run, node_id, asked)
        if item is not None:
            found.append(item)
        if _is_talk(asked):
            found += _from_the_floor(run, node_id, asked)
    return found


def _from_the_floor(run: Run, node_id: str, asked: Interrupt) -> list[Item]:
    """Turns that are held back, and tools that need a person's word."""
    talk = run.conversations.get(node_id)
    if talk is None or talk.floor is None or not talk.open:
        return []
    held = [
        (f"held:{name}", "held-turn", f"{turn.get('speakerId', 'Somebody')} has a turn held back",
         ["admit", "drop"], asked.requested_at)
        for name, turn in talk.floor.held.items()
    ]  # fmt: skip
    tools = [
        (f"tool:{name}", "tool", f"Let {ask.agent} use {ask.tool}?: {ask.given}", ["allow", "deny"],
         ask.since)
        for name, ask in talk.floor.asks.items()
        if ask.allowed is None
    ]  # fmt: skip
    return [
        Item(
            id=f"{asked.interrupt_id}:{name}",
            run_id=run.run_id,
            node_id=node_id,
            kind=kind,
            question=text,
            actions=actions,
            asked_by=talk.conversation_id,
            since=since,
        )
        for name, kind, text, actions, since in [*held, *tools]
    ]


def _is_talk(asked: Interrupt) -> bool:
    return asked.kind.startswith("conversation.")


def _id(run: Run, asked: Interrupt) -> str:
    """A question that a branch has from its source is put by both; they are two."""
    if asked.seq >= run.inherited:
        return asked.interrupt_id
    return derived_id("int_", run.run_id, asked.interrupt_id)


def question(run: Run, node_id: str, asked: Interrupt) -> Item:
    return Item(
        id=_id(run, asked),
        run_id=run.run_id,
        node_id=node_id,
        kind=asked.kind,
        question=_text(asked.data),
        actions=list(asked.data.get("actions") or ACTIONS.get(asked.kind, ["answer"])),
        asked_by=f"{run.workflow_id}/{node_id}",
        since=asked.requested_at,
        deadline=asked.due,
    )


def _talk(run: Run, node_id: str, asked: Interrupt) -> Item | None:
    talk = run.conversations.get(node_id)
    if talk is None or not talk.open or not talk.asked:
        return None
    turn, since = awaited_people.first(talk.asked)
    return Item(
        id=_id(run, asked),
        run_id=run.run_id,
        node_id=node_id,
        kind="conversation",
        question=f"{', '.join(talk.asked)}: asked in turn {turn}",
        actions=["answer"],
        asked_by=talk.conversation_id,
        since=since,
        deadline=asked.due,
    )


def _text(data: dict[str, Any]) -> str:
    if "questions" in data:
        return " ".join(str(question.get("question", "")) for question in data["questions"])
    names = ("title", "customKind", "prompt", "eventType")
    text = next((str(data[name]) for name in names if data.get(name)), "A question")
    return f"{text}: {data['description']}" if data.get("description") else text
