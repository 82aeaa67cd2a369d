"""The beginning of a run: options resolved once, variables seeded, everything in one event."""

from typing import Any

import msgspec
from msgspec import UNSET, Struct

from moot.core.errors import BadRequest
from moot.core.events import ENGINE_VERSION, NewEvent
from moot.core.runs.handles import whose
from moot.core.secrets import masked
from moot.core.state.initiation import Initiation, Member, beginning
from moot.core.state.memory import default_scope
from moot.core.state.run import Run
from moot.core.trace import Trace
from moot.core.workflows.definition import fits
from moot.core.workflows.graph import Flow
from moot.core.workflows.peer_ids import Origin


class Limits(Struct, frozen=True, kw_only=True):
    """The host's ceilings. A run's own wishes are clamped to them when it is created."""

    node_executions: int = 10_000
    duration_ms: int = 24 * 3_600_000
    parallel: int = 32
    depth: int = 16
    tree: int = 1000
    loops: int = 1000


class StartRun(Struct, frozen=True, kw_only=True):
    """Begin a run. ``seed`` overrides the variables' defaults; ``unset`` leaves them bare."""

    tenant: str
    principal: str
    at: int
    limits: Limits
    #: the person behind the key, where it names one
    person: str = "user"
    inputs: dict[str, Any] = {}
    seed: dict[str, Any] = {}
    unset: tuple[str, ...] = ()
    #: seeds that are secrets of the parent
    secret: tuple[str, ...] = ()
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    configurable: dict[str, Any] = {}
    scope_id: str | None = None
    callback_url: str | None = None
    engine_version: int = ENGINE_VERSION
    transport: str = "rest"
    parent_run: str | None = None
    parent_node: str | None = None
    #: what the run may do of what its principal may; None is all of it
    rights: list[str] | None = None
    depth: int = 0
    #: the memory it inherits, and the runs it comes from; without one it has its own
    memory_scope: str | None = None
    ancestors: tuple[str, ...] = ()
    #: runs this one may lead to, itself among them; None is the host's ceiling
    tree: int | None = None
    cause: str | None = None
    #: agent@channel -> the version that serves the run, where the workflow names a channel
    versions: dict[str, str] = {}
    #: the place in a trace that the caller has, and the run on another host it says it acts for
    trace: Trace | None = None
    origin: Origin | None = None
    #: the host on which ``cause`` is, where it is not this one
    cause_host: str | None = None
    #: what began it, where that was no caller
    initiation: Initiation | None = None
    #: standing agents that the run names, as they are now; whose run began it, of a child
    members: dict[str, Member] = {}
    inherits: str | None = None


class Beginning(Struct, frozen=True):
    """A run that another one's event brings along."""

    run_id: str
    flow: Flow
    command: StartRun


def start(run: Run, flow: Flow, command: StartRun) -> list[NewEvent]:
    if run.next_sequence:
        return []
    variables, sealed = _variables(flow, command)
    payload: dict[str, Any] = {
        "workflowId": flow.definition.id,
        "definition": flow.digest,
        "inputs": {**_masked_inputs(flow, command.inputs), **_handed(command, variables)},
        "variables": variables,
        "transport": command.transport,
        "engineVersion": str(command.engine_version),
        "owner": {"tenant": command.tenant, "principal": command.principal},
        "limits": limits_of(flow, command.configurable, command.limits, command.tree),
        "memory": _memory(run, command),
        **_options(flow, command),
    }
    cause, begun = command.cause, whose(flow, command)
    if command.inherits is not None and (begun is None or begun.member is None):
        payload["member"] = command.inherits
    if begun is None:
        return [NewEvent("run.started", payload, cause=cause, sealed=sealed or None)]
    if begun.trigger is not None:
        payload["trigger"] = begun.trigger
    if begun.hops:
        payload["hops"] = begun.hops
    cause = begun.delivered.delivery_id if begun.delivered is not None else cause
    started = NewEvent("run.started", payload, cause=cause, sealed=sealed or None)
    return [started, *beginning(run.run_id, flow.definition.id, begun)]


def check_inputs(flow: Flow, inputs: dict[str, Any]) -> None:
    """Raises BadRequest when an input is missing, of the wrong type or names a channel."""
    problems = []
    for variable in flow.definition.variables:
        given = inputs.get(variable.name, UNSET)
        if given is UNSET:
            if variable.required and variable.default_value is UNSET:
                problems.append(f"input '{variable.name}' is required")
        elif not fits(variable.type, given):
            problems.append(f"input '{variable.name}' must be a {variable.type}")
    problems += [f"'{name}' is a channel, not an input" for name in inputs if name in flow.channels]
    if problems:
        raise BadRequest(f"The inputs do not fit: {problems[0]}.", fields=problems)


def _variables(flow: Flow, command: StartRun) -> tuple[dict[str, Any], dict[str, Any]]:
    """Defaults, then inputs, then what the parent hands over; sensitive values stay outside."""
    plain = {
        variable.name: variable.default_value
        for variable in flow.definition.variables
        if variable.default_value is not UNSET
    }
    plain.update(command.inputs)
    plain.update(command.seed)
    for name in command.unset:
        plain.pop(name, None)
    hidden = flow.sensitive.union(command.secret)
    sealed = {f"var:{name}": plain[name] for name in hidden if name in plain}
    shown = {}
    for name, value in plain.items():
        seen = masked(flow.masking, value) if name in hidden else value
        if seen is not UNSET:
            shown[name] = seen
    return shown, sealed


def _handed(command: StartRun, variables: dict[str, Any]) -> dict[str, Any]:
    """What a parent hands over is the child's input, as far as it may be seen."""
    return {name: variables[name] for name in command.seed if name in variables}


def _masked_inputs(flow: Flow, inputs: dict[str, Any]) -> dict[str, Any]:
    if not flow.sensitive:
        return inputs
    shown = {
        name: masked(flow.masking, value) if name in flow.sensitive else value
        for name, value in inputs.items()
    }
    return {name: value for name, value in shown.items() if value is not UNSET}


def limits_of(
    flow: Flow, asked: dict[str, Any], ceilings: Limits, tree: int | None
) -> dict[str, int]:
    """Resolved once, recorded with the run: replay does not ask the host's settings."""
    executions = int(asked.get("recursionLimit", ceilings.node_executions))
    duration = int(asked.get("runTimeoutMs", ceilings.duration_ms))
    if flow.definition.settings.timeout:
        duration = min(duration, flow.definition.settings.timeout)
    caps = {
        "nodeExecutions": min(executions, ceilings.node_executions),
        "durationMs": min(duration, ceilings.duration_ms),
        "parallel": ceilings.parallel,
        "depth": ceilings.depth,
        "tree": ceilings.tree if tree is None else min(tree, ceilings.tree),
    }
    if "maxLoopIterations" in asked:
        caps["loopIterations"] = min(int(asked["maxLoopIterations"]), ceilings.loops)
    return caps


def _memory(run: Run, command: StartRun) -> dict[str, Any]:
    """Where the run's memory is. How far it has come is written down beside it."""
    own = default_scope(run.run_id, command.scope_id)
    found: dict[str, Any] = {"scope": command.memory_scope or own}
    if command.ancestors:
        found["ancestors"] = list(command.ancestors)
    return found


def _options(flow: Flow, command: StartRun) -> dict[str, Any]:
    """Only what was given: an absent option is absent in the log too."""
    given: dict[str, Any] = {
        "tags": command.tags,
        "metadata": command.metadata,
        "configurable": command.configurable,
        "scopeId": command.scope_id,
        "person": command.person if command.person != "user" else None,
        "callbackUrl": command.callback_url,
        "agentVersions": command.versions,
        "members": {name: member.told() for name, member in command.members.items()},
        "parentRunId": command.parent_run,
        "parentNodeId": command.parent_node,
        "depth": command.depth,
        "trace": _trace(command.trace) if command.trace is not None else None,
        "origin": msgspec.to_builtins(command.origin),
        "causationHostId": command.cause_host,
        "channels": {
            name: None if channel.default is UNSET else channel.default
            for name, channel in flow.definition.channels.items()
        },
    }
    shown = {name: value for name, value in given.items() if value}
    return shown if command.rights is None else {**shown, "rights": command.rights}


def _trace(trace: Trace) -> dict[str, str]:
    said = {"traceparent": trace.traceparent, "tracestate": trace.state}
    return {name: value for name, value in said.items() if value}
