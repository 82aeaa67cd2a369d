"""Create runs, of a workflow or of an agent, and check the options of a start."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from moot.agents.roster.members import MemberVersion
from moot.api.access.auth import speaker_from_request
from moot.api.http.request import Reply, Request
from moot.api.services import Services
from moot.core import trace
from moot.core.agents.events import VERBOSITIES
from moot.core.errors import (
    BadRequest,
    ForceEngineForbidden,
    MockProviderForbidden,
    NotProvided,
    Unprocessable,
    UnsupportedEngineVersion,
    UnsupportedMockProvider,
)
from moot.core.errors.models import ModelNotConfigured
from moot.core.errors.triggers import Overtaken
from moot.core.events import ENGINE_VERSION
from moot.core.json.schema import schema_problems
from moot.core.runs.standing_agents import BY_HAND
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.text.nearest import describe_nearest
from moot.core.workflows import peer_ids
from moot.core.workflows.flow import Flow
from moot.engine.start import RemoteCause, RunOrder, check_member, start_run
from moot.engine.workflows.built_in import PROMPT, TASK
from moot.wire.discovery import OptionRule
from moot.wire.runs import CreateRun, StartedRun

#: Attempts of a start that another change overtakes.
MOST_TRIES = 4
MOST_TAGS = 100
LONGEST_TAG = 256
METADATA_BYTES = 8192
METADATA_DEPTH = 4
FORCEABLE_VERSIONS = (0, ENGINE_VERSION)


#: Type of an option -> its Python types.
OPTION_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "integer": int, "number": (int, float), "string": str, "object": dict,
}  # fmt: skip
#: ``configurable`` keys that the protocol reserves. They are checked, though not all are used.
RESERVED = {
    "maxLoopIterations": OptionRule(type="integer", min=1),
    "model": OptionRule(type="string"),
    "temperature": OptionRule(type="number", min=0, max=2),
    "maxTokens": OptionRule(type="integer", min=1),
    "promptOverrides": OptionRule(type="object"),
    "escalationThreshold": OptionRule(type="number", min=0, max=1),
    "models": OptionRule(type="object"),
}


async def find_initiating_member(request: Request, body: CreateRun) -> MemberVersion | None:
    """Return the standing agent that the body names, or None.

    Raise MemberOffDuty, or NotInPortfolio for a workflow that the member does not own.
    """
    if body.agent_id is UNSET or not (body.mode is body.eval_suite_ref is UNSET):
        return None
    services, tenant = request.services, request.caller.tenant
    member = await services.roster.find(tenant, body.agent_id)
    if member is None:
        return None
    workflow_id = body.workflow_id if isinstance(body.workflow_id, str) else None
    check_member(member, workflow_id, services.clock.millis())
    return member


async def find_run_flow(
    request: Request, body: CreateRun, member: MemberVersion | None = None
) -> Flow:
    """Return the workflow to run: by its id, or the one that asks a single agent."""
    flows, tenant = request.services.host.flows, request.caller.tenant
    evaluated = not (body.mode is body.eval_suite_ref is UNSET)
    portfolio = member is not None and body.workflow_id is not UNSET
    if body.agent_id is UNSET or evaluated or portfolio:
        if body.workflow_id is UNSET or not body.workflow_id:
            raise BadRequest("workflowId is missing.", field="workflowId")
        return await flows.newest(tenant, body.workflow_id)
    if body.workflow_id is not UNSET:
        raise BadRequest("A run is of a workflow or of an agent: leave one out.", field="agentId")
    if member is None:
        await request.services.agents.must_find_by_id(tenant, body.agent_id)
    worker = await request.services.instances.worker(tenant, body.agent_id)
    if not (body.inputs.get(PROMPT) or body.inputs.get(TASK)):
        raise BadRequest(
            f"Say what the agent shall do: inputs.{PROMPT} in words, or inputs.{TASK} as data.",
            field=f"inputs.{PROMPT}",
        )
    return await flows.asking(tenant, worker or body.agent_id)


async def create_run(request: Request) -> Reply:
    body = await request.read(CreateRun)
    for _ in range(MOST_TRIES - 1):
        try:
            return await _create_once(request, body)
        except Overtaken:
            continue  # a standing agent changed meanwhile; look it up again
    return await _create_once(request, body)


async def _create_once(request: Request, body: CreateRun) -> Reply:
    services, tenant = request.services, request.caller.tenant
    member = await find_initiating_member(request, body)
    flow = await find_run_flow(request, body, member)
    check_run_options(services, request, body, flow)
    order = RunOrder(
        tenant=tenant,
        principal=request.caller.id,
        workflow_id=flow.definition.id,
        flow=flow,
        person=speaker_from_request(request).person,
        inputs=body.inputs,
        checks_rosters=True,
        tags=body.tags,
        metadata=body.metadata,
        configurable=body.configurable,
        scope_id=None if body.scope_id is UNSET else body.scope_id,
        dedup=(request.header("x-dedup") or "").lower() == "enforce",
        callback_url=None if body.callback_url is UNSET else body.callback_url,
        engine_version=requested_engine_version(services, request),
        remote=cause_from_headers(request),
    )
    if member is not None:
        order = replace(order, source=BY_HAND, roster_id=member.entry.roster_id)
    await start_run(
        services.host, order, services.pins, member, request.record_reply(_created_reply)
    )
    return request.reply


def _created_reply(run: Run) -> Reply:
    """Answer with a status of a living run.

    The protocol allows no other here, though the run may already have ended.
    """
    status = Status.RUNNING if run.terminal else run.status
    url = f"/v1/runs/{run.run_id}"
    started = StartedRun(
        run_id=run.run_id, status=status.value, events_url=f"{url}/events", status_url=url
    )
    return Reply(started, 201, {"Location": url})


def configurable_keys(services: Services) -> dict[str, OptionRule]:
    """Return the ``configurable`` keys this host acts on, with their bounds.

    Discovery shows the same.
    """
    limits = services.host.limits
    keys = {
        "recursionLimit": OptionRule(type="integer", min=1),
        "maxLoopIterations": OptionRule(type="integer", min=1),
        "escalationThreshold": OptionRule(type="number", min=0, max=1),
        "reasoningVerbosity": OptionRule(type="string", enum=list(VERBOSITIES)),
        "runTimeoutMs": OptionRule(type="number", min=1, max=limits.duration_ms),
    }
    if services.seams.under_test:
        keys["mockProvider"] = OptionRule(type="object")
    return keys


def check_run_options(
    services: Services,
    request: Request,
    body: CreateRun,
    flow: Flow,
    before: dict[str, object] | None = None,
) -> None:
    """Raise for everything that can be refused before a run exists.

    ``before`` holds the options a fork already has.
    """
    _check_shape(body)
    if services.seams.under_test:
        services.seams.check_flow(flow)
    if body.tags:
        _check_tags(body.tags)
    if body.metadata:
        _check_metadata(body.metadata)
    if body.configurable:
        _check_mock(services, request, body.configurable)
    schema = flow.definition.configurable_schema
    if schema is not UNSET:
        _check_schema(schema, {**(before or {}), **body.configurable})
    if body.configurable:
        _check_configurable(services, body.configurable, free=schema is not UNSET)


def _check_shape(body: CreateRun) -> None:
    if not (body.mode is body.eval_suite_ref is UNSET):
        raise NotProvided("Evaluation runs are not available on this host.", capability="eval")
    if body.residency is not UNSET:
        refusal = Unprocessable("This host does not offer data residency; leave 'residency' out.")
        raise refusal
    if body.scope_id is not UNSET and not 1 <= len(body.scope_id) <= 256:
        raise BadRequest("scopeId must have 1 to 256 characters.", field="scopeId")
    if body.callback_url is not UNSET:
        _check_url(body.callback_url)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        fine = False
    if not fine:
        raise BadRequest("callbackUrl must be an http or https address.", field="callbackUrl")


def _check_tags(tags: list[str]) -> None:
    if len(tags) > MOST_TAGS or any(not 1 <= len(tag) <= LONGEST_TAG for tag in tags):
        raise BadRequest(
            f"tags takes at most {MOST_TAGS} tags of 1 to {LONGEST_TAG} characters.", field="tags"
        )


def _check_metadata(metadata: dict[str, object]) -> None:
    if len(msgspec.json.encode(metadata)) > METADATA_BYTES or _depth(metadata) > METADATA_DEPTH:
        raise BadRequest(
            f"metadata may have {METADATA_BYTES} bytes and be nested {METADATA_DEPTH} deep.",
            field="metadata",
        )


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(item) for item in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((_depth(item) for item in value), default=0)
    return 0


def _check_mock(services: Services, request: Request, configurable: dict[str, object]) -> None:
    mock = configurable.get("mockProvider")
    if mock is None:
        return
    provider = mock.get("id") if isinstance(mock, dict) else None
    offered = list(services.seams.mock_providers)
    if not services.seams.under_test or not request.caller.test:
        raise MockProviderForbidden(
            "Mock providers are for test keys on a host under test.",
            requestedProvider=provider,
            supportedProviders=offered,
        )
    if not isinstance(mock, dict) or not isinstance(provider, str) or set(mock) - {"id", "config"}:
        raise BadRequest("mockProvider must be {id, config?}.", field="configurable.mockProvider")
    if provider not in offered:
        raise UnsupportedMockProvider(
            f"There is no mock provider '{provider}'.",
            requestedProvider=provider,
            supportedProviders=offered,
        )


def _check_schema(schema: dict[str, object], configurable: dict[str, object]) -> None:
    faults = schema_problems(schema, configurable)
    if faults:
        raise BadRequest(f"configurable does not fit: {faults[0]}", fields=faults)


def _check_configurable(services: Services, configurable: dict[str, object], free: bool) -> None:
    rules = {**RESERVED, **configurable_keys(services)}
    for key, value in configurable.items():
        rule = rules.get(key)
        if rule is not None:
            _check_value(key, value, rule)
            if key == "models" and isinstance(value, dict):
                check_models(services, value, "configurable.models")
        elif key.startswith("ai.") or (not free and "." not in key):
            hint = describe_nearest(key, rules, " Prefix keys of your own: 'acme.key'.")
            raise BadRequest(f"'{key}' is not an option of a run.{hint}", key=key)


def check_models(services: Services, models: Mapping[str, object], field: str) -> None:
    """Raise BadRequest for a model that this host does not know, before a run exists."""
    for agent, reference in models.items():
        if not isinstance(reference, str):
            raise BadRequest(f"{field} has an agent and its model.", field=f"{field}.{agent}")
        if services.book is None:
            continue
        try:
            services.book.look_up(reference)
        except ModelNotConfigured as unknown:
            raise BadRequest(unknown.message, field=f"{field}.{agent}") from None


def _check_value(key: str, value: Any, rule: OptionRule) -> None:
    low, high = rule.min, rule.max
    fine = _has_type(rule.type, value) and (rule.enum is None or value in rule.enum)
    if fine and low is not None:
        fine = value >= low and (high is None or value <= high)
    if not fine:
        bounds = f" from {low}" if low is not None else ""
        bounds += f" to {high}" if high is not None else ""
        kind = f"a {rule.type}" if rule.enum is None else f"one of {', '.join(rule.enum)}"
        details = {"key": key, "value": value, "min": low, "max": high}
        raise BadRequest(
            f"{key} must be {kind}{bounds}.",
            **{name: item for name, item in details.items() if item is not None},
        )


def _has_type(type_: str, value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, OPTION_TYPES[type_])


def requested_engine_version(services: Services, request: Request) -> int:
    """Return the engine version that a test asks the host to write as."""
    text = request.header("x-force-engine-version")
    if text is None:
        return ENGINE_VERSION
    if not services.seams.under_test or not request.caller.test:
        raise ForceEngineForbidden("X-Force-Engine-Version is for test keys on a host under test.")
    low, high = FORCEABLE_VERSIONS
    if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise UnsupportedEngineVersion(
            f"X-Force-Engine-Version must be {low} to {high}.", min=low, max=high
        )
    return int(text)


def cause_from_headers(request: Request) -> RemoteCause | None:
    """Return the trace and the run on another host that the request's headers name.

    The host stores what a caller says about a trace and a parent. It decides neither who owns the
    run nor who may see it. A parent's depth and tree size can only lower the run's limits.
    """
    caller_trace = _trace_from_headers(request)
    origin = peer_ids.parse_origin(request.header(peer_ids.HEADER))
    if origin is None:
        return None if caller_trace is None else RemoteCause(trace=caller_trace)
    is_remote = origin.host_id != request.services.host.peers.host_id
    return RemoteCause(
        trace=caller_trace,
        origin=origin,
        cause=origin.event_id,
        cause_host=origin.host_id if is_remote and origin.event_id is not None else None,
        depth=origin.depth,
        tree=origin.tree,
    )


def _trace_from_headers(request: Request) -> trace.Trace | None:
    """Return the trace.

    Two ``traceparent`` headers count as none; ``tracestate`` may come in parts.
    """
    if request.header("traceparent") is None:
        return None
    headers = request.scope["headers"]
    places = [value for name, value in headers if name == b"traceparent"]
    states = [value for name, value in headers if name == b"tracestate"]
    if len(places) != 1:
        return None
    return trace.parse_trace(places[0].decode("latin-1"), b",".join(states).decode("latin-1"))
