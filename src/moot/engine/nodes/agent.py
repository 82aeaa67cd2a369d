"""Node types of agents: ``moot.agent``, and the host's own for catch-up.

Council members speak through the same ``moot.agents.invocation.invoke``.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.agents.invocation.context import (
    AgentTask,
    Assignment,
    InvocationResult,
    Invoke,
    TranscriptTurn,
)
from moot.core.agents.deployments import check_deployment_events
from moot.core.errors import AgentNotFound, NoActiveDeployment
from moot.core.json import schema
from moot.core.tenants import parent_tenant
from moot.core.text.fencing import content_text
from moot.core.workflows.node_types import (
    Completed,
    Failed,
    NodeCall,
    NodeError,
    NodeKind,
    NodeType,
    Outcome,
)
from moot.engine.agents.node_agent import NodeAgentContext
from moot.engine.nodes.context import AgentPin, NodeContext
from moot.engine.nodes.inputs import permanent_failure
from moot.engine.workflows.built_in import ASK, PROMPT, TEXT

TYPE_ID = "moot.agent"
#: model calls of one attempt: rounds of tools, an answer, and its retry
MOST_CALLS = 40

AgentText = Annotated[str, Meta(min_length=1, max_length=200)]


class AgentConfig(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    #: NAME, host:NAME or the id of a manifest; left out, the agent that the node is pinned to
    agent: AgentText | None = None
    #: the task; ``{name}`` is replaced by the input of that name
    prompt: str = ""
    #: the JSON Schema of the answer; left out, the answer is text
    output: dict[str, object] | None = None
    #: a subset of the agent's tools
    tools: list[AgentText] | None = None
    #: the data in the prompt: the node's inputs, or all variables of the run
    show: Literal["inputs", "variables"] = "inputs"
    #: a variable that takes the text of the answer
    into: AgentText | None = None
    agent_sharing: str | None = None


def check_config(config: Mapping[str, object]) -> str | None:
    try:
        parsed = msgspec.convert(config, AgentConfig)
        if parsed.output is not None:
            schema.check_schema(parsed.output)
    except msgspec.ValidationError as error:
        return f"config does not fit: {error}"
    except schema.SchemaError as error:
        return f"output cannot be used: {error}"
    return None


def agent_reference(name: str | None, pin: AgentPin) -> AgentPin:
    """Return the agent of a config, or else of a pin."""
    if not name:
        return pin
    agent_id = name if ":" in name or "." in name else f"host:{name}"
    return pin if pin.agent_id == agent_id else AgentPin(agent_id=agent_id)


def node_assignment(ctx: NodeContext, name: str | None, task: AgentTask, turn: int) -> Assignment:
    """Return an assignment with the fields that follow from the node's place."""
    ref = agent_reference(name, ctx.pin)
    member = ctx.member(ref.agent_id)
    if member is not None:
        ref = AgentPin(agent_id=member.roster_id)  # as resolved at the start of the run
    alone = ctx.workflow_id == ASK and ctx.parent_run is None
    return Assignment(
        tenant=ctx.tenant,
        run_id=ctx.run_id,
        node_id=ctx.node_id,
        agent=ref.agent_id,
        invocation=f"{ctx.run_id}:{ctx.node_id}:{ctx.attempt}",
        task=task,
        source="run-api" if alone else "workflow-node",
        version=ref.version,
        channel=ref.channel,
        versions=ctx.versions,
        member=member,
        place=f"{ctx.run_id}:{ctx.node_id}",
        turn=turn,
        calls_left=MOST_CALLS,
        configurable=ctx.configurable,
    )


async def invoke_agent(
    ctx: NodeContext, invoke: Invoke, assignment: Assignment
) -> InvocationResult | Failed:
    """Return the result, or a failure when the agent is unknown or gave no answer."""
    if assignment.agent:
        ctx.agent.speak_as(assignment.agent)
    try:
        done = await invoke(assignment, NodeAgentContext(ctx))
    except (AgentNotFound, NoActiveDeployment) as refusal:
        return permanent_failure(refusal.code, refusal.message, **refusal.details)
    if done is None:
        agent_name = assignment.agent or "(nobody is named)"
        return permanent_failure("agent_not_found", f"There is no agent {agent_name} here.")
    if done.error is not None:
        return Failed(msgspec.convert(done.error, NodeError))
    return done


def agent_type(invoke: Invoke) -> NodeType:
    """Return the node type of a host with this invoker."""

    async def work(ctx: NodeContext) -> Outcome:
        config = msgspec.convert(ctx.config, AgentConfig)
        values = ctx.variables if config.show == "variables" else ctx.inputs
        prompt = config.prompt or _escape_braces(values.get(PROMPT) or "")
        rest = {name: value for name, value in values.items() if name not in (PROMPT, TEXT)}
        data = {name: value for name, value in rest.items() if value is not None}
        place = node_assignment(ctx, config.agent, "work", ctx.attempt)
        output, tools = config.output, config.tools
        assignment = replace(place, prompt=prompt, data=data, output=output, tools=tools)
        done = await invoke_agent(ctx, invoke, assignment)
        return done if isinstance(done, Failed) else _outcome(config, done)

    return NodeType(
        type_id=TYPE_ID, kind=NodeKind.ACTIVITY, activity=work, check=check_config, retries=0
    )


def _escape_braces(value: Any) -> str:
    """Return the text with braces escaped, so that nothing in it is filled in."""
    return content_text(value).replace("{", "{{").replace("}", "}}")


def _outcome(config: AgentConfig, done: InvocationResult) -> Completed:
    text = done.content if done.content is not None else content_text(done.answer)
    outputs: dict[str, object] = {"text": text, "usage": msgspec.to_builtins(done.usage)}
    if config.output is not None:
        outputs["value"] = done.answer
    if (done.meta or {}).get("truncated"):
        outputs["truncated"] = True
    return Completed(outputs, {} if config.into is None else {config.into: text})


CATCH_UP_TYPE = "moot.catchUp"
#: the name of the catch-up's input
CATCH_UP_INPUT = "told"
#: model calls of one attempt: an answer, and retries of it
MOST_CATCH_UP_CALLS = 4


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


def catch_up_type(invoke: Invoke) -> NodeType:
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
            calls_left=MOST_CATCH_UP_CALLS,
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
        type_id=CATCH_UP_TYPE, kind=NodeKind.ACTIVITY, activity=work, retries=0, only_in="moot."
    )  # fmt: skip


#: the name of the deployment's input: [type, payload] of each event
DEPLOYMENT_EVENTS = "told"


def _tell(call: NodeCall) -> Completed:
    """Record the changes of an agent's versions in the run's log."""
    return Completed(told=tuple(check_deployment_events(call.inputs[DEPLOYMENT_EVENTS])))


DEPLOYED = NodeType(type_id="moot.deployed", kind=NodeKind.INSTANT, instant=_tell, only_in="moot.")
