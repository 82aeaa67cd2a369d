"""Nodes whose effects outlive the server: each call leaves a line in a file."""

import asyncio
from pathlib import Path

from moot import NodeContext, node


@node("acme.pay")
async def pay(ctx: NodeContext, book: str) -> dict[str, str]:
    """A payment: it must never be made twice."""

    async def call(key: str) -> str:
        with Path(book).open("a") as lines:
            lines.write(f"pay {key}\n")
        await asyncio.sleep(0.01)
        return key

    return {"paid": await ctx.effect("bank:pay", call, idempotent=False)}


@node("acme.note")
async def note(ctx: NodeContext, book: str) -> dict[str, str]:
    """A note: writing it again under the same key does no harm."""

    async def call(key: str) -> str:
        with Path(book).open("a") as lines:
            lines.write(f"note {key}\n")
        await asyncio.sleep(0.01)
        return key

    return {"noted": await ctx.effect("office:note", call)}


@node("acme.remember")
async def remember(ctx: NodeContext) -> dict[str, list[str]]:
    """Three things remembered with pauses between them, and what is seen of them."""
    for number in range(3):
        await ctx.memory.put(str(number), tags=["crash"])
        await asyncio.sleep(0.005)
    return {"seen": [entry.content for entry in await ctx.memory.list(tag="crash")]}
