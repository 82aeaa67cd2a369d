"""Many clients at once: connections that are kept, with nothing around them that takes time."""

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit


class Line:
    """One connection of one caller; a request at a time."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        self._address = (str(parts.hostname), int(parts.port or 80))
        self._key = key

    async def __aenter__(self) -> "Line":
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Status and parsed body."""
        said = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(said)}\r\n\r\n"
        )
        self._writer.write(head.encode() + said)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.split(b"content-length:")[1].split(b"\r\n")[0])
        return int(answer[9:12]), json.loads(await self._reader.readexactly(length))
