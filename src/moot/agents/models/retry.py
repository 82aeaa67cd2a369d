"""Retry failed model calls within limits, and report every attempt."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Literal

from msgspec import Struct

from moot.agents.models.protocol import AnswerRestart, AnswerStart, Model, ModelRequest, Piece
from moot.clock import LETTERS, Clock
from moot.core.errors.models import ModelError, ModelTimeout


class RetryLimits(Struct, frozen=True, kw_only=True):
    attempts: int = 4
    #: until the first piece of an attempt
    first_token_s: float = 60.0
    #: for the whole call, with all attempts and waits
    total_s: float = 300.0
    #: waits double from the first to the longest, minus a random part of up to half
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0


class CallAttempt(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The outcome of one attempt. ``wait_s`` is set when another one follows."""

    number: int
    of: int
    outcome: Literal["answered", "failed"]
    took_ms: int
    code: str | None = None
    message: str | None = None
    wait_s: float | None = None


OnAttempt = Callable[[CallAttempt], None]
Wait = Callable[[float], Awaitable[None]]


class RetryingModel:
    """A model that retries temporary failures and reports every attempt.

    When an attempt fails after its first piece, AnswerRestart says that its pieces are void."""

    def __init__(
        self,
        model: Model,
        clock: Clock,
        limits: RetryLimits | None = None,
        on_attempt: OnAttempt | None = None,
        wait: Wait = asyncio.sleep,
    ) -> None:
        self.provider = model.provider
        self._model, self._clock, self._wait = model, clock, wait
        self._limits = limits or RetryLimits()
        self._on_attempt = on_attempt

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        began, attempts = self._seconds(), self._limits.attempts
        for number in range(1, attempts + 1):
            started, has_pieces = self._seconds(), False
            try:
                async with aclosing(self._attempt(request, began)) as pieces:
                    async for piece in pieces:
                        has_pieces = True
                        yield piece
            except ModelError as error:
                wait_s = self._wait_before_next(error, number, began)
                self._report(number, started, error, wait_s)
                if wait_s is None:
                    raise
                await self._wait(wait_s)
                if has_pieces:
                    yield AnswerRestart(attempt=number + 1, code=error.code)
            else:
                self._report(number, started)
                return

    async def aclose(self) -> None:
        await self._model.aclose()

    async def _attempt(self, request: ModelRequest, began: float) -> AsyncGenerator[Piece, None]:
        """Make one call. Only the wait for a piece is timed, not its processing."""
        limits, started = self._limits, self._seconds()
        has_answer = False
        async with aclosing(self._model.stream(request)) as pieces:
            while True:
                left = began + limits.total_s - self._seconds()
                if not has_answer:
                    left = min(left, started + limits.first_token_s - self._seconds())
                try:
                    async with asyncio.timeout(max(0.0, left)):
                        piece = await anext(pieces)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise self._timeout_error(has_answer, began) from None
                has_answer = has_answer or not isinstance(piece, AnswerStart)
                yield piece

    def _timeout_error(self, has_answer: bool, began: float) -> ModelTimeout:
        if has_answer or self._seconds() - began >= self._limits.total_s:
            message = f"The answer was not whole after {self._limits.total_s:g} s."
            return ModelTimeout(message, limit="total")
        return ModelTimeout(f"Not a word for {self._limits.first_token_s:g} s.", limit="firstToken")

    def _wait_before_next(self, error: ModelError, number: int, began: float) -> float | None:
        """Return the seconds until the next attempt, or None when there is none."""
        limits = self._limits
        if not error.passing or number >= limits.attempts:
            return None
        longest = min(limits.longest_wait_s, limits.first_wait_s * 2.0 ** (number - 1))
        wait_s = longest * (1 - random_fraction(self._clock) / 2)
        if error.wait_s is not None:
            wait_s = max(wait_s, error.wait_s)
        too_late = self._seconds() + wait_s >= began + limits.total_s
        return None if too_late else wait_s

    def _report(
        self,
        number: int,
        started: float,
        error: ModelError | None = None,
        wait_s: float | None = None,
    ) -> None:
        if self._on_attempt is None:
            return
        attempt = CallAttempt(
            number=number,
            of=self._limits.attempts,
            outcome="failed" if error else "answered",
            took_ms=round((self._seconds() - started) * 1000),
            code=error.code if error else None,
            message=error.message if error else None,
            wait_s=wait_s,
        )
        self._on_attempt(attempt)

    def _seconds(self) -> float:
        return self._clock.micros() / 1_000_000


def random_fraction(clock: Clock) -> float:
    """Return a number from 0 up to 1, from the random source of the clock."""
    letters = clock.new_id("")[:8]
    alphabet = LETTERS[:32].decode()
    places = enumerate(letters, start=1)
    return sum(alphabet.index(letter) * 32.0**-place for place, letter in places)
