"""Run blocking functions in daemon threads of their own.

There is no pool: a function that never returns must neither use up a pool nor keep the server from
stopping. The number of threads is bounded; abandoned threads count until they return.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

MOST_THREADS = 512


class TooManyThreads(Exception):
    """Blocking calls that never return have used up the threads there may be."""


_alive = threading.BoundedSemaphore(MOST_THREADS)


async def run_in_thread(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if not _alive.acquire(blocking=False):
        raise TooManyThreads(
            f"{MOST_THREADS} blocking calls have not returned; restart the server."
        )
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if done.done():
            return  # the caller has given up
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(value)

    def work() -> None:
        value: Any = None
        failure: BaseException | None = None
        try:
            value = function(**arguments)
        except BaseException as error:  # sys.exit() too: the caller waits for an answer
            failure = error
        finally:
            _alive.release()
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=work, name="moot-blocking", daemon=True).start()
    return await done
