"""The node type ``moot.agent``: one piece of work for an agent of this host.

Council members speak through the same ``moot.agents.invocation.invoke``.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moot.agents.invocation.context import Assignment, InvocationResult, InvocationSource, Invoke
from moot.core.errors import AgentNotFound, NoActiveDeployment
from moot.core.json import schema
from moot.core.text.fencing import content_text
from moot.core.workflows.node_types import Completed, Failed, NodeError, NodeKind, NodeType, Outcome
from moot.engine.agents.node_agent import NodeAgentContext
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import permanent_failure
from moot.engine.workflows.ask import ASK, PROMPT, TEXT

TYPE_ID = "moot.agent"
#: model calls of one attempt: rounds of tools, an answer, and its retry
MOST_CALLS = 40

Text = Annotated[str, Meta(min_length=1, max_length=200)]


class AgentConfig(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The config of a ``moot.agent`` node."""

    #: NAME, host:NAME or the id of a manifest; left out, the agent that the node is pinned to
    agent: Text | None = None
    #: the task; ``{name}`` is replaced by the input of that name
    prompt: str = ""
    #: the JSON Schema of the answer; left out, the answer is text
    output: dict[str, Any] | None = None
    #: a subset of the agent's tools
    tools: list[Text] | None = None
    #: the data in the prompt: the node's inputs, or all variables of the run
    show: Literal["inputs", "variables"] = "inputs"
    #: a variable that takes the text of the answer
    into: Text | None = None
    agent_sharing: str | None = None


def check_config(config: dict[str, Any]) -> str | None:
    try:
        parsed = msgspec.convert(config, AgentConfig)
        if parsed.output is not None:
            schema.check_schema(parsed.output)
    except msgspec.ValidationError as error:
        return f"config does not fit: {error}"
    except schema.SchemaError as error:
        return f"output cannot be used: {error}"
    return None


def agent_reference(name: Any, pin: dict[str, Any]) -> dict[str, Any]:
    """Return the agent of a config, or else of a pin: agentId, and version or channel."""
    if not name:
        return pin
    agent_id = name if ":" in name or "." in name else f"host:{name}"
    return pin if pin.get("agentId") == agent_id else {"agentId": agent_id}


def invocation_fields(ctx: NodeContext, name: Any) -> dict[str, Any]:
    """Return the fields of an assignment that follow from the node's place."""
    ref = agent_reference(name, ctx.pin)
    member = ctx.member(str(ref.get("agentId", "")))
    if member is not None:
        ref = {"agentId": member.roster_id}  # as resolved at the start of the run
    alone = ctx.workflow_id == ASK and ctx.parent_run is None
    source: InvocationSource = "run-api" if alone else "workflow-node"
    return {
        "tenant": ctx.tenant,
        "run_id": ctx.run_id,
        "node_id": ctx.node_id,
        "agent": str(ref.get("agentId", "")),
        "version": ref.get("version"),
        "channel": ref.get("channel"),
        "versions": ctx.versions,
        "member": member,
        "invocation": f"{ctx.run_id}:{ctx.node_id}:{ctx.attempt}",
        "source": source,
        "place": f"{ctx.run_id}:{ctx.node_id}",
        "configurable": ctx.configurable,
        "calls_left": MOST_CALLS,
    }


async def invoke_agent(
    ctx: NodeContext, invoke: Invoke, assignment: Assignment
) -> InvocationResult | Failed:
    """Return the result of the invocation. Fail the node when the agent is unknown or gave no
    answer."""
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
        return Failed(NodeError(**done.error))
    return done


def build_type(invoke: Invoke) -> NodeType:
    """Return the node type of a host with this invoker."""

    async def work(ctx: NodeContext) -> Outcome:
        config = msgspec.convert(ctx.config, AgentConfig)
        values = ctx.variables if config.show == "variables" else ctx.inputs
        prompt = config.prompt or _escape_braces(values.get(PROMPT) or "")
        data = {
            name: value
            for name, value in values.items()
            if name not in (PROMPT, TEXT) and value is not None
        }
        assignment = Assignment(
            **invocation_fields(ctx, config.agent),
            task="work",
            turn=ctx.attempt,
            prompt=prompt,
            data=data,
            output=config.output,
            tools=config.tools,
        )
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
    outputs: dict[str, Any] = {"text": text, "usage": msgspec.to_builtins(done.usage)}
    if config.output is not None:
        outputs["value"] = done.answer
    if (done.meta or {}).get("truncated"):
        outputs["truncated"] = True
    return Completed(outputs, {} if config.into is None else {config.into: text})
