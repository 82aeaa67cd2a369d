"""Nobody waits for an expression, a tree of runs or a broad graph without an end."""

import pytest

from event_payloads import payload_json
from moot.core.events import new_event
from moot.core.secrets import MASK, mask_event
from moot.core.workflows import expressions
from moot.core.workflows.expressions import ExpressionError


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("l.map(a, l.map(b, l.map(c, l.map(d, d))))", {"l": list(range(300))}),
        ("l.filter(a, a in l)", {"l": list(range(20_000))}),
        ("l.map(a, s)", {"l": list(range(10_000)), "s": "x" * 100_000}),
        ("s + s", {"s": "x" * 600_000}),
    ],
)
def test_an_expression_that_could_take_for_ever_is_refused(
    source: str, names: dict[str, object]
) -> None:
    with pytest.raises(ExpressionError):
        expressions.evaluate_expression(source, names)


def test_a_loop_over_a_long_list_is_fine() -> None:
    assert len(expressions.evaluate_expression("l.map(a, a + 1)", {"l": list(range(5000))})) == 5000


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ({"pin": "INNERSECRET"}, "INNERSECRET"),
        (["ELEMSECRET"], "ELEMSECRET!"),
        (987654, "987654"),
        (987654, 987654),
        ("MKSECRET", {"MKSECRET": 1}),
    ],
)
def test_no_part_of_a_secret_is_told(secret: object, told: object) -> None:
    new = new_event("node.completed", {"nodeId": "n", "outputs": {"o": told}, "durationMs": 0}, "n")
    seen = mask_event(new, {"var:card": secret}, "mask")
    assert MASK in str(payload_json(seen)["outputs"])
    assert seen.sealed == {"out:n:o": told}
