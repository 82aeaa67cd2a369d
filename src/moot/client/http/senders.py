"""How calls are carried out: what is sent again and when, how a stream is taken up again.

The rules stand here once, without I/O; the two senders at the end only wait in different ways.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from moot.client.errors import BadAnswer, Forbidden, TimedOut, Unreachable, refusal
from moot.client.http.operation import Again, Call
from moot.client.http.sse import Event, Frames, Spoken
from moot.clock import SystemClock
from moot.config.place import Place
from moot.wire.runs import Page

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
#: the last event that was seen -> the question whether it is the last there is
Proof = Callable[[int], Call[Page]]

#: answers after which another attempt may help: the first two say that nothing was done
REFUSED_FOR_NOW = (429, 503)
LOST_ON_THE_WAY = (502, 504)
FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 10.0
#: silence on a stream; the server sends a comment every 15 seconds unless it is set up otherwise
STREAM_SILENCE_S = 60.0
#: connections in a row on which nothing new came
MOST_FRUITLESS = 12


class Manner(Struct, frozen=True, kw_only=True):
    """How patient a client is."""

    #: seconds for one attempt of a call, and of it for the connection
    timeout: float = 30.0
    connect: float = 5.0
    #: attempts after the first one
    retries: int = 4


class Outlook:
    """What is known about the server: where, with which key, and in which manner to call."""

    def __init__(self, place: Place, manner: Manner) -> None:
        parts = urlsplit(place.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{place.url!r} is not an http address.")
        self.place, self.manner = place, manner
        self.clock = SystemClock()
        self.local = parts.hostname in ("127.0.0.1", "::1", "localhost")

    def options(self) -> dict[str, Any]:
        """For the HTTP client. A proxy of the environment is no way to this very machine."""
        headers = {"User-Agent": "moot-client"}
        if self.place.key is not None:
            headers["Authorization"] = f"Bearer {self.place.key}"
        return {
            "base_url": self.place.url,
            "headers": headers,
            "trust_env": not self.local,
            "follow_redirects": False,
        }

    def request(self, call: Call[Any], seconds: float | None = None) -> dict[str, Any]:
        import httpx2

        sent = call.sent
        headers = {"Accept": sent.accept, **sent.headers}
        if sent.body is not None:
            headers["Content-Type"] = "application/json"
        limit = self.manner.timeout + sent.seconds if seconds is None else seconds
        return {
            "method": call.method,
            "url": call.path,
            "params": sent.query or None,
            "content": sent.body,
            "headers": headers,
            "timeout": httpx2.Timeout(limit, connect=min(limit, self.manner.connect)),
        }


class Attempts:
    """One call and its attempts. Each outcome is told, and says how long to wait for the next."""

    def __init__(self, outlook: Outlook, call: Call[Any]) -> None:
        self.request = outlook.request(call)
        self._call, self._outlook, self._made = call, outlook, 0
        again = call.operation.again
        self._repeatable = again is not Again.ONCE
        if again is Again.KEYED:
            key = outlook.clock.new_id("sdk_")
            self.request["headers"].setdefault("Idempotency-Key", key)

    def lost(self, error: Exception) -> float:
        """Nothing came back. Raises Unreachable when it is not to be tried again."""
        import httpx2

        unsent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        wait = self._wait() if unsent or self._repeatable else None
        if wait is None:
            raise unreachable(self._outlook.place, error) from error
        return wait

    def answered(self, status: int, headers: Any, body: bytes) -> float | None:
        """None when this is the answer; raises what the server said when it is a refusal."""
        if status < 300:
            return None
        wait = None
        if status in REFUSED_FOR_NOW or (status in LOST_ON_THE_WAY and self._repeatable):
            wait = self._wait(headers.get("Retry-After"))
        if wait is None:
            raise refusal(status, body)
        return wait

    def _wait(self, asked: str | None = None) -> float | None:
        self._made += 1
        if self._made > self._outlook.manner.retries:
            return None
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (self._made - 1))
        if asked is not None and asked.isdigit():
            if int(asked) > LONGEST_WAIT_S:
                return None
            wait = max(wait, float(asked))
        return wait


class Following:
    """One stream over all its connections: where it is, and whether it is over."""

    def __init__(self, outlook: Outlook, call: Call[Any], after: int, timeout: float | None):
        self.over = False
        #: the server closes it without a word: perhaps there is nothing more
        self.doubtful = False
        self.after = after
        self._outlook, self._call = outlook, call
        self._until = None if timeout is None else time.monotonic() + timeout
        self._frames = Frames()
        self._fruitless = self._silent_ends = 0

    def request(self) -> dict[str, Any]:
        """The next connection, from the last event on."""
        self._frames, self._heard = Frames(), False
        self.doubtful = False
        left = STREAM_SILENCE_S
        if self._until is not None:
            left = min(left, max(0.001, self._until - time.monotonic()))
        request = self._outlook.request(self._call, left)
        if self.after >= 0:
            request["headers"]["Last-Event-ID"] = str(self.after)
        return request

    def take(self, piece: bytes) -> list[Event | Spoken]:
        self._in_time()
        found: list[Event | Spoken] = []
        for frame in self._frames.take(piece):
            if frame.id is not None:
                if frame.id <= self.after:
                    continue  # a state that is told once more to who comes back
                self.after = frame.id
            read = frame.read()
            self.over = self.over or (isinstance(read, Event) and read.terminal)
            found.append(read)
        if found or self._frames.comments:
            self._heard, self._fruitless = True, 0
        return found

    def ended(self) -> float:
        """The server closed it."""
        self._silent_ends = 0 if self._heard else self._silent_ends + 1
        self.doubtful = self._silent_ends > 1
        return self._wait(ConnectionError("the stream is closed again and again"))

    def lost(self, error: Exception) -> float:
        self._silent_ends = 0
        return self._wait(error)

    def refused(self, status: int, body: bytes) -> float:
        if status not in (*REFUSED_FOR_NOW, *LOST_ON_THE_WAY):
            raise refusal(status, body)
        return self._wait(refusal(status, body))

    def _wait(self, error: Exception) -> float:
        if self.over:
            return 0.0
        self._in_time()
        self._fruitless += 1
        if self._fruitless > MOST_FRUITLESS:
            raise unreachable(self._outlook.place, error) from error
        usual = FIRST_WAIT_S * 2.0 ** (self._fruitless - 1)
        return min(usual, self._frames.retry_s or LONGEST_WAIT_S, LONGEST_WAIT_S)

    def _in_time(self) -> None:
        if self._until is not None and time.monotonic() >= self._until:
            raise TimedOut("The stream has not come to its end in time; it goes on.")


def unreachable(place: Place, error: Exception) -> Unreachable:
    why = str(error) or type(error).__name__
    return Unreachable(f"No server answers at {place.url}: {why}. Start one with: moot serve")


class _Whole:
    """A body within its bound."""

    def __init__(self, call: Call[Any]) -> None:
        self._most, self._size = call.operation.largest, 0
        self._pieces: list[bytes] = []

    def take(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._most:
            raise BadAnswer(f"The answer is larger than {self._most} bytes.")
        self._pieces.append(piece)

    @property
    def body(self) -> bytes:
        return b"".join(self._pieces)


# httpx2 is what both ways of waiting can share: the standard library has no client for asyncio, and
# two transports with their own pools, time limits and streams would be a page of our own code each.
# It is loaded by the first client that is made; the command line, which must start at once and
# only waits in one way, keeps to http.client.


class Sender:
    """Carries calls out and waits for them."""

    def __init__(self, outlook: Outlook, transport: "httpx2.BaseTransport | None" = None) -> None:
        import httpx2

        self.outlook = outlook
        self._http = httpx2.Client(transport=transport, **outlook.options())

    def send(self, call: Call[T]) -> T:
        attempts = Attempts(self.outlook, call)
        while True:
            try:
                status, headers, body = self._answer(call, attempts.request)
            except self._lost as error:
                wait: float | None = attempts.lost(error)
            else:
                wait = attempts.answered(status, headers, body)
            if wait is None:
                return call.read(body)
            time.sleep(wait)

    @property
    def _lost(self) -> type[Exception]:
        import httpx2

        return httpx2.TransportError

    def _answer(self, call: Call[Any], request: dict[str, Any]) -> tuple[int, Any, bytes]:
        whole = _Whole(call)
        with self._opened(request) as answer:
            for piece in answer.iter_bytes():
                whole.take(piece)
            return answer.status_code, answer.headers, whole.body

    @contextmanager
    def _opened(self, request: dict[str, Any]) -> "Iterator[httpx2.Response]":
        with self._http.stream(**request) as answer:
            yield answer

    def follow(
        self, call: Call[Any], proof: Proof, after: int = -1, timeout: float | None = None
    ) -> Iterator[Event | Spoken]:
        """Every frame once, over any number of connections, until the run has ended; ``proof``
        asks whether it has, with nothing after the last frame."""
        following = Following(self.outlook, call, after, timeout)
        while not following.over:
            try:
                with self._opened(following.request()) as answer:
                    if answer.status_code == 200:
                        for piece in answer.iter_bytes():
                            yield from following.take(piece)
                        wait = following.ended()
                    else:
                        wait = following.refused(answer.status_code, answer.read())
            except self._lost as error:
                wait = following.lost(error)
            if following.doubtful:
                following.over = self._complete(proof(following.after))
            if not following.over:
                time.sleep(wait)

    def _complete(self, question: Call[Page]) -> bool:
        try:
            return self.send(question).is_complete
        except Forbidden:  # a key for one thread, which is all it may know
            return True

    def close(self) -> None:
        self._http.close()


class AsyncSender:
    """Carries calls out for asyncio."""

    def __init__(
        self, outlook: Outlook, transport: "httpx2.AsyncBaseTransport | None" = None
    ) -> None:
        import httpx2

        self.outlook = outlook
        self._http = httpx2.AsyncClient(transport=transport, **outlook.options())

    async def send(self, call: Call[T]) -> T:
        attempts = Attempts(self.outlook, call)
        while True:
            try:
                status, headers, body = await self._answer(call, attempts.request)
            except self._lost as error:
                wait: float | None = attempts.lost(error)
            else:
                wait = attempts.answered(status, headers, body)
            if wait is None:
                return call.read(body)
            await asyncio.sleep(wait)

    @property
    def _lost(self) -> type[Exception]:
        import httpx2

        return httpx2.TransportError

    async def _answer(self, call: Call[Any], request: dict[str, Any]) -> tuple[int, Any, bytes]:
        whole = _Whole(call)
        async with self._opened(request) as answer:
            async for piece in answer.aiter_bytes():
                whole.take(piece)
            return answer.status_code, answer.headers, whole.body

    @asynccontextmanager
    async def _opened(self, request: dict[str, Any]) -> "AsyncIterator[httpx2.Response]":
        async with self._http.stream(**request) as answer:
            yield answer

    async def follow(
        self, call: Call[Any], proof: Proof, after: int = -1, timeout: float | None = None
    ) -> AsyncIterator[Event | Spoken]:
        """Every frame once, over any number of connections, until the run has ended; ``proof``
        asks whether it has, with nothing after the last frame."""
        following = Following(self.outlook, call, after, timeout)
        while not following.over:
            try:
                async with self._opened(following.request()) as answer:
                    if answer.status_code == 200:
                        async for piece in answer.aiter_bytes():
                            for read in following.take(piece):
                                yield read
                        wait = following.ended()
                    else:
                        wait = following.refused(answer.status_code, await answer.aread())
            except self._lost as error:
                wait = following.lost(error)
            if following.doubtful:
                following.over = await self._complete(proof(following.after))
            if not following.over:
                await asyncio.sleep(wait)

    async def _complete(self, question: Call[Page]) -> bool:
        try:
            return (await self.send(question)).is_complete
        except Forbidden:  # a key for one thread, which is all it may know
            return True

    async def aclose(self) -> None:
        await self._http.aclose()
