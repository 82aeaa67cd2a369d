"""Nodes for the wire tests, given to a server with --nodes."""

import asyncio
import sys
import time

from moot import NodeContext, node


@node("wire.flood")
async def flood(ctx: NodeContext, count: int, size: int) -> dict[str, int]:
    """Many large pieces of output, as fast as the disk takes them."""
    for number in range(count):
        await ctx.emit_chunk(f"{number}:" + "x" * size, number == count - 1)
    return {"count": count}


@node("wire.drip")
async def drip(ctx: NodeContext, count: int, every_ms: int) -> dict[str, int]:
    """Pieces of output at a steady pace."""
    for number in range(count):
        await asyncio.sleep(every_ms / 1000)
        await ctx.emit_chunk(str(number), number == count - 1)
    return {"count": count}


@node("wire.raise")
async def raise_(ctx: NodeContext) -> None:
    raise ValueError("a node went wrong")


@node("wire.raise-blocking")
def raise_blocking() -> None:
    raise KeyError("a blocking node went wrong")


@node("wire.exit")
async def exit_() -> None:
    sys.exit("a node wants to leave")


@node("wire.exit-blocking")
def exit_blocking() -> None:
    sys.exit("a blocking node wants to leave")


@node("wire.exit-pure", pure=True)
def exit_pure() -> None:
    sys.exit("a pure node wants to leave")


@node("wire.cancel-itself")
async def cancel_itself() -> None:
    raise asyncio.CancelledError


@node("wire.hang")
async def hang() -> None:
    await asyncio.Event().wait()


@node("wire.hang-blocking")
def hang_blocking() -> None:
    time.sleep(3600)


@node("wire.deep")
async def deep() -> dict[str, object]:
    """An answer no JSON reader will follow."""
    found: dict[str, object] = {}
    for _ in range(100_000):
        found = {"a": found}
    return found


@node("wire.unsayable")
async def unsayable() -> object:
    return {"a": object()}


@node("wire.surrogate")
async def surrogate() -> dict[str, str]:
    return {"text": "\ud800"}


@node("wire.flaky", retries=3)
async def flaky(ctx: NodeContext) -> dict[str, int]:
    if ctx.attempt < 3:
        raise OSError("not yet")
    return {"attempt": ctx.attempt}


@node("wire.deep-pure", pure=True)
def deep_pure() -> dict[str, object]:
    found: dict[str, object] = {}
    for _ in range(100_000):
        found = {"a": found}
    return found


@node("wire.rather-deep")
async def rather_deep() -> dict[str, object]:
    """Deep enough to be written at one place of the stack and unreadable at another."""
    found: dict[str, object] = {}
    for _ in range(300):
        found = {"a": found}
    return found


@node("wire.surrogate-pure", pure=True)
def surrogate_pure() -> dict[str, str]:
    return {"text": "\ud800"}


@node("wire.surrogate-chunk")
async def surrogate_chunk(ctx: NodeContext) -> None:
    await ctx.emit_chunk("\ud800", True)


@node("wire.surrogate-error", pure=True)
def surrogate_error() -> None:
    raise OSError("no such file: \udc80")


@node("wire.odd-log")
async def odd_log(ctx: NodeContext) -> None:
    await ctx.log("info", "odd", thing=object())


@node("wire.foreign-channel")
async def foreign_channel(ctx: NodeContext) -> None:
    await ctx.write("c", 1, "no-such-reducer")


@node("wire.remember")
async def remember(ctx: NodeContext, text: str) -> dict[str, list[str]]:
    await ctx.memory.put(text)
    return {"seen": [entry.content for entry in await ctx.memory.list()]}
