"""Look up host names with a limit for each tenant.

The resolver of the system may never answer and cannot be stopped. A tenant whose names get no
answer uses up only its own share of the look-ups."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

#: concurrent look-ups: in total, and per tenant
MOST = 64
SHARE = 4
#: the caller waits at most this long; the look-up itself may continue
SECONDS = 4.0

#: name, port -> its addresses; may never return
Resolver = Callable[[str, int], list[str]]
#: tenant, name, port
LookupKey = tuple[str, str, int]


class CallFailed(Exception):
    """The call got no usable answer; the message says what happened."""

    def __init__(self, message: str, sent: bool) -> None:
        super().__init__(message)
        #: whether the receiver may have acted on the request
        self.sent = sent


class LookupNotStarted(CallFailed):
    """The host did not start the look-up, so the failure says nothing about the receiver."""


def resolve_with_system(name: str, port: int) -> list[str]:
    rows = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


class DnsLookups:
    """Look-ups in threads, shared by callers that ask for the same name."""

    def __init__(self, resolve: Resolver = resolve_with_system) -> None:
        self._resolve = resolve
        self._running: dict[LookupKey, asyncio.Future[list[str]]] = {}
        self._count_by_tenant: Counter[str] = Counter()
        self._ended = asyncio.Event()

    async def find(self, name: str, port: int, whose: str) -> list[str]:
        """Return the addresses of a name. Raise CallFailed when it has none, LookupNotStarted when
        no look-up was free in time."""
        lookup = None
        try:
            async with asyncio.timeout(SECONDS):
                lookup = await self._join((whose, name, port))
                return await asyncio.shield(lookup)
        except TimeoutError:
            if lookup is None:
                raise LookupNotStarted("Too many names are being looked up.", sent=False) from None
            message = f"'{name}' could not be looked up within {SECONDS:g} seconds."
            raise CallFailed(message, sent=False) from None
        except OSError as error:
            message = f"'{name}' cannot be looked up: {error.strerror}."
            raise CallFailed(message, sent=False) from None
        except ValueError:
            raise CallFailed(f"'{name}' cannot be looked up.", sent=False) from None

    async def _join(self, key: LookupKey) -> asyncio.Future[list[str]]:
        """Return the running look-up of this name, or start one when there is room."""
        whose = key[0]
        while key not in self._running:
            if len(self._running) < MOST and self._count_by_tenant[whose] < SHARE:
                return self._start_lookup(key)
            self._ended.clear()
            await self._ended.wait()
        return self._running[key]

    def _start_lookup(self, key: LookupKey) -> asyncio.Future[list[str]]:
        loop = asyncio.get_running_loop()
        lookup = self._running[key] = loop.create_future()
        self._count_by_tenant[key[0]] += 1
        # not a pool: the end of the process must not wait for a silent resolver
        run, name = self._run_lookup, "moot-lookup"
        threading.Thread(target=run, args=(key, loop), name=name, daemon=True).start()
        return lookup

    def _run_lookup(self, key: LookupKey, loop: asyncio.AbstractEventLoop) -> None:
        result: list[str] | Exception
        try:
            result = self._resolve(*key[1:])
        except Exception as error:
            result = error
        with suppress(RuntimeError):  # the host has gone
            loop.call_soon_threadsafe(self._end_lookup, key, result)

    def _end_lookup(self, key: LookupKey, result: list[str] | Exception) -> None:
        lookup = self._running.pop(key)
        self._count_by_tenant -= Counter((key[0],))  # drops the zero counts
        if isinstance(result, Exception):
            lookup.set_exception(result)
            lookup.exception()  # avoids a warning when no caller waits any more
        else:
            lookup.set_result(result)
        self._ended.set()
