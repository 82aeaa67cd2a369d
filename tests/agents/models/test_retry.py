"""Calls that are made again: what helps, how long is waited, and that everybody is told."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.agents.models.protocol import (
    AnswerRestart,
    AnswerStop,
    ModelRequest,
    Piece,
    TextPiece,
    ask_model,
    fold_pieces,
)
from moot.agents.models.retry import CallAttempt, RetryingModel, RetryLimits, random_fraction
from moot.clock import SystemClock
from moot.config.models import DemoFailure
from moot.core.errors.models import (
    ModelAuth,
    ModelBadRequest,
    ModelDisconnected,
    ModelError,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
)
from tests.support.agents.models import HELLO, REAL, Waits
from tests.support.model_provider import Reply, StandIn

PASSING = [ModelRateLimited, ModelUnavailable, ModelDisconnected, ModelTimeout]


class Stumbling:
    """Fails with these errors, one after the other, and then answers."""

    provider = "stumbling"

    def __init__(self, *errors: ModelError, words_before: int = 0) -> None:
        self.errors = list(errors)
        self.words_before = words_before
        self.calls = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.calls += 1
        if self.errors:
            for _ in range(self.words_before):
                yield TextPiece("half ")
            raise self.errors.pop(0)
        yield TextPiece("whole")
        yield AnswerStop("end")

    async def aclose(self) -> None: ...


class Silent:
    """Says so many words and then nothing, for ever."""

    provider = "silent"

    def __init__(self, words: int = 0) -> None:
        self.words = words
        self.drop_all = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        try:
            for _ in range(self.words):
                yield TextPiece("word ")
            await asyncio.Event().wait()
        finally:
            self.drop_all += 1

    async def aclose(self) -> None: ...


def retrying(model: Any, told: Any = None, wait: Any = None, **limits: Any) -> RetryingModel:
    return RetryingModel(model, SystemClock(), RetryLimits(**limits), told, wait or Waits())


@pytest.mark.parametrize("error", PASSING)
async def test_what_may_pass_is_tried_again_and_told(error: type[ModelError]) -> None:
    told: list[CallAttempt] = []
    waits = Waits()
    model = Stumbling(error("no"), error("no"))
    answer = await ask_model(retrying(model, told.append, waits), HELLO)
    assert answer.text == "whole"
    assert [one.code for one in told] == [error.code, error.code, None]
    assert [one.number for one in told] == [1, 2, 3]
    assert [one.wait_s for one in told] == [*waits.seconds, None]


@pytest.mark.parametrize("error", [ModelAuth, ModelBadRequest, ModelError])
async def test_what_does_not_pass_is_not_tried_again(error: type[ModelError]) -> None:
    told: list[CallAttempt] = []
    model = Stumbling(error("no"))
    with pytest.raises(error):
        await ask_model(retrying(model, told.append), HELLO)
    assert model.calls == 1
    assert [one.outcome for one in told] == ["failed"]


async def test_there_is_an_end_to_it() -> None:
    model = Stumbling(*[ModelUnavailable("down") for _ in range(50)])
    told: list[CallAttempt] = []
    with pytest.raises(ModelUnavailable):
        await ask_model(retrying(model, told.append, attempts=3), HELLO)
    assert model.calls == 3
    assert told[-1].wait_s is None


async def test_words_of_a_broken_attempt_are_called_void() -> None:
    model = Stumbling(ModelDisconnected("cut"), words_before=2)
    pieces = [piece async for piece in retrying(model).stream(HELLO)]
    assert AnswerRestart(attempt=2, code="model_disconnected") in pieces
    answer = fold_pieces(pieces)
    assert (answer.text, answer.attempts) == ("whole", 2)


async def test_who_has_not_spoken_takes_nothing_back() -> None:
    pieces = [piece async for piece in retrying(Stumbling(ModelUnavailable("x"))).stream(HELLO)]
    assert not any(isinstance(piece, AnswerRestart) for piece in pieces)


async def test_the_provider_is_left_alone_as_long_as_it_asks() -> None:
    waits = Waits()
    await ask_model(retrying(Stumbling(ModelRateLimited("slower", 12.0)), wait=waits), HELLO)
    assert waits.seconds == [12.0]


async def test_a_wait_longer_than_the_call_may_take_is_not_begun() -> None:
    waits = Waits()
    with pytest.raises(ModelRateLimited) as refused:
        slow = Stumbling(ModelRateLimited("slower", 500.0))
        await ask_model(retrying(slow, wait=waits, total_s=60.0), HELLO)
    assert waits.seconds == []
    assert refused.value.retry_after == 500


@given(st.integers(1, 12), st.floats(0.01, 2), st.floats(0.01, 60))
def test_waits_grow_and_stay_within_their_bounds(number: int, first: float, longest: float) -> None:
    limits = RetryLimits(attempts=20, first_wait_s=first, longest_wait_s=longest, total_s=10_000)
    model = RetryingModel(Stumbling(), SystemClock(), limits)
    began = SystemClock().micros() / 1_000_000
    wait_s = model._wait_before_next(ModelUnavailable("x"), number, began)
    assert wait_s is not None
    most = min(longest, first * 2 ** (number - 1))
    assert most / 2 <= wait_s <= most


def test_chance_is_a_share() -> None:
    drawn = {random_fraction(SystemClock()) for _ in range(50)}
    assert len(drawn) == 50
    assert all(0 <= one < 1 for one in drawn)


async def test_silence_before_the_first_word_has_a_limit() -> None:
    silent = Silent()
    with pytest.raises(ModelTimeout, match="Not a word") as late:
        await ask_model(retrying(silent, attempts=2, first_token_s=0.01), HELLO)
    assert late.value.details["limit"] == "firstToken"
    assert silent.drop_all == 2


async def test_the_whole_call_has_a_limit() -> None:
    silent = Silent(words=3)
    with pytest.raises(ModelTimeout, match="not whole") as late:
        await ask_model(retrying(silent, total_s=0.02, first_token_s=60.0), HELLO)
    assert late.value.details["limit"] == "total"
    assert silent.drop_all == 1


@pytest.mark.parametrize("kind", REAL)
async def test_a_real_provider_is_tried_again_after_what_it_asks_for(
    kind: str, book_of: Any, provider: StandIn, waits: Waits
) -> None:
    busy = Reply(status=429, error={"message": "slower"}, headers={"retry-after": "3"})
    provider.will(busy, Reply(status=500, error={"message": "oops"}), Reply(cut_after=1), Reply())
    told: list[CallAttempt] = []
    answer = await ask_model(book_of(kind).choose("it", told.append), HELLO)
    assert (answer.text, answer.attempts) == ("Good day.", 4)
    codes = ["model_rate_limited", "model_unavailable", "model_disconnected", None]
    assert [one.code for one in told] == codes
    assert waits.seconds[0] == 3.0


@pytest.mark.parametrize("kind", REAL)
async def test_a_real_provider_that_says_nothing_is_given_up(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    never = asyncio.Event()
    provider.will(Reply(wait_for=never))
    with pytest.raises(ModelTimeout):
        await ask_model(book_of(kind, first_token_s=0.2, attempts=1).choose("it"), HELLO)
    never.set()


@pytest.mark.parametrize("kind", ["timeout", "rate_limit", "disconnect"])
async def test_the_demo_model_can_fail_and_recover(kind: Any, book_of: Any) -> None:
    told: list[CallAttempt] = []
    book = book_of("demo", fail=DemoFailure(kind=kind, times=2))
    answer = await ask_model(book.choose("it", told.append), HELLO)
    assert answer.finish == "end"
    assert [one.outcome for one in told] == ["failed", "failed", "answered"]
