"""What a provider says is believed only so far: its form, its size, its counts, and not its key."""

import json
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.agents.definitions.manifest import Agent
from moot.agents.invocation.context import Assignment, TranscriptTurn
from moot.agents.invocation.model_calls import estimate_tokens
from moot.agents.models.protocol import (
    ModelAnswer,
    ModelMessage,
    ModelRequest,
    ModelTool,
    ModelToolCall,
    TextPiece,
    ask_model,
)
from moot.agents.models.redact import RedactedStream, SecretKeys
from moot.agents.models.retry import CallAttempt
from moot.agents.models.validation import MOST_CALLS, MOST_CHARACTERS, nesting_depth
from moot.agents.prompts.council import SpeakerNames, build_council_prompt
from moot.config.models import Price
from moot.core.errors.models import ModelAnswerInvalid, ModelError
from moot.core.secrets import MASK
from moot.core.text.fencing import fence_content
from tests.support.agents.models import HELLO, KEY, REAL
from tests.support.injections import ALL, NAMES, PRETENDING
from tests.support.model_provider import Reply, StandIn

CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "look", "arguments": ""}}
DEEP = "[" * 700 + "]" * 700
MALFORMED: dict[str, Reply] = {
    "a number for a model": Reply(chunk={"model": 5}),
    "a list for an id": Reply(chunk={"id": [1]}),
    "a list for words": Reply(delta={"content": ["x"]}),
    "a number for a refusal": Reply(delta={"refusal": 7}),
    "a number for the id of a call": Reply(delta={"tool_calls": [{**CALL, "id": 5}]}),
    "a number for choices": Reply(chunk={"choices": 3}),
    "a word for a count": Reply(usage={"prompt_tokens": "many"}),
    "a fraction for a count": Reply(usage={"prompt_tokens": 1.5}),
    "half a character": Reply(words=["\ud83d"]),
    "arguments of 700 levels": Reply(calls={"look": DEEP}, finish="tool_calls"),
}


@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_answer_is_an_invalid_one_and_one_attempt(
    book_of: Any, provider: StandIn, reply: Reply
) -> None:
    provider.will(reply)
    book = book_of("openai", prices={"*": Price(input=1, output=1)})
    told: list[CallAttempt] = []
    with pytest.raises(ModelAnswerInvalid):
        await ask_model(book.choose("it", told.append), HELLO)
    assert [attempt.code for attempt in told] == ["model_answer_invalid"]


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": -5}, {"completion_tokens": 10**12}])
async def test_tokens_nobody_can_have_used_are_reckoned_from_the_length(
    book_of: Any, provider: StandIn, usage: Any
) -> None:
    provider.will(Reply(words=["x" * 400], usage=usage))
    answer = await ask_model(book_of("openai").choose("it"), HELLO)
    assert answer.usage is None
    found = estimate_tokens(HELLO, answer)
    assert (found.input_tokens, found.output_tokens, found.estimated) == (2, 100, True)


async def test_what_was_cached_costs_no_less_than_nothing(book_of: Any, provider: StandIn) -> None:
    provider.will(Reply(usage={"prompt_tokens_details": {"cached_tokens": 5000}}))
    book = book_of("openai", prices={"*": Price(input=10, output=10, cached_input=0)})
    chosen = book.choose("it")
    cost = chosen.cost((await ask_model(chosen, HELLO)).usage)
    assert cost is not None and cost.amount == Decimal("0.00002")


@pytest.mark.parametrize("kind", REAL)
async def test_a_key_is_struck_out_of_every_part_of_an_answer(
    book_of: Any, provider: StandIn, kind: str
) -> None:
    cut = [KEY[:5], KEY[5:9], KEY[9:] + " and ", KEY, " sk-ver"]
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    arguments = json.dumps({"a": KEY})[:-1] + f', "b": "{escaped}"}}'
    provider.will(
        Reply(words=cut, thoughts=["it is ", KEY], calls={"look": arguments}, finish="tool_calls")
    )
    pieces = [piece async for piece in book_of(kind).choose("it").stream(HELLO)]
    said = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    assert said == f"{MASK} and {MASK} sk-ver"
    [call] = [piece for piece in pieces if isinstance(piece, ModelToolCall)]
    assert json.loads(call.arguments) == {"a": MASK, "b": MASK}
    assert KEY not in repr(pieces)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=12), st.booleans())
def test_wherever_a_stream_is_cut_no_part_of_a_key_comes_out(
    cuts: list[int], escaped: bool
) -> None:
    key = "sk-very-secret"
    said = key if not escaped else "sk-\\u0076ery-\\u0073ecre\\u0074"
    text = f"so {said}{said} sk-v"
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    stream = RedactedStream(SecretKeys([key]))
    parts = [stream.add(text[a:b]) for a, b in pairwise(places)]
    assert "".join([*parts, stream.rest()]) == f"so {MASK}{MASK} sk-v"


@pytest.mark.parametrize("kind", REAL)
async def test_a_key_at_the_edge_of_a_long_complaint_is_struck_out_before_it_is_cut(
    book_of: Any, provider: StandIn, kind: str
) -> None:
    said = "x" * 490 + KEY
    provider.will(Reply(status=400, error={"type": "invalid_request_error", "message": said}))
    with pytest.raises(ModelError) as refused:
        await ask_model(book_of(kind).choose("it", attempts=1), HELLO)
    assert KEY[:6] not in refused.value.message + str(refused.value.details)


@pytest.mark.parametrize("kind", REAL)
async def test_an_answer_without_end_is_cut_off_at_its_bound(
    book_of: Any, provider: StandIn, kind: str
) -> None:
    provider.will(Reply(words=["x" * 90_000] * 20))
    answer = await ask_model(book_of(kind).choose("it"), HELLO)
    assert (len(answer.text), answer.finish) == (MOST_CHARACTERS, "length")


@pytest.mark.parametrize("kind", REAL)
async def test_more_tools_than_anybody_needs_at_once_are_no_answer(
    book_of: Any, provider: StandIn, kind: str
) -> None:
    calls = {f"look{number}": "{}" for number in range(MOST_CALLS + 1)}
    provider.will(Reply(calls=calls, finish="tool_calls"))
    with pytest.raises(ModelAnswerInvalid, match=str(MOST_CALLS)):
        await ask_model(book_of(kind).choose("it"), HELLO)


def test_brackets_in_words_are_not_levels() -> None:
    assert nesting_depth('{"a": "[[[[\\"[[", "b": [{}]}') == 3


@pytest.mark.parametrize("known", [True, False])
async def test_tools_that_were_used_are_told_also_when_none_may_be_used_now(
    book_of: Any, provider: StandIn, known: bool
) -> None:
    used = ModelToolCall(id="c1", name="look", arguments="{}")
    request = ModelRequest(
        model="",
        messages=(
            *HELLO.messages,
            ModelMessage(role="assistant", content="", tool_calls=(used,)),
            ModelMessage(role="tool", content="empty", tool_call_id="c1"),
        ),
        tools=(ModelTool(name="look"),) if known else (),
        tool_choice="none",
    )
    await ask_model(book_of("anthropic").choose("it"), request)
    body = provider.asked[0].body
    assert [tool["name"] for tool in body["tools"]] == ["look"]
    assert body["tool_choice"] == {"type": "none"}


async def test_a_server_that_does_not_know_schemas_is_asked_again_in_the_open(
    book_of: Any, provider: StandIn
) -> None:
    from tests.agents.models.test_providers import VOTING

    said = {"message": "unknown parameter: response_format", "type": "invalid"}
    provider.will(Reply(status=400, error=said), Reply(words=['{"vote": "no"}']))
    told: list[CallAttempt] = []
    await ask_model(book_of("openai").choose("it", told.append), VOTING)
    assert [attempt.code for attempt in told] == ["model_without_schemas", None]


def heard(texts: list[str], members: dict[str, Any]) -> Assignment:
    names = list(members)
    return Assignment(
        tenant="t", run_id="r", node_id="n", agent="host:me", invocation="i", task="speak",
        members={**members, "host:me": {}},
        transcript=tuple(
            TranscriptTurn(
                index=number, speaker=names[number % len(names)], role="agent", content=text
            )
            for number, text in enumerate(texts)
        ),
    )  # fmt: skip


PEOPLE = {
    f"host:n{number}": {"name": name}
    for number, name in enumerate([*NAMES, "the/host", "Ada/B", "Ada B", "ho/st", "Ada_B", "Bo"])
}


async def test_where_speakers_go_in_the_field_for_it_no_two_share_one_and_words_stay_words(
    book_of: Any, provider: StandIn
) -> None:
    prompt = build_council_prompt(Agent(name="me"), heard(ALL, PEOPLE))
    request = ModelRequest(model="", messages=prompt.messages)
    await ask_model(book_of("openai", names="field").choose("it"), request)
    said = provider.asked[0].body["messages"]
    assert "outside the words" in said[0]["content"]
    fields = [message["name"] for message in said[1:]]
    assert len(set(fields[:-1])) == len(PEOPLE) and fields[-1] == "host"
    assert not {"host", "the_host", "system", "user", "the_user"} & {*fields[:-1]}
    for message, text in zip(said[1:], ALL, strict=False):
        assert message["content"] == fence_content(text, prompt.names)[0]
    assert {n for n, text in enumerate(ALL) if text in PRETENDING} <= {*prompt.flagged}


def test_names_that_a_provider_could_write_alike_are_not_given_twice() -> None:
    cast = SpeakerNames(
        {f"host:m{n}": {"name": name} for n, name in enumerate(("Ada/B", "Ada B", "A.B"))}
    )
    assert [cast.called(f"host:m{n}") for n in range(3)] == ["Ada/B", "m1", "A.B"]


def test_an_estimate_counts_tools_and_their_calls() -> None:
    call = ModelToolCall(id="c", name="look", arguments="x" * 96)
    request = ModelRequest(model="", messages=HELLO.messages, tools=(ModelTool(name="a" * 38),))
    found = estimate_tokens(
        request, ModelAnswer(model="m", finish="tool_calls", tool_calls=(call,))
    )
    assert (found.input_tokens, found.output_tokens) == (12, 25)
