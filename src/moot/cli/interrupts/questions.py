"""What waits for a person: found by its number in the inbox, its id or its run, and told."""

from typing import Any

from moot.cli.runs.find import resolve
from moot.cli.runs.follow import FOR_A_PERSON
from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble

INBOX = "/v1/host/moot/inbox"
MOST = 1000
#: what the protocol calls an action -> the command or option that takes it
WORDS = {
    "accept": "approve", "edit-accept": "edit", "allow": "approve", "deny": "reject",
    "admit": "approve", "drop": "reject",
}  # fmt: skip

Question = dict[str, Any]


class NothingWaits(Trouble):
    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, Exit.NOT_FOUND)


def find(api: Api, what: str, node: str | None, decision: bool = False) -> Question:
    """The one open question that is meant. What is only digits is a number of the inbox.

    ``decision``: a yes or a no is to be said, so that what a member asks beside the conversation
    comes before the conversation itself.
    """
    if what.isdecimal() or what.startswith("int_"):
        item = _numbered(api, int(what)) if what.isdecimal() else _named(api, what)
        if from_the_floor(item):
            return item
        return _of_node(api, item["runId"], node or item["nodeId"])
    run_id = resolve(api, what)
    if node is not None:
        return _of_node(api, run_id, node)
    found = _beside(api, run_id) if decision else []
    found = found or waiting_in(api, run_id)
    if not found:
        raise _nothing(api, run_id)
    if len(found) > 1:
        ways = ", ".join(
            one["id"] if from_the_floor(one) else f"{one['runId']} --node {one['nodeId']}"
            for one in found
        )
        raise Trouble(f"{len(found)} questions wait in {run_id}; name one: {ways}.", Exit.USAGE)
    return found[0]


def _beside(api: Api, run_id: str) -> list[Question]:
    items = api.get(INBOX, limit=MOST)["items"]
    return [one for one in items if one["runId"] == run_id and from_the_floor(one)]


def _numbered(api: Api, number: int) -> Question:
    items = api.get(INBOX, limit=MOST)["items"]
    if not items:
        raise NothingWaits("the inbox is empty: nothing waits for a person.")
    if not 1 <= number <= len(items):
        counted = "1 question" if len(items) == 1 else f"{len(items)} questions"
        raise NothingWaits(
            f"the inbox has {counted}, none with number {number}. See: {way('inbox')}"
        )
    found: Question = items[number - 1]
    return found


def _named(api: Api, name: str) -> Question:
    for item in api.get(INBOX, limit=MOST)["items"]:
        if item["id"] == name:
            return dict(item)
    raise NothingWaits(f"{name} is not in the inbox: answered already, or never asked.")


def _of_node(api: Api, run_id: str, node_id: str) -> Question:
    found = _state(api, run_id)
    for question in found["open"]:
        if question["nodeId"] == node_id:
            return dict(question)
    for last in found["answered"]:
        if last["nodeId"] == node_id:
            raise too_late(run_id, last)
    others = ", ".join(question["nodeId"] for question in found["open"])
    hint = f" These do: {others}." if others else ""
    raise NothingWaits(f"node '{node_id}' of {run_id} waits for nothing.{hint}")


def _nothing(api: Api, run_id: str) -> Trouble:
    found = _state(api, run_id)
    if found["answered"]:
        return too_late(run_id, found["answered"][-1])
    return NothingWaits(f"nothing waits in {run_id}; it is {found['status']}.")


def too_late(run_id: str, last: dict[str, Any]) -> Trouble:
    """Who was quicker, or that time ran out."""
    did = f" ({WORDS.get(last['action'], last['action'])})" if last.get("action") else ""
    when = f"{output.age(last['at'])} ago"
    if not last["by"]:
        return Trouble(f"{last['nodeId']} of {run_id} was closed {when}{did}: nobody had answered.")
    return Trouble(f"{last['nodeId']} of {run_id} was answered by {last['by']}{did} {when}.")


def waiting_in(api: Api, run_id: str) -> list[Question]:
    """What a run and its children wait for a person to answer."""
    found = [one for one in _state(api, run_id)["open"] if one["kind"] != "external-event"]
    for child in api.get(path_of("v1", "runs", run_id)).get("childRuns", []):
        if child["status"] in FOR_A_PERSON:
            found += waiting_in(api, child["runId"])
    return found


def _state(api: Api, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(path_of("v1", "host", "moot", "runs", run_id, "interrupts"))
    return found


def still_open(api: Api, question: Question) -> Question | None:
    for one in _state(api, question["runId"])["open"]:
        if one["interruptId"] == question["interruptId"]:
            return dict(one)
    return None


def is_decision(question: Question) -> bool:
    """Whether it takes a yes or a no, not words."""
    return question["kind"] in ("approval", "low-confidence", *FLOOR)


#: kinds of items that a member of a conversation asks -> what the word of a person does
FLOOR = {"tool": {"accept": "allow", "reject": "deny"},
         "held-turn": {"accept": "admit", "reject": "drop"}}  # fmt: skip


def from_the_floor(question: Question) -> bool:
    """Whether it is asked beside the conversation itself: by a member that has the floor."""
    return question["kind"] in FLOOR


def is_talk(question: Question) -> bool:
    return str(question["kind"]).startswith("conversation")


def title(question: Question) -> str:
    return f'"{output.brief(question["question"])}" ({output.one_line(question["askedBy"])})'


def way_to_answer(question: Question, node: bool = False) -> str:
    """The command, ready to be typed but for the words."""
    where = question["runId"] + (f" --node {question['nodeId']}" if node else "")
    if is_decision(question):
        return f"{way(f'approve {where}')} (or reject)"
    asked = question.get("data", {}).get("questions", [])
    if len(asked) > 1:
        words = " ".join(f"--answer {one['id']}=TEXT" for one in asked)
        return way(f"answer {where} {words}")
    return way(f"answer {where} TEXT")


def waiting_line(api: Api, run_id: str) -> str:
    """What a run that stands still waits for, and how to help it on."""
    found = waiting_in(api, run_id)
    if not found:
        return f"{run_id} waits for a person. See: {way('inbox')}"
    first = found[0]
    several = sum(one["runId"] == first["runId"] for one in found) > 1
    said = f"{run_id} waits for a person: {title(first)}."
    more = f" {len(found) - 1} more: {way('inbox')}" if len(found) > 1 else ""
    return f"{said} Answer with: {way_to_answer(first, several)}{more and f'.{more}'}"
