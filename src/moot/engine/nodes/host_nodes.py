"""Node types of the host's own workflows: catch-up and deployment."""

import msgspec
from msgspec import Struct

from moot.agents.invocation.context import Assignment, Invoke, TranscriptTurn
from moot.core.agents.deployments import check_deployment_events
from moot.core.tenants import parent_tenant
from moot.core.workflows.node_types import Completed, Failed, NodeCall, NodeKind, NodeType, Outcome
from moot.engine.nodes.agent import invoke_agent
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import permanent_failure

TYPE_ID = "moot.catchUp"
#: the name of the catch-up's input
CATCH_UP_INPUT = "told"
#: model calls of one attempt: an answer, and retries of it
MOST_CALLS = 4


class CatchUpInput(Struct, frozen=True, kw_only=True, rename="camel"):
    """The part of a conversation to sum up, its author and its reader."""

    thread_id: str
    run_id: str
    title: str
    author: str
    reader: str
    first: int
    last: int
    #: number of turns in between that are left out
    hidden: int
    turns: list[TranscriptTurn]
    #: participant -> its profile
    members: dict[str, dict[str, object]] = {}


def build_type(invoke: Invoke) -> NodeType:
    """Return the catch-up node type of a host with this invoker.

    Its runs are in the reader's private room.
    """

    async def work(ctx: NodeContext) -> Outcome:
        request = msgspec.convert(ctx.inputs[CATCH_UP_INPUT], CatchUpInput)
        assignment = Assignment(
            tenant=parent_tenant(ctx.tenant),
            run_id=ctx.run_id,
            node_id=ctx.node_id,
            agent=request.author,
            invocation=f"{ctx.run_id}:{ctx.node_id}:{ctx.attempt}",
            source="workflow-node",
            task="summarise",
            place=request.thread_id,
            turn=request.last + 1,
            transcript=tuple(request.turns),
            hidden=request.hidden,
            members=request.members,
            calls_left=MOST_CALLS,
            tools=[],
        )
        done = await invoke_agent(ctx, invoke, assignment)
        if isinstance(done, Failed):
            return done
        if not isinstance(done.content, str):
            return permanent_failure("nothing_to_sum_up", "The author had nothing to say to it.")
        outputs = {"text": done.content, "meta": done.meta or {}, "agent": done.agent or {}}
        return Completed({**outputs, "usage": msgspec.to_builtins(done.usage)})

    return NodeType(
        type_id=TYPE_ID, kind=NodeKind.ACTIVITY, activity=work, retries=0, only_in="moot."
    )  # fmt: skip


#: the name of the deployment's input: [type, payload] of each event
DEPLOYMENT_EVENTS = "told"


def _tell(call: NodeCall) -> Completed:
    """Record the changes of an agent's versions in the run's log."""
    return Completed(told=tuple(check_deployment_events(call.inputs[DEPLOYMENT_EVENTS])))


DEPLOYED = NodeType(type_id="moot.deployed", kind=NodeKind.INSTANT, instant=_tell, only_in="moot.")
