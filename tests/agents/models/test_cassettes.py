"""Recorded answers: the same question gets the same answer, and another one nothing at all."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.agents.models.cassettes import Cassette, list_differences
from moot.agents.models.protocol import (
    DemoContext,
    ModelAnswer,
    ModelMessage,
    ModelRequest,
    ModelTool,
    ModelToolCall,
    TokenUsage,
    ask_model,
    fold_pieces,
    pieces_from_answer,
    request_key,
)
from moot.agents.models.registry import ModelSettings
from moot.core.errors.models import ModelNotConfigured, ModelNotRecorded
from tests.support.agents.models import HELLO, KEY, REAL
from tests.support.model_provider import Reply, StandIn


def ways(file: Path, mode: Any) -> ModelSettings:
    return ModelSettings(mode=mode, cassette=str(file))


@pytest.mark.parametrize("kind", REAL)
async def test_what_was_recorded_is_said_again_without_a_provider(
    kind: str, book_of: Any, provider: StandIn, tmp_path: Path
) -> None:
    file = tmp_path / "tapes" / "it.jsonl"
    provider.will(Reply(thoughts=["Hm."], calls={"look": '{"at": 1}'}, finish="tool_calls"))
    first = await ask_model(book_of(kind, ways(file, "record")).choose("it"), HELLO)
    again = await ask_model(book_of(kind, ways(file, "replay")).choose("it"), HELLO)
    assert again == first
    assert len(provider.asked) == 1


async def test_replaying_needs_no_key(book_of: Any, tmp_path: Path) -> None:
    file = tmp_path / "it.jsonl"
    await ask_model(book_of("openai", ways(file, "record")).choose("it"), HELLO)
    book = book_of("openai", ways(file, "replay"), key_env="NOT_SET")
    assert (await ask_model(book.choose("it"), HELLO)).text == "Good day."


async def test_a_question_nobody_recorded_fails_and_shows_the_nearest(
    book_of: Any, tmp_path: Path
) -> None:
    file = tmp_path / "it.jsonl"
    recording = book_of("openai", ways(file, "record"))
    await ask_model(recording.choose("it"), HELLO)
    far = ModelRequest(
        model="", messages=(ModelMessage(role="user", content="x"),), temperature=1.0
    )
    await ask_model(recording.choose("it/other"), far)
    asked = msgspec.structs.replace(HELLO, temperature=0.5)
    with pytest.raises(ModelNotRecorded) as missed:
        await ask_model(book_of("openai", ways(file, "replay")).choose("it"), asked)
    assert "temperature: recorded nothing, asked 0.5" in missed.value.message
    completed = recording.choose("it").completed(HELLO)
    assert missed.value.details["nearest"] == request_key("openai", completed)


async def test_an_empty_cassette_says_so(book_of: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelNotRecorded, match="record it first"):
        await ask_model(book_of("openai", ways(tmp_path / "no", "replay")).choose("it"), HELLO)


async def test_the_file_is_ordered_readable_and_has_no_secrets(
    book_of: Any, provider: StandIn, tmp_path: Path
) -> None:
    file = tmp_path / "it.jsonl"
    book = book_of("openai", ways(file, "record"))
    provider.will(Reply(words=[f"Your key is {KEY}."]))
    for number in range(5):
        said = ModelMessage(role="user", content=f"{number} {KEY}")
        await ask_model(book.choose("it"), ModelRequest(model="", messages=(said,)))
    text = file.read_text()
    assert KEY not in text
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["key"] for row in rows] == sorted(row["key"] for row in rows)
    assert set(rows[0]) == {"key", "request", "answer"}
    before = file.read_bytes()
    await ask_model(book.choose("it"), ModelRequest(model="", messages=(said,)))
    assert file.read_bytes() == before


async def test_half_an_answer_is_not_recorded(
    book_of: Any, provider: StandIn, tmp_path: Path
) -> None:
    file = tmp_path / "it.jsonl"
    provider.will(Reply(cut_after=1))
    with pytest.raises(Exception, match="broke off"):
        await ask_model(book_of("openai", ways(file, "record"), attempts=1).choose("it"), HELLO)
    assert not file.exists()


def test_a_line_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "it.jsonl"
    file.write_text('{"key": 1}\n')
    with pytest.raises(ModelNotConfigured, match=r"it\.jsonl:1"):
        Cassette(file)


CALL = ModelToolCall(id="c1", name="look", arguments="{}")
OTHERS = [
    {"temperature": 0.1},
    {"top_p": 0.1},
    {"seed": 1},
    {"stop": ("x",)},
    {"max_output_tokens": 5},
    {"model": "other"},
    {"options": {"effort": "low"}},
    {"tools": (ModelTool(name="look"),)},
    {"messages": (ModelMessage(role="user", content="Hello?", name="Ann"),)},
    {"messages": (ModelMessage(role="assistant", content="Hello?"),)},
    {"messages": (ModelMessage(role="assistant", content="Hello?", tool_calls=(CALL,)),)},
]


@pytest.mark.parametrize("change", OTHERS)
def test_whatever_changes_the_answer_changes_the_key(change: dict[str, Any]) -> None:
    other = msgspec.structs.replace(HELLO, **change)
    assert request_key("openai", other) != request_key("openai", HELLO)


def test_who_asked_changes_the_key_of_the_demo_model_alone() -> None:
    told = msgspec.structs.replace(HELLO, context=DemoContext(agent="Ada"))
    assert request_key("openai", told) == request_key("openai", HELLO)
    assert request_key("demo", told) != request_key("demo", HELLO)


def test_the_order_of_tools_does_not_change_the_key() -> None:
    tools = (ModelTool(name="a"), ModelTool(name="b"))
    one = msgspec.structs.replace(HELLO, tools=tools)
    other = msgspec.structs.replace(HELLO, tools=tools[::-1])
    assert request_key("openai", one) == request_key("openai", other)


texts = st.text(max_size=20)
answers = st.builds(
    ModelAnswer,
    model=texts,
    finish=st.sampled_from(["end", "length", "tool_calls"]),
    text=texts,
    reasoning=texts,
    tool_calls=st.lists(st.builds(ModelToolCall, id=texts, name=texts, arguments=texts)).map(tuple),
    usage=st.none() | st.builds(TokenUsage, input_tokens=st.integers(0, 9)),
    response_id=st.none() | texts,
)


@given(answers)
def test_an_answer_and_its_pieces_are_the_same_thing(answer: ModelAnswer) -> None:
    assert fold_pieces(pieces_from_answer(answer)) == answer


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert list_differences(value, value) == []
