"""Runs: create, read, cancel, pause, resume; the list of the host's own."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.api.interrupts import routes
from moot.api.runs import (
    agent_runs,
    create_options,
    parents,
    snapshot,
    started_by,
)
from moot.api.runs.create_options import CreateRun
from moot.core.commands import CancelRun, PauseRun, ResumeRun
from moot.core.errors import ArtifactNotFound, BadRequest, MootError, NotFound
from moot.core.errors.triggers import Overtaken
from moot.core.events import iso
from moot.core.runs.start import StartRun, check_inputs
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.engine.head import Head
from moot.engine.replay.ancestry import inherited_artifact
from moot.store.protocol import Batch, RunFilter, RunRow

MOST_CANCELS = 100
#: how often a start is tried anew that somebody has come between
MOST_TRIES = 4
Short = Annotated[str, Meta(max_length=512)]
RunId = Annotated[str, Meta(min_length=1, max_length=128)]


class Cancel(Struct, frozen=True, forbid_unknown_fields=True):
    reason: Short | None = None


class BulkCancel(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    run_ids: Annotated[list[RunId], Meta(min_length=1)]
    reason: Short | None = None


class Pause(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    reason: Short | None = None
    drain_policy: Literal["immediate", "drain-current-node"] | UnsetType = UNSET


class Resume(Struct, frozen=True, forbid_unknown_fields=True):
    reason: Short | None = None


async def create(request: Request) -> Reply:
    asked = await request.read(CreateRun)
    for _ in range(MOST_TRIES - 1):
        try:
            return await _create(request, asked)
        except Overtaken:
            continue  # a standing agent was changed meanwhile: it is looked up again
    return await _create(request, asked)


async def _create(request: Request, asked: CreateRun) -> Reply:
    services, host, tenant = request.services, request.services.host, request.caller.tenant
    seat = await agent_runs.member_of(request, asked)
    flow = await agent_runs.flow_of(request, asked, seat)
    create_options.check(services, request, asked, flow)
    check_inputs(flow, asked.inputs)
    create_options.check_rosters(flow, asked.inputs)
    drawn = await services.pins.drawn(tenant, flow, host.flows, seat)
    command = StartRun(
        tenant=tenant,
        principal=request.caller.id,
        person=routes.speaker(request).person,
        at=services.clock.millis(),
        limits=host.limits,
        inputs=asked.inputs,
        tags=asked.tags,
        metadata=asked.metadata,
        configurable=asked.configurable,
        scope_id=None if asked.scope_id is UNSET else asked.scope_id,
        callback_url=None if asked.callback_url is UNSET else asked.callback_url,
        engine_version=create_options.engine_version(services, request),
        versions=drawn.versions,
        members=drawn.members,
        initiation=agent_runs.initiation(seat, drawn),
        **parents.given(request),
    )
    dedup = (request.header("x-dedup") or "").lower() == "enforce"

    def relied_on(_: Run, batch: Batch) -> None:
        batch.guards += drawn.guards

    await host.create(flow, command, request.recording(_created), dedup, relied_on)
    return request.made


def _created(run: Run) -> Reply:
    """The protocol names only statuses of a living run here; a run may be quicker than that."""
    status = Status.RUNNING if run.terminal else run.status
    url = f"/v1/runs/{run.run_id}"
    body = {
        "runId": run.run_id,
        "status": status.value,
        "eventsUrl": f"{url}/events",
        "statusUrl": url,
    }
    return Reply(body, 201, {"Location": url})


async def read(request: Request) -> Reply:
    services = request.services
    head = await services.host.whole(request.caller.tenant, request.params["run_id"])
    question = routes.open_question(services, head.run, request.caller)
    intent = question["intent"] if question is not None else ""
    tag = snapshot.etag(head.run, intent)
    if not (head.run.children or head.run.abroad) and question is None:
        return _conditional(request, tag, snapshot.encoded(head))
    shown = snapshot.snapshot(head)
    if question is not None:
        shown |= {"interrupt": question, "currentNodeId": question["nodeId"]}
    if head.run.children or head.run.abroad:
        shown["childRuns"] = children = await children_of(request, head)
        tag = snapshot.mixed_etag(tag, children)
    return _conditional(request, tag, encode(shown))


def _conditional(request: Request, tag: str, body: bytes) -> Reply:
    """304 when the caller has this already. What its own Cache-Control says does not matter."""
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    asked = request.header("if-none-match")
    if asked is not None:
        known = {item.strip().removeprefix("W/") for item in asked.split(",")}
        if known & {tag, "*"}:
            return Reply(None, 304, headers)
    return Reply(body, 200, headers)


async def children_of(request: Request, head: Head) -> list[dict[str, Any]]:
    found = []
    for child_run, status in list(head.run.children.items()):
        if status is None:
            row = await request.services.store.find_run(head.run.tenant, child_run)
            status = row.status if row else Status.PENDING.value
        found.append({"runId": child_run, "status": status})
    for away in head.run.abroad.values():
        if away.child is not None and not away.stop:
            waits = head.run.mirrored.get(away.node_id, Status.RUNNING.value)
            found.append({"runId": away.child, "status": waits, "peer": away.peer})
    return found


async def cancel(request: Request) -> Reply:
    asked = await request.read(Cancel)
    command = CancelRun(request.services.clock.millis(), asked.reason, request.caller.id)
    run_id = request.params["run_id"]
    await request.services.host.handle(
        request.caller.tenant, run_id, command, request.recording(_cancelled)
    )
    return request.made


def _cancelled(run: Run) -> Reply:
    body: dict[str, Any] = {"runId": run.run_id, "status": run.status.value}
    if run.status is not Status.CANCELLED:
        body["alreadyTerminal"] = True
    return Reply(body)


async def bulk_cancel(request: Request) -> Reply:
    asked = await request.read(BulkCancel)
    if len(asked.run_ids) > MOST_CANCELS:
        raise BadRequest(
            f"At most {MOST_CANCELS} runs can be cancelled at once.", maxRunIds=MOST_CANCELS
        )
    results = [await _cancel_one(request, run_id, asked.reason) for run_id in asked.run_ids]
    return Reply({"results": results})


async def _cancel_one(request: Request, run_id: str, reason: str | None) -> dict[str, Any]:
    """Each id on its own: one that fails never stops another."""
    tenant, host = request.caller.tenant, request.services.host
    try:
        before = (await host.view(tenant, run_id)).run.status
        if before in (Status.COMPLETED, Status.FAILED):
            return _failed(run_id, "run_terminal", f"The run has already ended ({before}).")
        command = CancelRun(request.services.clock.millis(), reason, request.caller.id)
        run = await host.handle(tenant, run_id, command)
    except NotFound as refusal:
        return _failed(run_id, "not_found", refusal.message)
    except MootError as refusal:
        return _failed(run_id, refusal.code, refusal.message)
    if run.status is not Status.CANCELLED:
        return _failed(run_id, "run_terminal", f"The run has already ended ({run.status}).")
    return {"runId": run_id, "ok": True, "status": run.status.value}


def _failed(run_id: str, code: str, message: str) -> dict[str, Any]:
    return {"runId": run_id, "ok": False, "error": {"code": code, "message": message}}


async def pause(request: Request) -> Reply:
    asked = await request.read(Pause)
    policy = "drain-current-node" if asked.drain_policy is UNSET else asked.drain_policy
    command = PauseRun(request.services.clock.millis(), policy, asked.reason, request.caller.id)
    await request.services.host.handle(
        request.caller.tenant, request.params["run_id"], command, request.recording(_paused)
    )
    return request.made


def _paused(run: Run) -> Reply:
    """Accepted: with ``draining`` the run is paused once the running node has finished."""
    at = run.pause.requested_at if run.pause else run.paused_at
    body: dict[str, Any] = {
        "runId": run.run_id,
        "status": Status.PAUSED.value,
        "pausedAt": iso(at * 1000),
    }
    if run.pause:
        body["draining"] = True
    return Reply(body, 202)


async def resume(request: Request) -> Reply:
    asked = await request.read(Resume)
    command = ResumeRun(request.services.clock.millis(), asked.reason, request.caller.id)
    await request.services.host.handle(
        request.caller.tenant, request.params["run_id"], command, request.recording(_resumed)
    )
    return request.made


def _resumed(run: Run) -> Reply:
    body = {
        "runId": run.run_id,
        "status": Status.RUNNING.value,
        "resumedAt": iso(run.active_since * 1000),
    }
    return Reply(body, 202)


async def list_runs(request: Request) -> Reply:
    query = request.query
    statuses = tuple(word for word in query.get("status", "").split(",") if word)
    expanded: list[str] = []
    for word in statuses:
        if word == "waiting":
            expanded += ["waiting-approval", "waiting-input", "waiting-external"]
        elif word in set(Status):
            expanded.append(word)
        else:
            raise BadRequest(
                f"'{word}' is not a status; use {', '.join(Status)} or waiting.", field="status"
            )
    where = RunFilter(
        statuses=tuple(expanded),
        workflow_id=query.get("workflow"),
        agent_id=query.get("agent"),
        parent_run=query.get("parent"),
        fork_of=query.get("forkOf"),
        prefix=query.get("prefix"),
        member=query.get("member"),
        dead=query.get("deadLettered") == "true",
    )
    limit = request.integer("limit", 50, 1, 500)
    rows, cursor = await request.services.store.list_runs(
        request.caller.tenant, where, query.get("cursor"), limit
    )
    body: dict[str, Any] = {"runs": [_row(row) for row in rows]}
    if query.get("begun") == "true":
        for shown in body["runs"]:
            if begun := await started_by.told(request, shown["runId"]):
                shown["begun"] = begun
    if cursor is not None:
        body["nextCursor"] = cursor
    return Reply(body)


def _row(row: RunRow) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "runId": row.run_id,
        "workflowId": row.workflow_id,
        "status": row.status,
        "startedAt": iso(row.created_at * 1000),
        "updatedAt": iso(row.updated_at * 1000),
        "eventCount": row.next_sequence,
    }
    optional = {
        "completedAt": iso(row.ended_at * 1000) if row.ended_at else None,
        "parentRunId": row.parent_run,
        "scopeId": row.scope_id,
        "errorCode": row.error_code,
        "forkedFrom": _fork(row),
        "rosterId": row.member,
        "deadLetteredAfter": row.dead_after,
    }
    shown.update({name: value for name, value in optional.items() if value is not None})
    return shown


def _fork(row: RunRow) -> dict[str, Any] | None:
    if row.fork_of is None:
        return None
    said = {"sourceRunId": row.fork_of, "fromSeq": row.fork_seq, "mode": row.fork_mode}
    return {**said, "note": row.fork_note} if row.fork_note is not None else said


async def artifact(request: Request) -> Reply:
    store, tenant = request.services.store, request.caller.tenant
    place = request.params["run_id"], request.params["artifact_id"]
    body = await store.artifact(tenant, *place) or await inherited_artifact(store, tenant, *place)
    if body is None:
        raise ArtifactNotFound("There is no such artifact.", **request.params)
    return Reply(body)


TEXT = {"type": "string"}
ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/runs", call=create, scope="runs:create", body=CreateRun,
        status=201, summary="Start a run of a workflow", errors=(404, 409, 422, 501),
    ),
    Endpoint(
        method="GET", path="/v1/runs/{run_id}", call=read, scope="runs:read",
        summary="Read a run", answer="run-snapshot", errors=(304, 404),
    ),
    Endpoint(
        method="POST", path="/v1/runs/{run_id}/cancel", call=cancel, scope="runs:cancel",
        body=Cancel, summary="Cancel a run and its children", errors=(404,),
    ),
    Endpoint(
        method="POST", path="/v1/runs:bulk-cancel", call=bulk_cancel, scope="runs:cancel",
        body=BulkCancel, summary="Cancel up to 100 runs",
    ),
    Endpoint(
        method="POST", path="/v1/runs/{run_id}:pause", call=pause, scope="runs:cancel",
        body=Pause, status=202, summary="Pause a run", errors=(404, 409),
    ),
    Endpoint(
        method="POST", path="/v1/runs/{run_id}:resume", call=resume, scope="runs:cancel",
        body=Resume, status=202, summary="Resume a paused run", errors=(404, 409),
    ),
    Endpoint(
        method="GET", path="/v1/runs/{run_id}/artifacts/{artifact_id}", call=artifact,
        scope="artifacts:read", summary="Read an artifact of a run", errors=(404,),
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/runs", call=list_runs, scope="runs:read",
        summary="List runs, newest first",
        query={
            "status": (TEXT, "one or more statuses, comma separated; 'waiting' means any wait"),
            "workflow": (TEXT, "only runs of this workflow"),
            "agent": (TEXT, "only runs of this agent"),
            "parent": (TEXT, "only children of this run"),
            "forkOf": (TEXT, "only forks of this run"),
            "member": (TEXT, "only work of this standing agent"),
            "deadLettered": ({"type": "boolean"}, "only those given up after all attempts"),
            "prefix": (TEXT, "only run ids that begin so"),
            "begun": ({"type": "boolean"}, "say of each whose it is and what began it"),
            "cursor": (TEXT, "the nextCursor of the page before"),
            "limit": ({"type": "integer", "minimum": 1, "maximum": 500}, "rows per page"),
        },
    ),
)  # fmt: skip
