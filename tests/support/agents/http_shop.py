"""An HTTP server on this machine for tools to call."""

import asyncio
import json
from typing import Any


class Shop:
    """An HTTP server on this machine; it echoes what it was asked unless told otherwise."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.status, self.body, self.kind = 200, None, "application/json"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *rest = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (row.partition(": ") for row in rest)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = line.split()
        self.asked.append(
            {"method": method, "path": path, "headers": headers, "body": json.loads(body or "null")}
        )
        text = self.body if self.body is not None else json.dumps({"path": path})
        writer.write(
            f"HTTP/1.1 {self.status} X\r\ncontent-type: {self.kind}\r\n"
            f"content-length: {len(text.encode())}\r\n\r\n{text}".encode()
        )
        await writer.drain()
        writer.close()
