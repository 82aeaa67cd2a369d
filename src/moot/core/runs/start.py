"""Start a run: resolve its options once and record them in its first event."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from moot.core.errors import BadRequest
from moot.core.events import ENGINE_VERSION, NewEvent
from moot.core.payloads.runs import (
    PeerOrigin,
    RecordedLimits,
    RecordedMemory,
    RunPrincipal,
    RunStarted,
)
from moot.core.runs.standing_agents import run_initiation
from moot.core.secrets import mask_value
from moot.core.state.initiation import Initiation, RunMember, initiation_events
from moot.core.state.memory import default_scope
from moot.core.state.run import Run
from moot.core.trace import Trace
from moot.core.workflows.definition import is_of_type
from moot.core.workflows.flow import Flow


class RunLimits(Struct, frozen=True, kw_only=True):
    """The host's ceilings. A run's own limits are clamped to them when it is created."""

    node_executions: int = 10_000
    duration_ms: int = 24 * 3_600_000
    parallel: int = 32
    depth: int = 16
    tree: int = 1000
    loops: int = 1000


class StartRun(Struct, frozen=True, kw_only=True):
    """Begin a run. ``seed`` overrides the variables' defaults; ``unset`` removes them."""

    tenant: str
    principal: str
    at: int
    limits: RunLimits
    #: the person that the key names, if any
    person: str = "user"
    inputs: dict[str, object] = {}
    seed: dict[str, object] = {}
    unset: tuple[str, ...] = ()
    #: names of the seeds that are secrets of the parent
    secret: tuple[str, ...] = ()
    tags: list[str] = []
    metadata: dict[str, object] = {}
    configurable: dict[str, Any] = {}
    scope_id: str | None = None
    callback_url: str | None = None
    engine_version: int = ENGINE_VERSION
    transport: str = "rest"
    parent_run: str | None = None
    parent_node: str | None = None
    #: the scopes of the principal that the run has; None means all of them
    rights: list[str] | None = None
    depth: int = 0
    #: the inherited memory scope (None: its own), and the ids of the runs above it
    memory_scope: str | None = None
    ancestors: tuple[str, ...] = ()
    #: how many runs its tree may have, itself included; None means the host's ceiling
    tree: int | None = None
    cause: str | None = None
    #: agent@channel -> the agent version that serves the run
    versions: dict[str, str] = {}
    #: the caller's trace, and the run on another host that it acts for
    trace: Trace | None = None
    origin: PeerOrigin | None = None
    #: the host of ``cause`` when that is another host
    cause_host: str | None = None
    #: the schedule, delivery or member that began the run, when no caller did
    initiation: Initiation | None = None
    #: the standing agents that the run names, and the member that a child run inherits
    members: dict[str, RunMember] = {}
    inherits: str | None = None


class LinkedStart(Struct, frozen=True):
    """A run that starts in the same commit as the event that links it."""

    run_id: str
    flow: Flow
    command: StartRun


def start_run(run: Run, flow: Flow, command: StartRun) -> list[NewEvent]:
    if run.next_sequence:
        return []
    variables, sealed = _variables(flow, command)
    cause, initiation = command.cause, run_initiation(flow, command)
    payload = _started_payload(run, flow, command, variables)
    if initiation is None:
        return [NewEvent(payload, cause=cause, sealed=sealed or None)]
    member = None if initiation.member is not None else payload.member
    payload = replace(payload, member=member, trigger=initiation.trigger, hops=initiation.hops)
    cause = initiation.delivered.delivery_id if initiation.delivered is not None else cause
    started = NewEvent(payload, cause=cause, sealed=sealed or None)
    return [started, *initiation_events(run.run_id, flow.definition.id, initiation)]


def _started_payload(
    run: Run, flow: Flow, command: StartRun, variables: dict[str, object]
) -> RunStarted:
    """Return the payload with the options that are set; an absent option is absent in the log."""
    channels = {
        name: None if channel.default is UNSET else channel.default
        for name, channel in flow.definition.channels.items()
    }
    return RunStarted(
        workflow_id=flow.definition.id,
        definition=flow.digest,
        inputs=_visible_inputs(flow, command, variables),
        variables=variables,
        transport=command.transport,
        engine_version=str(command.engine_version),
        owner=RunPrincipal(tenant=command.tenant, principal=command.principal),
        limits=resolve_limits(flow, command.configurable, command.limits, command.tree),
        memory=RecordedMemory(
            scope=command.memory_scope or default_scope(run.run_id, command.scope_id),
            ancestors=list(command.ancestors) or None,
        ),
        tags=command.tags or None,
        metadata=command.metadata or None,
        configurable=command.configurable or None,
        scope_id=command.scope_id or None,
        person=None if command.person in ("", "user") else command.person,
        callback_url=command.callback_url or None,
        agent_versions=command.versions or None,
        members={name: member.recorded() for name, member in command.members.items()} or None,
        parent_run_id=command.parent_run or None,
        parent_node_id=command.parent_node or None,
        depth=command.depth,
        trace=None if command.trace is None else _trace(command.trace) or None,
        origin=command.origin,
        causation_host_id=command.cause_host or None,
        channels=channels or None,
        rights=command.rights,
        member=command.inherits,
    )


def check_inputs(flow: Flow, inputs: Mapping[str, object]) -> None:
    """Raise BadRequest when an input is missing, has the wrong type or names a channel."""
    problems = []
    for variable in flow.definition.variables:
        value = inputs.get(variable.name, UNSET)
        if value is UNSET:
            if variable.required and variable.default_value is UNSET:
                problems.append(f"input '{variable.name}' is required")
        elif not is_of_type(variable.type, value):
            problems.append(f"input '{variable.name}' must be a {variable.type}")
    problems += [f"'{name}' is a channel, not an input" for name in inputs if name in flow.channels]
    if problems:
        raise BadRequest(f"The inputs do not fit: {problems[0]}.", fields=problems)


def _variables(flow: Flow, command: StartRun) -> tuple[dict[str, object], dict[str, object]]:
    """Return the visible and the sealed variables.

    Inputs override defaults, and the parent's seeds override both.
    """
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
    visible = {}
    for name, value in plain.items():
        recorded = mask_value(flow.masking, value) if name in hidden else value
        if recorded is not UNSET:
            visible[name] = recorded
    return visible, sealed


def _visible_inputs(
    flow: Flow, command: StartRun, variables: Mapping[str, object]
) -> dict[str, object]:
    """Return the inputs and the parent's seeds, masked where they are secret."""
    masked = {
        name: mask_value(flow.masking, value) if name in flow.sensitive else value
        for name, value in command.inputs.items()
    }
    visible = {name: value for name, value in masked.items() if value is not UNSET}
    return {**visible, **{name: variables[name] for name in command.seed if name in variables}}


def resolve_limits(
    flow: Flow, options: dict[str, Any], ceilings: RunLimits, tree: int | None
) -> RecordedLimits:
    """Clamp the run's limits to the host's. They are recorded, so replay never reads settings."""
    executions = int(options.get("recursionLimit", ceilings.node_executions))
    duration = int(options.get("runTimeoutMs", ceilings.duration_ms))
    if flow.definition.settings.timeout:
        duration = min(duration, flow.definition.settings.timeout)
    loops = options.get("maxLoopIterations")
    return RecordedLimits(
        node_executions=min(executions, ceilings.node_executions),
        duration_ms=min(duration, ceilings.duration_ms),
        parallel=ceilings.parallel,
        depth=ceilings.depth,
        tree=ceilings.tree if tree is None else min(tree, ceilings.tree),
        loop_iterations=UNSET if loops is None else min(int(loops), ceilings.loops),
    )


def _trace(trace: Trace) -> dict[str, str]:
    fields = {"traceparent": trace.traceparent, "tracestate": trace.state}
    return {name: value for name, value in fields.items() if value}
