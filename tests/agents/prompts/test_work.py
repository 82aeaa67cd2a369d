"""What a supervisor's model may answer: the form, or a decision as the protocol writes it."""

from typing import Any

import pytest

from moot.agents.prompts.work import decision_schema, parse_decision
from moot.core.errors.models import ModelAnswerInvalid
from moot.core.json import schema

WORKERS = ["finder", "checker"]
NEXT = {"kind": "next-worker", "nextWorkerIds": ["finder"]}
END = {"kind": "terminate", "reason": "done"}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"decision": NEXT, "confidence": 0.9}, {"decision": NEXT, "confidence": 0.9}),
        ({**NEXT, "confidence": 0.9}, {"decision": NEXT, "confidence": 0.9}),
        ({"decision": {**END, "confidence": 1}}, {"decision": END, "confidence": 1}),
        (NEXT, {"decision": NEXT}),
        ({"kind": "terminate"}, {"decision": {"kind": "terminate"}}),
        ({"kind": "clarify", "prompt": "Which?"},
         {"decision": {"kind": "clarify", "prompt": "Which?"}}),
        ({"kind": "escalate", "reason": "Help."},
         {"decision": {"kind": "escalate", "reason": "Help."}}),
    ],
)  # fmt: skip
def test_a_decision_is_read_with_its_form_or_without(answer: Any, found: Any) -> None:
    assert parse_decision(answer, WORKERS) == found


@pytest.mark.parametrize(
    "answer",
    [
        None, [], "terminate", {}, {"kind": "dance"}, {"kind": "next-worker"}, {"decision": None},
        {"kind": "next-worker", "nextWorkerIds": []},
        {"kind": "next-worker", "nextWorkerIds": ["zed"]},
        {"kind": "ask-user"}, {**NEXT, "confidence": 2}, {**NEXT, "confidence": None},
        {**NEXT, "more": 1}, {"decision": NEXT, "confidence": 0.9, "more": 1},
    ],
)  # fmt: skip
def test_what_is_no_decision_is_said_to_be_none(answer: Any) -> None:
    with pytest.raises(ModelAnswerInvalid, match="does not fit its schema"):
        parse_decision(answer, WORKERS)


def test_models_are_asked_for_all_of_the_form() -> None:
    parse_decision(NEXT, WORKERS)
    form = decision_schema(WORKERS)
    assert not schema.schema_problems(form, {"decision": NEXT, "confidence": 0.9})
    assert schema.schema_problems(form, {"decision": NEXT})
