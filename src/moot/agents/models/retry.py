"""Calls made again when it may help, within limits, and never in secret."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Literal

from msgspec import Struct

from moot.agents.models.protocol import Begun, Model, ModelRequest, Piece, Restarted
from moot.clock import LETTERS, Clock
from moot.core.errors.models import ModelError, ModelTimeout


class Limits(Struct, frozen=True, kw_only=True):
    """How long and how often. All of it is bounded."""

    attempts: int = 4
    #: until the first word of an attempt
    first_token_s: float = 60.0
    #: for the whole call, all attempts and waits together
    total_s: float = 300.0
    #: the waits grow from this by doubling up to that; chance takes off up to half
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0


class Attempt(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How one attempt went; ``wait_s`` is there when another one follows."""

    number: int
    of: int
    outcome: Literal["answered", "failed"]
    took_ms: int
    code: str | None = None
    message: str | None = None
    wait_s: float | None = None


Told = Callable[[Attempt], None]
Wait = Callable[[float], Awaitable[None]]


class Retrying:
    """A model whose passing failures are tried again; every attempt is told.

    When an attempt breaks after it has spoken, Restarted says that its words are void.
    """

    def __init__(
        self,
        model: Model,
        clock: Clock,
        limits: Limits | None = None,
        told: Told | None = None,
        wait: Wait = asyncio.sleep,
    ) -> None:
        self.provider = model.provider
        self._model, self._clock, self._wait = model, clock, wait
        self._limits = limits or Limits()
        self._told = told

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        began, most = self._seconds(), self._limits.attempts
        for number in range(1, most + 1):
            started, spoke = self._seconds(), False
            try:
                async with aclosing(self._attempt(request, began)) as pieces:
                    async for piece in pieces:
                        spoke = True
                        yield piece
            except ModelError as error:
                wait_s = self._wait_before_next(error, number, began)
                self._tell(number, started, error, wait_s)
                if wait_s is None:
                    raise
                await self._wait(wait_s)
                if spoke:
                    yield Restarted(attempt=number + 1, code=error.code)
            else:
                self._tell(number, started)
                return

    async def aclose(self) -> None:
        await self._model.aclose()

    async def _attempt(self, request: ModelRequest, began: float) -> AsyncGenerator[Piece, None]:
        """One call; only the waiting for a piece is timed, not what is done with it."""
        limits, started = self._limits, self._seconds()
        speaking = False
        async with aclosing(self._model.stream(request)) as pieces:
            while True:
                left = began + limits.total_s - self._seconds()
                if not speaking:
                    left = min(left, started + limits.first_token_s - self._seconds())
                try:
                    async with asyncio.timeout(max(0.0, left)):
                        piece = await anext(pieces)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise self._too_slow(speaking, began) from None
                speaking = speaking or not isinstance(piece, Begun)
                yield piece

    def _too_slow(self, speaking: bool, began: float) -> ModelTimeout:
        if speaking or self._seconds() - began >= self._limits.total_s:
            return ModelTimeout(
                f"The answer was not whole after {self._limits.total_s:g} s.", limit="total"
            )
        return ModelTimeout(f"Not a word for {self._limits.first_token_s:g} s.", limit="firstToken")

    def _wait_before_next(self, error: ModelError, number: int, began: float) -> float | None:
        """Seconds until the next attempt; None when there is none."""
        limits = self._limits
        if not error.passing or number >= limits.attempts:
            return None
        most = min(limits.longest_wait_s, limits.first_wait_s * 2.0 ** (number - 1))
        wait_s = most * (1 - fraction(self._clock) / 2)
        if error.wait_s is not None:
            wait_s = max(wait_s, error.wait_s)
        over = self._seconds() + wait_s >= began + limits.total_s
        return None if over else wait_s

    def _tell(
        self,
        number: int,
        started: float,
        error: ModelError | None = None,
        wait_s: float | None = None,
    ) -> None:
        if self._told is not None:
            self._told(
                Attempt(
                    number=number,
                    of=self._limits.attempts,
                    outcome="failed" if error else "answered",
                    took_ms=round((self._seconds() - started) * 1000),
                    code=error.code if error else None,
                    message=error.message if error else None,
                    wait_s=wait_s,
                )
            )

    def _seconds(self) -> float:
        return self._clock.micros() / 1_000_000


def fraction(clock: Clock) -> float:
    """A number from 0 up to 1, drawn from where all chance comes from."""
    drawn = clock.new_id("")[:8]
    alphabet = LETTERS[:32].decode()
    return sum(alphabet.index(letter) * 32.0**-place for place, letter in enumerate(drawn, start=1))
