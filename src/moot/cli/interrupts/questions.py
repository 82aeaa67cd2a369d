"""Find the question that waits for a person by number, id or run, and describe it."""

from typing import Any

from moot.cli.runs.find import resolve_run_id
from moot.cli.runs.follow import WAITING_STATUSES
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_path
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode

INBOX = "/v1/host/moot/inbox"
MAX_ITEMS = 1000
#: action of the protocol -> the command or option for it
ACTION_NAMES = {
    "accept": "approve", "edit-accept": "edit", "allow": "approve", "deny": "reject",
    "admit": "approve", "drop": "reject",
}  # fmt: skip

Question = dict[str, Any]


class NothingWaits(CommandError):
    """No such question is open."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, ExitCode.NOT_FOUND)


def find_question(api: Api, text: str, node: str | None, decision: bool = False) -> Question:
    """Return the one open question that is meant. Digits alone are a number of the inbox.

    With ``decision``, a request of a member comes before the conversation in which it was made.
    """
    if text.isdecimal() or text.startswith("int_"):
        item = (
            _question_by_number(api, int(text)) if text.isdecimal() else _question_by_id(api, text)
        )
        if is_from_floor(item):
            return item
        return _question_of_node(api, item["runId"], node or item["nodeId"])
    run_id = resolve_run_id(api, text)
    if node is not None:
        return _question_of_node(api, run_id, node)
    questions = _floor_questions(api, run_id) if decision else []
    questions = questions or open_questions(api, run_id)
    if not questions:
        raise _nothing_waits_error(api, run_id)
    if len(questions) > 1:
        choices = ", ".join(
            one["id"] if is_from_floor(one) else f"{one['runId']} --node {one['nodeId']}"
            for one in questions
        )
        raise CommandError(
            f"{len(questions)} questions wait in {run_id}; name one: {choices}.", ExitCode.USAGE
        )
    return questions[0]


def _floor_questions(api: Api, run_id: str) -> list[Question]:
    items = api.get(INBOX, limit=MAX_ITEMS)["items"]
    return [one for one in items if one["runId"] == run_id and is_from_floor(one)]


def _question_by_number(api: Api, number: int) -> Question:
    items = api.get(INBOX, limit=MAX_ITEMS)["items"]
    if not items:
        raise NothingWaits("the inbox is empty: nothing waits for a person.")
    if not 1 <= number <= len(items):
        count = "1 question" if len(items) == 1 else f"{len(items)} questions"
        raise NothingWaits(
            f"the inbox has {count}, none with number {number}. See: {command_hint('inbox')}"
        )
    question: Question = items[number - 1]
    return question


def _question_by_id(api: Api, name: str) -> Question:
    for item in api.get(INBOX, limit=MAX_ITEMS)["items"]:
        if item["id"] == name:
            return dict(item)
    raise NothingWaits(f"{name} is not in the inbox: answered already, or never asked.")


def _question_of_node(api: Api, run_id: str, node_id: str) -> Question:
    interrupts = _read_interrupts(api, run_id)
    for question in interrupts["open"]:
        if question["nodeId"] == node_id:
            return dict(question)
    for answered in interrupts["answered"]:
        if answered["nodeId"] == node_id:
            raise too_late_error(run_id, answered)
    waiting_nodes = ", ".join(question["nodeId"] for question in interrupts["open"])
    hint = f" These do: {waiting_nodes}." if waiting_nodes else ""
    raise NothingWaits(f"node '{node_id}' of {run_id} waits for nothing.{hint}")


def _nothing_waits_error(api: Api, run_id: str) -> CommandError:
    interrupts = _read_interrupts(api, run_id)
    if interrupts["answered"]:
        return too_late_error(run_id, interrupts["answered"][-1])
    return NothingWaits(f"nothing waits in {run_id}; it is {interrupts['status']}.")


def too_late_error(run_id: str, answered: dict[str, Any]) -> CommandError:
    """Return an error that names the person who answered first, or says that time ran out."""
    action = (
        f" ({ACTION_NAMES.get(answered['action'], answered['action'])})"
        if answered.get("action")
        else ""
    )
    when = f"{output.format_age(answered['at'])} ago"
    if not answered["by"]:
        return CommandError(
            f"{answered['nodeId']} of {run_id} was closed {when}{action}: nobody had answered."
        )
    return CommandError(
        f"{answered['nodeId']} of {run_id} was answered by {answered['by']}{action} {when}."
    )


def open_questions(api: Api, run_id: str) -> list[Question]:
    """Return the questions for a person in a run and its children."""
    questions = [
        one for one in _read_interrupts(api, run_id)["open"] if one["kind"] != "external-event"
    ]
    for child in api.get(api_path("v1", "runs", run_id)).get("childRuns", []):
        if child["status"] in WAITING_STATUSES:
            questions += open_questions(api, child["runId"])
    return questions


def _read_interrupts(api: Api, run_id: str) -> dict[str, Any]:
    interrupts: dict[str, Any] = api.get(
        api_path("v1", "host", "moot", "runs", run_id, "interrupts")
    )
    return interrupts


def reread_question(api: Api, question: Question) -> Question | None:
    for one in _read_interrupts(api, question["runId"])["open"]:
        if one["interruptId"] == question["interruptId"]:
            return dict(one)
    return None


def is_decision(question: Question) -> bool:
    """Whether the question takes a yes or a no instead of words."""
    return question["kind"] in ("approval", "low-confidence", *FLOOR_ACTIONS)


#: kinds of requests by a member of a conversation -> the control for each decision
FLOOR_ACTIONS = {"tool": {"accept": "allow", "reject": "deny"},
         "held-turn": {"accept": "admit", "reject": "drop"}}  # fmt: skip


def is_from_floor(question: Question) -> bool:
    """Whether a member that has the floor asks, beside the conversation itself."""
    return question["kind"] in FLOOR_ACTIONS


def is_conversation(question: Question) -> bool:
    return str(question["kind"]).startswith("conversation")


def question_title(question: Question) -> str:
    return f'"{output.shorten(question["question"])}" ({output.one_line(question["askedBy"])})'


def answer_hint(question: Question, node: bool = False) -> str:
    """Return the command that answers, complete except for the words."""
    where = question["runId"] + (f" --node {question['nodeId']}" if node else "")
    if is_decision(question):
        return f"{command_hint(f'approve {where}')} (or reject)"
    parts = question.get("data", {}).get("questions", [])
    if len(parts) > 1:
        words = " ".join(f"--answer {one['id']}=TEXT" for one in parts)
        return command_hint(f"answer {where} {words}")
    return command_hint(f"answer {where} TEXT")


def waiting_line(api: Api, run_id: str) -> str:
    """Return the question that a run waits for, and the command that continues it."""
    questions = open_questions(api, run_id)
    if not questions:
        return f"{run_id} waits for a person. See: {command_hint('inbox')}"
    first = questions[0]
    several = sum(one["runId"] == first["runId"] for one in questions) > 1
    sentence = f"{run_id} waits for a person: {question_title(first)}."
    rest = f" {len(questions) - 1} more: {command_hint('inbox')}" if len(questions) > 1 else ""
    return f"{sentence} Answer with: {answer_hint(first, several)}{rest and f'.{rest}'}"
