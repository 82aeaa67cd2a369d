"""moot.catchUp: an agent sums up a part of a conversation for one reader. Only the host's own
workflow has it; its runs are in the reader's own room."""

from typing import Any

import msgspec
from msgspec import Struct

from moot.agents.invocation.desk import Assignment, Heard, Invoke
from moot.core.tenants import around
from moot.core.workflows.node_types import Completed, Failed, Kind, NodeType, Outcome
from moot.engine.nodes.agent import invoked
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import refused

TYPE_ID = "moot.catchUp"
#: its input
TOLD = "told"
#: model calls of one attempt: an answer, and retries of it
MOST_CALLS = 4


class Told(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is to be summed up, by whom and for whom; everything the author is told."""

    thread_id: str
    run_id: str
    title: str
    author: str
    reader: str
    first: int
    last: int
    #: turns in between that are not shown
    hidden: int
    turns: list[Heard]
    #: who takes part -> what is known of it
    members: dict[str, dict[str, Any]] = {}


def type_with(invoke: Invoke) -> NodeType:
    """The node type of a host whose agents are these."""

    async def work(ctx: NodeContext) -> Outcome:
        told = msgspec.convert(ctx.inputs[TOLD], Told)
        assignment = Assignment(
            tenant=around(ctx.tenant),
            run_id=ctx.run_id,
            node_id=ctx.node_id,
            agent=told.author,
            invocation=f"{ctx.run_id}:{ctx.node_id}:{ctx.attempt}",
            source="workflow-node",
            task="summarise",
            place=told.thread_id,
            turn=told.last + 1,
            transcript=tuple(told.turns),
            hidden=told.hidden,
            members=told.members,
            calls_left=MOST_CALLS,
            tools=[],
        )
        done = await invoked(ctx, invoke, assignment)
        if isinstance(done, Failed):
            return done
        if not isinstance(done.content, str):
            return refused("nothing_to_sum_up", "The author had nothing to say to it.")
        outputs = {"text": done.content, "meta": done.meta or {}, "agent": done.agent or {}}
        return Completed({**outputs, "usage": msgspec.to_builtins(done.usage)})

    return NodeType(
        type_id=TYPE_ID, kind=Kind.ACTIVITY, activity=work, retries=0, only_in="moot."
    )  # fmt: skip
