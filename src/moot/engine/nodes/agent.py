"""Run a piece of work for an agent of this host: the node type ``moot.agent``.

Council members speak through the same ``moot.agents.invocation.invoke``."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moot.agents.invocation.desk import Assignment, Done, Invoke, Source
from moot.agents.prompts.fencing import words
from moot.core.errors import AgentNotFound, NoActiveDeployment
from moot.core.json import schema
from moot.core.workflows.node_types import Completed, Failed, Kind, NodeError, NodeType, Outcome
from moot.engine.agents.node_desk import NodeDesk
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import refused
from moot.engine.workflows.ask import ASK, PROMPT, TEXT

TYPE_ID = "moot.agent"
#: model calls of one attempt: rounds of tools, an answer, the same once more
MOST_CALLS = 40

Text = Annotated[str, Meta(min_length=1, max_length=200)]


class Config(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    #: NAME, host:NAME or the id of a manifest; left out, whom the node is pinned to
    agent: Text | None = None
    #: what to do; ``{name}`` stands for the input of that name
    prompt: str = ""
    #: the JSON Schema of the answer; left out, it is words
    output: dict[str, Any] | None = None
    #: fewer tools than the agent has; more it is never given
    tools: list[Text] | None = None
    #: what the agent is shown: the node's inputs, or all variables of the run
    show: Literal["inputs", "variables"] = "inputs"
    #: a variable that takes the words of the answer
    into: Text | None = None
    agent_sharing: str | None = None


def check(config: dict[str, Any]) -> str | None:
    try:
        found = msgspec.convert(config, Config)
        if found.output is not None:
            schema.check(found.output)
    except msgspec.ValidationError as error:
        return f"config does not fit: {error}"
    except schema.SchemaError as error:
        return f"output cannot be used: {error}"
    return None


def reference(name: Any, pin: dict[str, Any]) -> dict[str, Any]:
    """Whom a config or else a pin means: agentId, and version or channel."""
    if not name:
        return pin
    agent_id = name if ":" in name or "." in name else f"host:{name}"
    return pin if pin.get("agentId") == agent_id else {"agentId": agent_id}


def invocation(ctx: NodeContext, name: Any) -> dict[str, Any]:
    """What every assignment of a node says of its place."""
    ref = reference(name, ctx.pin)
    member = ctx.member(str(ref.get("agentId", "")))
    if member is not None:
        ref = {"agentId": member.roster_id}  # bound as the run's start has found it
    alone = ctx.workflow_id == ASK and ctx.parent_run is None
    source: Source = "run-api" if alone else "workflow-node"
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


async def invoked(ctx: NodeContext, invoke: Invoke, assignment: Assignment) -> Done | Failed:
    """What came of it; an agent that is not here, or gave no answer, fails the node."""
    if assignment.agent:
        ctx.agent.speak_as(assignment.agent)
    try:
        done = await invoke(assignment, NodeDesk(ctx))
    except (AgentNotFound, NoActiveDeployment) as refusal:
        return refused(refusal.code, refusal.message, **refusal.details)
    if done is None:
        missing = assignment.agent or "(nobody is named)"
        return refused("agent_not_found", f"There is no agent {missing} here.")
    if done.error is not None:
        return Failed(NodeError(**done.error))
    return done


def type_with(invoke: Invoke) -> NodeType:
    """The node type of a host whose agents are these."""

    async def work(ctx: NodeContext) -> Outcome:
        config = msgspec.convert(ctx.config, Config)
        everything = ctx.variables if config.show == "variables" else ctx.inputs
        prompt = config.prompt or _literal(everything.get(PROMPT) or "")
        data = {
            name: value
            for name, value in everything.items()
            if name not in (PROMPT, TEXT) and value is not None
        }
        assignment = Assignment(
            **invocation(ctx, config.agent),
            task="work",
            turn=ctx.attempt,
            prompt=prompt,
            data=data,
            output=config.output,
            tools=config.tools,
        )
        done = await invoked(ctx, invoke, assignment)
        return done if isinstance(done, Failed) else _outcome(config, done)

    return NodeType(type_id=TYPE_ID, kind=Kind.ACTIVITY, activity=work, check=check, retries=0)


def _literal(value: Any) -> str:
    """What a run is asked stands for itself: nothing in it is filled in."""
    return words(value).replace("{", "{{").replace("}", "}}")


def _outcome(config: Config, done: Done) -> Completed:
    text = done.content if done.content is not None else words(done.answer)
    outputs: dict[str, Any] = {"text": text, "usage": msgspec.to_builtins(done.usage)}
    if config.output is not None:
        outputs["value"] = done.answer
    if (done.meta or {}).get("truncated"):
        outputs["truncated"] = True
    return Completed(outputs, {} if config.into is None else {config.into: text})
