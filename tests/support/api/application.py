"""The application without a listener: requests go straight to it."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from moot.api.app import App

PATIENCE = 60.0


class Said(NamedTuple):
    status: int
    body: Any


async def ask(
    app: App,
    method: str,
    path: str,
    body: Any = None,
    address: str = "192.0.2.1",
    **headers: str,
) -> Said:
    """One request; ``idempotency_key="a"`` is the header Idempotency-Key."""
    status, pieces, asked = 0, [], False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()  # who reads it stays to the end
        asked = True
        return {"type": "http.request", "body": b"" if body is None else msgspec.json.encode(body)}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        pieces.append(message.get("body", b""))

    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "client": (address, 1),
        "headers": [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ],
    }
    await app(scope, receive, send)
    whole = b"".join(pieces)
    return Said(status, msgspec.json.decode(whole) if whole else None)


async def soon(reached: Callable[[], Any]) -> None:
    """Until it is so, however slow the machine is."""
    async with asyncio.timeout(PATIENCE):
        while not reached():
            await asyncio.sleep(0.002)
