"""Clarifications: a list of questions, answered together."""

from typing import Any

from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.json.schema import problems
from moot.core.runs.answers import Answer, completed, ended
from moot.core.state.conversation import Interrupt
from moot.core.state.run import Run
from moot.core.workflows.graph import Flow, FlowNode


def answer(run: Run, flow: Flow, node: FlowNode, found: Interrupt, given: Answer) -> list[NewEvent]:
    answers = _answers_of(given.value, found.data["questions"])
    payload = {"nodeId": node.id, "answers": answers, "answeredBy": given.who.principal}
    said = [NewEvent("clarification.resolved", payload, node.id)]
    over = ended(node, found, given, {"answers": answers}, said)
    return [*over, completed(run, node, {"answers": answers, **answers}, given.at)]


def _answers_of(value: Any, questions: list[dict[str, Any]]) -> dict[str, Any]:
    """Answers by question id; both spellings are taken. Every question must be answered."""
    given = value.get("answers") if isinstance(value, dict) else None
    if isinstance(given, list):
        given = {
            item["id"]: item["answer"]
            for item in given
            if isinstance(item, dict) and isinstance(item.get("id"), str) and "answer" in item
        }
    if not isinstance(given, dict):
        raise BadRequest("Answer with {answers: {<question id>: …}}.", field="answers")
    missing = [question["id"] for question in questions if question["id"] not in given]
    if missing:
        raise BadRequest(f"Not answered: {', '.join(missing)}.", field="answers", missing=missing)
    for question in questions:
        schema = question.get("schema")
        if schema and (found := problems(schema, given[question["id"]])):
            raise BadRequest(f"Answer '{question['id']}': {found[0]}", fields=found)
    return {str(key): answer for key, answer in given.items()}
