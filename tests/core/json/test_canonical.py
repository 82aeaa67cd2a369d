"""JSON with one spelling, and the key of a model call that rests on it."""

import json
import random
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.core.agents.model_key import RECIPE, arrange_request, model_key, parse_semantic_request
from moot.core.errors import BadRequest
from moot.core.json.canonical import canonical_bytes, canonical_digest, code_unit_key

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def shuffled(value: Any, luck: random.Random) -> Any:
    """The same value with the keys of its objects in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, luck)) for key, item in value.items()]
        luck.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [shuffled(item, luck) for item in value]
    return value


@given(values)
def test_what_is_written_reads_back_as_the_same_value(value: Any) -> None:
    assert json.loads(canonical_bytes(value), parse_int=float) == value


@given(values, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: Any, luck: random.Random) -> None:
    assert canonical_bytes(shuffled(value, luck)) == canonical_bytes(value)


@given(values)
def test_writing_what_was_read_changes_nothing(value: Any) -> None:
    once = canonical_bytes(value)
    assert canonical_bytes(json.loads(once, parse_int=float)) == once


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_shortest_that_names_the_double(value: float) -> None:
    said = canonical_bytes(value).decode()
    assert float(said) == value
    significant = said.lstrip("-").partition("e")[0].replace(".", "").strip("0")
    assert len(significant) <= len(repr(abs(value)).partition("e")[0].replace(".", "").strip("0"))


#: bits of a double -> how the standard's own table writes it
TABLE = {
    "0000000000000000": "0", "8000000000000000": "0", "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324", "7fefffffffffffff": "1.7976931348623157e+308",
    "4340000000000000": "9007199254740992", "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000", "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23", "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000", "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21", "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001", "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325", "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}  # fmt: skip


@pytest.mark.parametrize(("bits", "said"), TABLE.items())
def test_numbers_are_written_as_the_standard_says(bits: str, said: str) -> None:
    [value] = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_bytes(value).decode() == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(1, "1"), (1.0, "1"), (-0.0, "0"), (2**53 + 1, "9007199254740992"), (10**21, "1e+21"),
     (1e-7, "1e-7"), (0.1, "0.1"), (123456.75, "123456.75"), (4.5, "4.5"), (2e-3, "0.002")],
)  # fmt: skip
def test_a_whole_number_is_the_double_it_names(value: float, said: str) -> None:
    assert canonical_bytes(value).decode() == said


def test_keys_stand_in_the_order_of_their_code_units() -> None:
    """The standard's example: an emoji comes before a letter from beyond the surrogates."""
    order = ["\r", "1", "\x80", "ö", "€", "\U0001f600", "\ufb33"]
    value = dict.fromkeys(reversed(order), 0)
    assert list(json.loads(canonical_bytes(value))) == order
    assert sorted(order, key=code_unit_key) == order != sorted(order)


def test_texts_are_escaped_as_little_as_possible() -> None:
    said = canonical_bytes('\x00\x1f"\\/\b\f\n\r\t\x7fé\u2028').decode()
    assert said == '"\\u0000\\u001f\\"\\\\/\\b\\f\\n\\r\\t\x7fé\u2028"'


SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def spelled(value: Any) -> str:
    """The standard taken literally, sign by sign; numbers have tests of their own."""
    if isinstance(value, str):
        signs = (SHORT.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in value)
        return f'"{"".join(signs)}"'
    if isinstance(value, dict):
        keys = sorted(value, key=code_unit_key)
        return "{" + ",".join(f"{spelled(key)}:{spelled(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(spelled, value)) + "]"
    return canonical_bytes(value).decode()


@given(values)
def test_the_quick_way_of_writing_is_the_standard_s(value: Any) -> None:
    assert canonical_bytes(value) == spelled(value).encode()


def test_no_sign_there_is_is_spelled_another_way() -> None:
    signs = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    for first in range(0, len(signs), 4096):
        some = "".join(signs[first : first + 4096])
        assert canonical_bytes(some) == spelled(some).encode()


@pytest.mark.parametrize(
    "wrong", [float("nan"), float("inf"), {1: 2}, object(), "\ud800", {"\udc00": 1}, 10**400, b"x"]
)
def test_what_json_cannot_say_has_no_spelling(wrong: Any) -> None:
    with pytest.raises(ValueError):
        canonical_bytes({"x": wrong})


# -- the key of a model call ---------------------------------------------------------------------

PLAIN: dict[str, Any] = {
    "provider": "mock", "model": "m-1", "messages": [{"role": "user", "content": "hi"}]
}  # fmt: skip
FULL: dict[str, Any] = {
    **PLAIN,
    "tools": [{"name": "b", "parameters": {"y": 1, "x": None}}, {"name": "a", "description": "d"}],
    "temperature": 0.5, "topP": 1, "topK": 4, "maxOutputTokens": 64, "stop": ["x"], "seed": 7,
    "responseFormat": {"type": "json", "schema": {"type": "object"}},
    "safetySettings": {"violence": "low"}, "providerOptions": {"vendor.mock.depth": 3},
}  # fmt: skip


def key(**given: Any) -> str:
    return model_key(parse_semantic_request({**PLAIN, **given}))


def test_the_key_is_the_digest_of_the_recipe() -> None:
    expected = {
        "recipe": RECIPE, "provider": "mock", "model": "m-1",
        "request": {"messages": PLAIN["messages"], "temperature": 0.5},
    }  # fmt: skip
    assert arrange_request(parse_semantic_request({**PLAIN, "temperature": 0.5})) == expected
    assert key(temperature=0.5) == canonical_digest(expected)
    assert len(key()) == 64 and set(key()) <= set("0123456789abcdef")


@given(st.randoms(use_true_random=False))
def test_a_key_does_not_depend_on_the_order_of_keys_or_tools(luck: random.Random) -> None:
    given = shuffled(FULL, luck)
    given["tools"] = luck.sample(given["tools"], 2)
    assert model_key(parse_semantic_request(given)) == key(**FULL)


def test_tools_of_one_name_are_sorted_by_what_else_they_say() -> None:
    tools = [{"name": "a", "description": text} for text in ("z", "é", "b")]
    assert key(tools=tools) == key(tools=tools[::-1]) == key(tools=[*tools[1:], tools[0]])


def test_tools_are_sorted_by_code_units() -> None:
    tools = [{"name": name} for name in ("\ufb33", "\U0001f600", "a", "Z")]
    names = [
        tool["name"]
        for tool in arrange_request(parse_semantic_request({**PLAIN, "tools": tools}))["request"][
            "tools"
        ]
    ]
    assert names == ["Z", "a", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize("name", sorted(set(FULL) - set(PLAIN)))
def test_absent_and_null_are_one_and_anything_else_is_another_key(name: str) -> None:
    assert key(**{name: None}) == key() != key(**{name: FULL[name]})


@pytest.mark.parametrize(
    ("one", "other"),
    [({"seed": 1}, {"seed": 2}), ({"stop": ["a"]}, {"stop": ["b"]}), ({"stop": []}, {}),
     ({"maxOutputTokens": 1}, {"maxOutputTokens": 2}), ({"temperature": 0}, {}),
     ({"model": "m-1"}, {"model": "M-1"}), ({"logitBias": 1}, {"logitBias": 2}),
     ({"providerOptions": {"vendor.mock.a": 1}}, {"providerOptions": {"vendor.mock.a": 2}}),
     ({"messages": [{"role": "user", "content": "\u00e9"}]},
      {"messages": [{"role": "user", "content": "e\u0301"}]})],
)  # fmt: skip
def test_what_can_change_the_answer_changes_the_key(one: Any, other: Any) -> None:
    assert key(**one) != key(**other)


@given(st.dictionaries(
    st.sampled_from(["stream", "metadata", "user", "timeoutMs", "traceparent", "tenantId", "runId",
                     "x-request-id", "credentialRef", "requestId", "retries"]),
    values,
))  # fmt: skip
def test_what_only_carries_the_request_does_not(noise: dict[str, Any]) -> None:
    assert key(**noise) == key()


def test_an_unknown_option_is_the_provider_s() -> None:
    assert key(logitBias=1) == key(providerOptions={"vendor.mock.logitBias": 1})
    assert key(provider="MOCK") == key() and key(tools=[]) == key()
    assert key(temperature=1) == key(temperature=1.0)
    assert key(stop="x") == key(stop=["x"])


@pytest.mark.parametrize(
    "wrong",
    [{"provider": None}, {"model": 1}, {"messages": "hi"},
     {"messages": [{"role": "robot", "content": ""}]},
     {"messages": [{"role": "user", "content": "x", "more": 1}]}, {"temperature": "hot"},
     {"tools": [{"parameters": {}}]}, {"responseFormat": {"type": "xml"}}, {"providerOptions": 1},
     {"temperature": float("nan")}],
)  # fmt: skip
def test_what_is_no_request_has_no_key(wrong: Any) -> None:
    with pytest.raises(BadRequest):
        key(**wrong)
