"""One at a time for each message id: a repeat waits for the first and finds its answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

Name = tuple[str, str, str]


class Turns:
    def __init__(self) -> None:
        self._under_way: dict[Name, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def lock(self, name: Name) -> AsyncIterator[None]:
        while name in self._under_way:
            await asyncio.shield(self._under_way[name])
        done = self._under_way[name] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._under_way[name]
            done.set_result(None)
