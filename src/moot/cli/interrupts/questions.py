"""Find the question that waits for a person by number, id or run, and describe it."""

from collections.abc import Sequence

from moot.cli.runs.find import resolve_run_id
from moot.cli.runs.follow import WAITING_STATUSES
from moot.cli.shared import output
from moot.cli.shared.client import Api
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.client.operations import runs
from moot.wire.interrupts import AnsweredQuestion, InboxItem, Question

MAX_ITEMS = 1000
#: action of the protocol -> the command or option for it
ACTION_NAMES = {
    "accept": "approve", "edit-accept": "edit", "allow": "approve", "deny": "reject",
    "admit": "approve", "drop": "reject",
}  # fmt: skip

#: a question of a run, or an item of the inbox
WaitingQuestion = Question | InboxItem


class NothingWaits(CommandError):
    """No such question is open."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, ExitCode.NOT_FOUND)


def find_question(api: Api, text: str, node: str | None, decision: bool = False) -> WaitingQuestion:
    """Return the one open question that is meant. Digits alone are a number of the inbox.

    With ``decision``, a request of a member comes before the conversation in which it was made.
    """
    if text.isdecimal() or text.startswith("int_"):
        item = _find_item(api, text)
        if is_from_floor(item):
            return item
        return _question_of_node(api, item.run_id, node or item.node_id)
    run_id = resolve_run_id(api, text)
    if node is not None:
        return _question_of_node(api, run_id, node)
    questions: Sequence[WaitingQuestion] = []
    if decision:
        items = read_items(api)
        questions = [item for item in items if item.run_id == run_id and is_from_floor(item)]
    questions = questions or open_questions(api, run_id)
    if not questions:
        raise _nothing_waits_error(api, run_id)
    if len(questions) > 1:
        choices = ", ".join(
            one.id if isinstance(one, InboxItem) else f"{one.run_id} --node {one.node_id}"
            for one in questions
        )
        raise CommandError(
            f"{len(questions)} questions wait in {run_id}; name one: {choices}.", ExitCode.USAGE
        )
    return questions[0]


def read_items(api: Api) -> list[InboxItem]:
    """Return the items of the inbox."""
    return api.send(runs.get_inbox(limit=MAX_ITEMS)).items


def _find_item(api: Api, text: str) -> InboxItem:
    """Return the item of the inbox with this number or id."""
    items = read_items(api)
    for number, item in enumerate(items, 1):
        if text == item.id or (text.isdecimal() and int(text) == number):
            return item
    if not text.isdecimal():
        raise NothingWaits(f"{text} is not in the inbox: answered already, or never asked.")
    if not items:
        raise NothingWaits("the inbox is empty: nothing waits for a person.")
    count = "1 question" if len(items) == 1 else f"{len(items)} questions"
    hint = command_hint("inbox")
    raise NothingWaits(f"the inbox has {count}, none with number {int(text)}. See: {hint}")


def _question_of_node(api: Api, run_id: str, node_id: str) -> Question:
    questions = api.send(runs.list_questions(run_id))
    for question in questions.open:
        if question.node_id == node_id:
            return question
    for answered in questions.answered:
        if answered.node_id == node_id:
            raise too_late_error(run_id, answered)
    waiting_nodes = ", ".join(question.node_id for question in questions.open)
    hint = f" These do: {waiting_nodes}." if waiting_nodes else ""
    raise NothingWaits(f"node '{node_id}' of {run_id} waits for nothing.{hint}")


def _nothing_waits_error(api: Api, run_id: str) -> CommandError:
    questions = api.send(runs.list_questions(run_id))
    if questions.answered:
        return too_late_error(run_id, questions.answered[-1])
    return NothingWaits(f"nothing waits in {run_id}; it is {questions.status}.")


def too_late_error(run_id: str, answered: AnsweredQuestion) -> CommandError:
    """Return an error that names the person who answered first, or says that time ran out."""
    node_id, by, action = answered.node_id, answered.by, answered.action
    action_text = f" ({ACTION_NAMES.get(action, action)})" if action else ""
    when = f"{output.format_age(answered.at)} ago"
    if not by:
        return CommandError(
            f"{node_id} of {run_id} was closed {when}{action_text}: nobody had answered."
        )
    return CommandError(f"{node_id} of {run_id} was answered by {by}{action_text} {when}.")


def open_questions(api: Api, run_id: str) -> list[Question]:
    """Return the questions for a person in a run and its children."""
    listed = api.send(runs.list_questions(run_id)).open
    questions = [one for one in listed if one.kind != "external-event"]
    for child in api.send(runs.get_run(run_id)).child_runs or []:
        if child.status in WAITING_STATUSES:
            questions += open_questions(api, child.run_id)
    return questions


def reread_question(api: Api, question: Question) -> Question | None:
    for one in api.send(runs.list_questions(question.run_id)).open:
        if one.interrupt_id == question.interrupt_id:
            return one
    return None


def is_decision(kind: str) -> bool:
    """Return whether people answer a question of this kind with yes or no."""
    return kind in ("approval", "low-confidence", *FLOOR_ACTIONS)


#: kinds of requests by a member of a conversation -> the control for each decision
FLOOR_ACTIONS = {"tool": {"accept": "allow", "reject": "deny"},
         "held-turn": {"accept": "admit", "reject": "drop"}}  # fmt: skip


def is_from_floor(question: WaitingQuestion) -> bool:
    """Whether a member that has the floor asks, beside the conversation itself."""
    return question.kind in FLOOR_ACTIONS


def is_conversation(question: WaitingQuestion) -> bool:
    return question.kind.startswith("conversation")


def question_title(question: WaitingQuestion) -> str:
    return f'"{output.shorten(question.question)}" ({output.one_line(question.asked_by)})'


def answer_hint(question: WaitingQuestion, node: bool = False) -> str:
    """Return the command that answers, complete except for the words."""
    where = question.run_id + (f" --node {question.node_id}" if node else "")
    if is_decision(question.kind):
        return f"{command_hint(f'approve {where}')} (or reject)"
    parts = question.data.get("questions", []) if isinstance(question, Question) else []
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
    several = sum(one.run_id == first.run_id for one in questions) > 1
    sentence = f"{run_id} waits for a person: {question_title(first)}."
    rest = f" {len(questions) - 1} more: {command_hint('inbox')}" if len(questions) > 1 else ""
    return f"{sentence} Answer with: {answer_hint(first, several)}{rest and f'.{rest}'}"
