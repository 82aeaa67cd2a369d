"""Expressions are CEL: what has no value says so, what JSON cannot say never gets out."""

import math
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moot.core.events import new_event
from moot.core.secrets import MASK, mask_event
from moot.core.workflows import expressions
from moot.core.workflows.expressions import (
    ExpressionError,
    check_expression,
    evaluate_expression,
    is_pattern_match,
    plain_json,
)
from tests.support.core.random_flows import examples
from tests.support.event_payloads import payload_json


@pytest.mark.parametrize(
    ("source", "names", "value"),
    [
        ("1 + 2 * 3", {}, 7),
        ("variables.a.b[0]", {"variables": {"a": {"b": [5]}}}, 5),
        ("a == null", {"a": None}, True),
        ("'x' in m && !('y' in m)", {"m": {"x": 1}}, True),
        ("l.filter(n, n % 2 == 0).map(n, n * n)", {"l": [1, 2, 3, 4]}, [4, 16]),
        ("{'b': 1, 'a': [true, null]}", {}, {"a": [True, None], "b": 1}),
        ("a ? 'yes' : 'no'", {"a": False}, "no"),
        ("size(text)", {"text": "seven"}, 5),
        ("big", {"big": 2**63}, 2**63),
        ("has(v.a)", {"v": {}}, False),
    ],
)
def test_an_expression_is_worth_what_it_says(
    source: str, names: dict[str, Any], value: Any
) -> None:
    found = evaluate_expression(source, names)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("missing", {}), ("variables.missing", {"variables": {}}), ("a.b.c", {"a": {"b": None}}),
        ("l[5]", {"l": [1]}), ("l[-1]", {"l": [1]}), ("1 / 0", {}), ("1 % 0", {}),
        ("9223372036854775807 + 1", {}), ("'1' + 1", {}), ("nosuch(1)", {}), ("int('x')", {}),
        ("'a'.matches('(')", {}),
    ],
)  # fmt: skip
def test_an_expression_without_a_value_says_so(source: str, names: dict[str, Any]) -> None:
    with pytest.raises(ExpressionError):
        evaluate_expression(source, names)


@pytest.mark.parametrize("source", ["1.0 / 0.0", "-1.0 / 0.0", "0.0 / 0.0", "[1.0 / 0.0]",
                                    "double('nan')", "{'deep': [double('inf')]}"])  # fmt: skip
def test_what_json_has_no_number_for_is_no_value(source: str) -> None:
    """It would be one thing in memory and null in the log."""
    with pytest.raises(ExpressionError):
        evaluate_expression(source, {})


@pytest.mark.parametrize("source", ["", "1 +", "a b", "'open", "(", "[" * 500, "x" * 5000])
def test_what_cannot_be_read_is_refused_at_once(source: str) -> None:
    with pytest.raises(ExpressionError):
        check_expression(source)


def test_a_long_list_is_no_trouble() -> None:
    numbers = list(range(100_000))
    assert evaluate_expression("size(l)", {"l": numbers}) == 100_000
    assert evaluate_expression("l.filter(n, n >= 998)", {"l": numbers[:1000]}) == [998, 999]


def test_an_expression_that_could_take_very_long_is_refused_before_it_does() -> None:
    """Everybody waits while it runs, and the library has no budget of its own."""
    numbers = list(range(3000))
    with pytest.raises(ExpressionError):
        evaluate_expression("l.filter(a, l.exists(b, b == a + 10000))", {"l": numbers})


def test_deep_data_is_refused_or_read_but_never_brings_the_host_down() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    for source in ("x", "size(x)", "x[0]"):
        try:
            evaluate_expression(source, {"x": deep})
        except ExpressionError:
            continue


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [("hello world", "wor", True), ("hello", "^ello", False), ("a\nb", "^b", False),
     ("Straße", "ß", True), ("", "^$", True), ("aaaa", "(a+)+$", True)],
)  # fmt: skip
def test_a_pattern_is_searched_for(text: str, pattern: str, found: bool) -> None:
    assert is_pattern_match(text, pattern) is found


def test_a_nasty_pattern_takes_no_time() -> None:
    """Linear: a backtracking engine would need longer than the universe has."""
    assert is_pattern_match("a" * 5000 + "b", "^(a+)+$") is False


def test_a_bad_pattern_is_an_error_of_the_expression() -> None:
    with pytest.raises(ExpressionError):
        is_pattern_match("x", "(")


def test_maps_come_out_in_one_order() -> None:
    seen = {
        tuple(evaluate_expression("{'c': 1, 'a': 2, 'b': {'z': 1, 'y': 2}}", {})) for _ in range(20)
    }
    assert seen == {("a", "b", "c")}


def test_anything_else_becomes_its_text() -> None:
    assert evaluate_expression("duration('1h')", {}) == "1:00:00"
    assert plain_json((1, {2: b"x"})) == [1, {"2": "b'x'"}]
    assert evaluate_expression("type(1)", {}) == "int"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@examples(150)
@given(json_values)
def test_a_value_passes_through_unchanged(value: Any) -> None:
    found = evaluate_expression("x", {"x": value})
    assert found == value


@examples(150)
@given(st.text(alphabet="xyz01.+-*/%()[]{}'\"<>=!&|?:,in ", max_size=30), json_values)
def test_any_text_is_a_value_or_a_refusal_and_nothing_else(source: str, value: Any) -> None:
    try:
        found = evaluate_expression(source, {"x": value, "y": 1, "z": "z"})
    except ExpressionError:
        return
    assert not isinstance(found, float) or math.isfinite(found)


def test_expressions_are_never_python() -> None:
    for source in ("__import__('os')", "().__class__", "open('/etc/passwd')", "exec('1')"):
        with pytest.raises(ExpressionError):
            expressions.evaluate_expression(source, {})


# -- bounds ----------------------------------------------------------------------------------------


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
