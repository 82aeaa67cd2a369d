"""Real SDKs against a provider on this machine: what it says comes out in our words."""

import asyncio
import json
import subprocess
import sys
from contextlib import aclosing
from typing import Any

import pytest

from moot.agents.models.protocol import (
    AnswerFormat,
    AnswerStart,
    AnswerStop,
    DemoContext,
    ModelMessage,
    ModelRequest,
    ModelTool,
    ModelToolCall,
    TextPiece,
    TokenUsage,
    ask_model,
    parse_structured_answer,
)
from moot.config.extras import install_hint
from moot.core.errors import MootError
from moot.core.errors.models import (
    ModelAnswerInvalid,
    ModelAuth,
    ModelBadRequest,
    ModelDisconnected,
    ModelError,
    ModelNotConfigured,
    ModelRateLimited,
    ModelUnavailable,
)
from tests.support.agents.models import HELLO, KEY, REAL
from tests.support.model_provider import Reply, StandIn

VOTE = AnswerFormat(
    schema={
        "type": "object",
        "properties": {"vote": {"enum": ["yes", "no"]}},
        "required": ["vote"],
        "additionalProperties": False,
    }
)
VOTING = ModelRequest(model="", messages=HELLO.messages, response_format=VOTE)

pytestmark = pytest.mark.parametrize("kind", REAL)


async def failure(book: Any, request: ModelRequest = HELLO) -> ModelError:
    with pytest.raises(MootError) as refused:
        await ask_model(book.choose("it", attempts=1), request)
    assert isinstance(refused.value, ModelError)
    assert KEY not in str(refused.value.details) + refused.value.message
    return refused.value


async def test_words_arrive_one_by_one_and_then_the_count_and_the_end(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    pieces = [piece async for piece in book_of(kind).choose("it").stream(HELLO)]
    assert isinstance(pieces[0], AnswerStart)
    assert pieces[0].model == "big-0613"
    assert pieces[0].response_id
    assert pieces[1:] == [
        TextPiece("Good "),
        TextPiece("day."),
        TokenUsage(input_tokens=11, output_tokens=2),
        AnswerStop("end"),
    ]
    assert KEY in provider.asked[0].headers.get("authorization", "") + provider.asked[
        0
    ].headers.get("x-api-key", "")


async def test_everything_that_was_asked_for_is_sent(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    request = ModelRequest(
        model="",
        messages=(
            ModelMessage(role="system", content="Be brief."),
            ModelMessage(role="user", content="Shall we?", name="Ann"),
            ModelMessage(
                role="assistant",
                content="Let me look.",
                tool_calls=(ModelToolCall(id="c1", name="look", arguments='{"at": 1}'),),
            ),
            ModelMessage(role="tool", content="empty", tool_call_id="c1"),
        ),
        tools=(ModelTool(name="look", description="Looks.", parameters={"type": "object"}),),
        temperature=0.5,
        top_p=0.9,
        max_output_tokens=50,
        stop=("END",),
        options={"service_tier": "flex"},
        context=DemoContext(agent="Ada", persona="not for the provider"),
    )
    await ask_model(book_of(kind).choose("it"), request)
    body = provider.asked[0].body
    said = json.dumps(body)
    assert body["temperature"] == 0.5
    assert body["top_p"] == 0.9
    assert body["max_tokens"] == 50
    assert body["service_tier"] == "flex"
    assert body.get("stop", body.get("stop_sequences")) == ["END"]
    assert "Be brief." in said
    assert "empty" in said
    assert '\\"speaker\\": \\"Ann\\"' in said
    assert "not for the provider" not in said
    asked = body["messages"][-1]
    assert asked.get("tool_call_id") == "c1" or asked["content"][0]["tool_use_id"] == "c1"


async def test_calls_of_tools_are_put_together_from_their_splinters(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    calls = {"look": '{"at": "the sky"}', "wait": '{"s": 3}'}
    provider.will(Reply(words=["One moment."], calls=calls, finish="tool_calls"))
    answer = await ask_model(book_of(kind).choose("it"), HELLO)
    assert answer.finish == "tool_calls"
    assert [(call.name, call.arguments) for call in answer.tool_calls] == list(calls.items())
    assert [call.id for call in answer.tool_calls] == ["call_0", "call_1"]
    assert answer.text == "One moment."


async def test_thoughts_are_kept_apart_from_words(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    provider.will(Reply(thoughts=["Hm, ", "well."]))
    answer = await ask_model(book_of(kind).choose("it"), HELLO)
    assert (answer.reasoning, answer.text) == ("Hm, well.", "Good day.")


async def test_a_refusal_is_an_answer_with_its_reason(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    provider.will(Reply(words=[], refusal="I will not help with that.", finish="refusal"))
    answer = await ask_model(book_of(kind).choose("it"), VOTING)
    assert (answer.finish, answer.refusal) == ("refusal", "I will not help with that.")
    with pytest.raises(ModelAnswerInvalid):
        parse_structured_answer(VOTING, answer)


async def test_a_filter_that_cuts_an_answer_is_a_refusal_without_words(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    provider.will(Reply(finish="refusal"))
    answer = await ask_model(book_of(kind).choose("it"), HELLO)
    assert (answer.finish, answer.refusal) == ("refusal", "")


async def test_an_answer_that_is_too_long_says_so(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    provider.will(Reply(finish="length"))
    answer = await ask_model(book_of(kind).choose("it"), HELLO)
    assert answer.finish == "length"
    with pytest.raises(ModelAnswerInvalid, match="more output tokens"):
        parse_structured_answer(VOTING, answer)


async def test_a_schema_goes_along_and_the_value_comes_back(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    provider.will(Reply(words=['{"vote":', ' "yes"}']))
    answer = await ask_model(book_of(kind).choose("it"), VOTING)
    assert parse_structured_answer(VOTING, answer) == {"vote": "yes"}
    assert "json_schema" in json.dumps(provider.asked[0].body)


@pytest.mark.parametrize("words", ["{", "Yes!", '{"vote": "maybe"}', '["yes"]'])
async def test_a_value_that_does_not_fit_is_refused(
    kind: str, book_of: Any, provider: StandIn, words: str
) -> None:
    provider.will(Reply(words=[words]))
    answer = await ask_model(book_of(kind).choose("it"), VOTING)
    with pytest.raises(ModelAnswerInvalid):
        parse_structured_answer(VOTING, answer)


async def test_a_server_that_does_not_know_schemas_is_asked_in_words(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    said = {"message": "unknown parameter: response_format / output_config", "type": "invalid"}
    provider.will(Reply(status=400, error=said), Reply(words=['```json\n{"vote": "no"}\n```']))
    book = book_of(kind)
    answer = await ask_model(book.choose("it"), VOTING)
    assert parse_structured_answer(VOTING, answer) == {"vote": "no"}
    assert "JSON Schema" in json.dumps(provider.asked[1].body)
    await ask_model(book.choose("it"), VOTING)
    assert len(provider.asked) == 3  # it is remembered


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (401, {"message": f"no such key: {KEY}"}, ModelAuth),
        (403, {"message": "not for you"}, ModelAuth),
        (404, {"message": "no such model"}, ModelBadRequest),
        (400, {"message": "the prompt is too long"}, ModelBadRequest),
        (429, {"message": "slower"}, ModelRateLimited),
        (429, {"message": "pay first", "code": "insufficient_quota"}, ModelAuth),
        (500, {"message": "oops"}, ModelUnavailable),
        (529, {"message": "overloaded", "type": "overloaded_error"}, ModelUnavailable),
        (302, {"message": "gone elsewhere"}, ModelBadRequest),
    ],
)
async def test_a_status_becomes_our_error(
    kind: str,
    book_of: Any,
    provider: StandIn,
    status: int,
    error: dict[str, Any],
    expected: type[ModelError],
) -> None:
    if status == 429 and "code" in error and kind == "anthropic":
        error = {**error, "type": "billing_error"}
    where = {"location": "http://127.0.0.1:9/"} if status == 302 else {}
    provider.will(Reply(status=status, error=error, headers=where))
    found = await failure(book_of(kind))
    assert type(found) is expected
    assert len(provider.asked) == 1  # the SDK does not try again by itself


async def test_how_long_to_wait_is_told_along(kind: str, book_of: Any, provider: StandIn) -> None:
    provider.will(Reply(status=429, error={"message": "slower"}, headers={"retry-after": "7"}))
    found = await failure(book_of(kind))
    assert (found.wait_s, found.retry_after) == (7.0, 7)


async def test_a_line_cut_in_the_middle_is_not_an_end(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    provider.will(Reply(cut_after=1))
    assert type(await failure(book_of(kind))) is ModelDisconnected


async def test_words_that_are_no_json_are_no_answer(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    provider.will(Reply(garbage=True))
    assert type(await failure(book_of(kind))) is ModelAnswerInvalid


async def test_a_provider_that_gives_up_in_the_middle_may_be_asked_again(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    provider.will(Reply(error_event={"type": "overloaded_error", "message": "too much"}))
    found = await failure(book_of(kind))
    assert type(found) is ModelUnavailable
    assert found.passing


async def test_nobody_there_is_said_with_the_address(kind: str, book_of: Any) -> None:
    found = await failure(book_of(kind, url="http://127.0.0.1:9/v1"))
    assert type(found) is ModelUnavailable
    assert "http://127.0.0.1:9/v1" in found.message


async def test_who_stops_listening_lets_go_of_the_line(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    book = book_of(kind)
    async with aclosing(book.choose("it").stream(HELLO)) as pieces:
        async for piece in pieces:
            if isinstance(piece, TextPiece):
                break
    async with asyncio.timeout(60):
        await ask_model(book.choose("it"), HELLO)


async def test_a_key_that_is_not_set_is_missed_before_anybody_is_called(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    with pytest.raises(ModelNotConfigured, match="OTHER_KEY, which is not set"):
        book_of(kind, key_env="OTHER_KEY").choose("it")
    assert provider.asked == []


async def test_a_package_that_is_not_installed_is_named(
    kind: str, book_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, kind, None)
    found = await failure(book_of(kind))
    assert install_hint(kind) in found.message


def test_no_sdk_is_loaded_before_it_is_used(kind: str) -> None:
    code = (
        "import sys; import moot.agents.models.registry, moot.cli, moot.config.settings;"
        "from moot.agents.models.registry import ModelRegistry; from moot.clock import SystemClock;"
        "ModelRegistry({}, lambda name: 'k', SystemClock()).choose('demo');"
        f"ModelRegistry({{}}, lambda name: 'k', SystemClock()).choose('{kind}/x');"
        "print([name for name in ('openai', 'anthropic', 'pydantic', 'httpx2')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
