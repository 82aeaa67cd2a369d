"""Ask and answer clarifications: a list of questions, answered together."""

from typing import Any

from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.json.schema import schema_problems
from moot.core.payloads.interrupts import ClarificationRequested, ClarificationResolved
from moot.core.runs.answers import GateAnswer, end_interrupt, gate_completed_event
from moot.core.state.interrupt import Interrupt
from moot.core.state.run import Run
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import GateSpec


def clarification_requested_event(node: FlowNode, spec: GateSpec, interrupt_id: str) -> NewEvent:
    questions = spec.data["questions"]
    payload = ClarificationRequested(
        node_id=node.id, interrupt_id=interrupt_id, questions=questions
    )
    return NewEvent(payload, node.id)


def answer_clarification(
    run: Run, flow: Flow, node: FlowNode, interrupt: Interrupt, answer: GateAnswer
) -> list[NewEvent]:
    answers = _parse_answers(answer.value, interrupt.data["questions"])
    payload = ClarificationResolved(
        node_id=node.id, answers=answers, answered_by=answer.who.principal
    )
    events = [NewEvent(payload, node.id)]
    end_events = end_interrupt(node, interrupt, answer, {"answers": answers}, events)
    return [
        *end_events,
        gate_completed_event(run, node, {"answers": answers, **answers}, answer.at),
    ]


def _parse_answers(value: Any, questions: list[dict[str, Any]]) -> dict[str, object]:
    """Return the answers by question id, from a map or a list.

    Raise BadRequest when an answer is missing or does not fit its schema.
    """
    answers = value.get("answers") if isinstance(value, dict) else None
    if isinstance(answers, list):
        answers = {
            item["id"]: item["answer"]
            for item in answers
            if isinstance(item, dict) and isinstance(item.get("id"), str) and "answer" in item
        }
    if not isinstance(answers, dict):
        raise BadRequest("Answer with {answers: {<question id>: …}}.", field="answers")
    missing = [question["id"] for question in questions if question["id"] not in answers]
    if missing:
        raise BadRequest(f"Not answered: {', '.join(missing)}.", field="answers", missing=missing)
    for question in questions:
        schema = question.get("schema")
        if schema and (mistakes := schema_problems(schema, answers[question["id"]])):
            raise BadRequest(f"Answer '{question['id']}': {mistakes[0]}", fields=mistakes)
    return {str(key): answer for key, answer in answers.items()}
