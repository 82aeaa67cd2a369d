"""Names are looked up a few at a time, each for whoever asks.

The system's resolver takes as long as it likes and cannot be told to stop. Whoever's names are
never answered uses up its own share of the look-ups that may go on, and nobody else's.
"""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable

#: look-ups that go on at a time: of all, and of one tenant
MOST = 64
SHARE = 4
#: whoever waits for one waits no longer; the look-up itself may go on
SECONDS = 4.0

#: name, port -> its addresses; may take for ever
Ask = Callable[[str, int], list[str]]
#: whose it is, name, port
Asked = tuple[str, str, int]


class CallFailed(Exception):
    """Nobody answered as they should; the message says what happened."""

    def __init__(self, message: str, sent: bool) -> None:
        super().__init__(message)
        #: the other side may have acted on the request
        self.sent = sent


class NotAsked(CallFailed):
    """This host did not come to look the name up, which says nothing of whom it belongs to."""


def ask_system(name: str, port: int) -> list[str]:
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in found))


class Lookups:
    def __init__(self, ask: Ask = ask_system) -> None:
        self._ask = ask
        self._going: dict[Asked, asyncio.Future[list[str]]] = {}
        self._of: Counter[str] = Counter()
        self._ended = asyncio.Event()

    async def find(self, name: str, port: int, whose: str) -> list[str]:
        """Raises CallFailed when nobody knows the name, NotAsked when its turn did not come."""
        going = None
        try:
            async with asyncio.timeout(SECONDS):
                going = await self._begun((whose, name, port))
                return await asyncio.shield(going)
        except TimeoutError:
            if going is None:
                raise NotAsked("Too many names are being looked up.", sent=False) from None
            said = f"'{name}' could not be looked up within {SECONDS:g} seconds."
            raise CallFailed(said, sent=False) from None
        except OSError as error:
            said = f"'{name}' cannot be looked up: {error.strerror}."
            raise CallFailed(said, sent=False) from None
        except ValueError:
            raise CallFailed(f"'{name}' cannot be looked up.", sent=False) from None

    async def _begun(self, asked: Asked) -> asyncio.Future[list[str]]:
        """The look-up of this name, which may be going on already."""
        whose = asked[0]
        while asked not in self._going:
            if len(self._going) < MOST and self._of[whose] < SHARE:
                return self._begin(asked)
            self._ended.clear()
            await self._ended.wait()
        return self._going[asked]

    def _begin(self, asked: Asked) -> asyncio.Future[list[str]]:
        loop = asyncio.get_running_loop()
        going = self._going[asked] = loop.create_future()
        self._of[asked[0]] += 1
        # not of a pool: at the end of the process nobody waits for a resolver that is silent
        threading.Thread(
            target=self._look, args=(asked, loop), name="moot-lookup", daemon=True
        ).start()
        return going

    def _look(self, asked: Asked, loop: asyncio.AbstractEventLoop) -> None:
        found: list[str] | Exception
        try:
            found = self._ask(*asked[1:])
        except Exception as error:
            found = error
        try:
            loop.call_soon_threadsafe(self._end, asked, found)
        except RuntimeError:
            return  # the host has gone

    def _end(self, asked: Asked, found: list[str] | Exception) -> None:
        going = self._going.pop(asked)
        self._of[asked[0]] -= 1
        if self._of[asked[0]] == 0:
            del self._of[asked[0]]
        if isinstance(found, Exception):
            going.set_exception(found)
            going.exception()  # nobody may be waiting for it any more
        else:
            going.set_result(found)
        self._ended.set()
