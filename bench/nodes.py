"""Node types that only the bench uses; the server gets this file as MOOT_NODES."""

from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.user import node


@node("bench.chatter")
async def chatter(ctx: NodeContext, chunks: int) -> dict[str, int]:
    """Says much and keeps little: a long log with a small state."""
    for number in range(chunks):
        await ctx.emit_chunk(f"word {number} ")
    return {"chunks": chunks}
