"""core.clarificationGate: asks a list of questions and waits until all are answered."""

from typing import Any

from moot.core.outcomes import Call, GateSpec, Kind, NodeType
from moot.engine.nodes.approval_gate import check_schema, check_timeout


def _gate(call: Call) -> GateSpec:
    questions = [
        {key: question[key] for key in ("id", "question", "schema") if key in question}
        for question in call.config["questions"]
    ]
    data: dict[str, Any] = {"questions": questions}
    if "contextType" in call.config:
        data["contextType"] = call.config["contextType"]
    return GateSpec(
        kind="clarification",
        data=data,
        timeout_ms=call.config.get("timeoutMs"),
        profile=call.config.get("profile"),
    )


def check(config: dict[str, Any]) -> str | None:
    questions = config.get("questions")
    if not isinstance(questions, list) or not questions:
        return "questions must be a list of {id, question}"
    for question in questions:
        if not isinstance(question, dict) or not question.get("question"):
            return "every question needs an id and a question"
        if not isinstance(question.get("id"), str) or not question["id"]:
            return "the id of a question must be a text"
        if problem := check_schema(question, "schema"):
            return problem
    if len({question["id"] for question in questions}) < len(questions):
        return "every question needs an id of its own"
    return check_timeout(config)


TYPE = NodeType(type_id="core.clarificationGate", kind=Kind.GATE, gate=_gate, check=check)
