"""Read, cancel, pause, resume and list runs."""

from msgspec import UNSET
from msgspec.structs import replace

from moot.api.http.request import FLAG, TEXT, Endpoint, Reply, Request, encode, whole_number
from moot.api.interrupts import answers
from moot.api.runs import snapshot
from moot.api.runs.create import create_run
from moot.api.runs.origin import describe_start
from moot.api.views import copy_fields, iso_or_none
from moot.core.commands import CancelRun, PauseRun, ResumeRun
from moot.core.errors import ArtifactNotFound, BadRequest, MootError, NotFound
from moot.core.events import iso
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.workflows.turn_inputs import TurnInputs
from moot.engine.head import Head
from moot.engine.replay.ancestry import read_inherited_artifact
from moot.engine.supervisors import read_turn_inputs
from moot.store.protocol import RunFilter, RunIndexRow
from moot.wire.runs import (
    Artifact,
    BulkCancel,
    BulkCancelResult,
    BulkCancelResults,
    CancelledRun,
    CancelRunBody,
    ChildRun,
    CreateRun,
    ForkOrigin,
    PausedRun,
    PauseRunBody,
    ResumedRun,
    ResumeRunBody,
    RunFailure,
    RunList,
    RunRow,
    Snapshot,
    StartedRun,
)

MOST_CANCELS = 100
WAITING = ("waiting-approval", "waiting-input", "waiting-external")

#: Longest number of a turn in digits.
MOST_DIGITS = 9


async def read_run(request: Request) -> Reply:
    services = request.services
    head = await services.host.whole(request.tenant, request.params["run_id"])
    question = answers.open_question_view(services, head.run, request.caller)
    tag = snapshot.run_etag(head.run, question.intent if question is not None else "")
    has_children = bool(head.run.children or head.run.abroad)
    if not has_children and question is None:
        return _conditional_reply(request, tag, snapshot.encoded_snapshot(head))
    view = snapshot.run_snapshot(head)
    if question is not None:
        view = replace(view, interrupt=question, current_node_id=question.node_id)
    if has_children:
        children = await list_child_runs(request, head)
        view = replace(view, child_runs=children)
        tag = snapshot.etag_with_children(tag, children)
    return _conditional_reply(request, tag, encode(view))


def _conditional_reply(request: Request, tag: str, body: bytes) -> Reply:
    """Answer 304 when the caller has this version. The caller's Cache-Control does not matter."""
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    header = request.header("if-none-match")
    if header is not None:
        tags = {item.strip().removeprefix("W/") for item in header.split(",")}
        if tags & {tag, "*"}:
            return Reply(None, 304, headers)
    return Reply(body, 200, headers)


async def list_child_runs(request: Request, head: Head) -> list[ChildRun]:
    children = []
    for child_run, status in list(head.run.children.items()):
        if status is None:
            row = await request.store.find_run(head.run.tenant, child_run)
            status = row.status if row else Status.PENDING.value
        children.append(ChildRun(run_id=child_run, status=status))
    for remote in head.run.abroad.values():
        if remote.child is not None and not remote.stop:
            waits = head.run.mirrored.get(remote.node_id, Status.RUNNING.value)
            children.append(ChildRun(run_id=remote.child, status=waits, peer=remote.peer))
    return children


async def cancel_run(request: Request) -> Reply:
    body = await request.read(CancelRunBody)
    command = CancelRun(request.now(), body.reason, request.caller.id)
    return await request.handle(request.params["run_id"], command, _cancelled_reply)


def _cancelled_reply(run: Run) -> Reply:
    already_terminal = run.status is not Status.CANCELLED
    return Reply(
        CancelledRun(run_id=run.run_id, status=run.status.value, already_terminal=already_terminal)
    )


async def cancel_runs(request: Request) -> Reply:
    body = await request.read(BulkCancel)
    if len(body.run_ids) > MOST_CANCELS:
        raise BadRequest(
            f"At most {MOST_CANCELS} runs can be cancelled at once.", maxRunIds=MOST_CANCELS
        )
    results = [await _cancel_one(request, run_id, body.reason) for run_id in body.run_ids]
    return Reply(BulkCancelResults(results=results))


async def _cancel_one(request: Request, run_id: str, reason: str | None) -> BulkCancelResult:
    """Cancel one run. A failure is returned, so that it never stops the others."""
    tenant, host = request.tenant, request.host
    try:
        before = (await host.view(tenant, run_id)).run.status
        if before in (Status.COMPLETED, Status.FAILED):
            return _cancel_failure(run_id, "run_terminal", f"The run has already ended ({before}).")
        command = CancelRun(request.now(), reason, request.caller.id)
        run = await host.handle(tenant, run_id, command)
    except NotFound as refusal:
        return _cancel_failure(run_id, "not_found", refusal.message)
    except MootError as refusal:
        return _cancel_failure(run_id, refusal.code, refusal.message)
    if run.status is not Status.CANCELLED:
        return _cancel_failure(run_id, "run_terminal", f"The run has already ended ({run.status}).")
    return BulkCancelResult(run_id=run_id, ok=True, status=run.status.value)


def _cancel_failure(run_id: str, code: str, message: str) -> BulkCancelResult:
    return BulkCancelResult(run_id=run_id, ok=False, error=RunFailure(code=code, message=message))


async def pause_run(request: Request) -> Reply:
    body = await request.read(PauseRunBody)
    policy = "drain-current-node" if body.drain_policy is UNSET else body.drain_policy
    command = PauseRun(request.now(), policy, body.reason, request.caller.id)
    return await request.handle(request.params["run_id"], command, _pause_reply)


def _pause_reply(run: Run) -> Reply:
    """Answer 202. With ``draining`` the run pauses once the running node has finished."""
    at = run.pause.requested_at if run.pause else run.paused_at
    paused = PausedRun(
        run_id=run.run_id,
        status=Status.PAUSED.value,
        paused_at=iso(at * 1000),
        draining=run.pause is not None,
    )
    return Reply(paused, 202)


async def resume_run(request: Request) -> Reply:
    body = await request.read(ResumeRunBody)
    command = ResumeRun(request.now(), body.reason, request.caller.id)
    return await request.handle(request.params["run_id"], command, _resume_reply)


def _resume_reply(run: Run) -> Reply:
    resumed = ResumedRun(
        run_id=run.run_id, status=Status.RUNNING.value, resumed_at=iso(run.active_since * 1000)
    )
    return Reply(resumed, 202)


async def list_runs(request: Request) -> Reply:
    query = request.query
    statuses: list[str] = []
    for word in filter(None, query.get("status", "").split(",")):
        if word != "waiting" and word not in set(Status):
            raise BadRequest(
                f"'{word}' is not a status; use {', '.join(Status)} or waiting.", field="status"
            )
        statuses += WAITING if word == "waiting" else [word]
    where = RunFilter(
        statuses=tuple(statuses),
        workflow_id=query.get("workflow"),
        agent_id=query.get("agent"),
        parent_run=query.get("parent"),
        fork_of=query.get("forkOf"),
        prefix=query.get("prefix"),
        member=query.get("member"),
        dead=query.get("deadLettered") == "true",
    )
    limit = request.integer("limit", 50, 1, 500)
    rows, cursor = await request.store.list_runs(request.tenant, where, query.get("cursor"), limit)
    runs = [_run_row(row) for row in rows]
    if query.get("begun") == "true":
        runs = [replace(run, begun=await describe_start(request, run.run_id)) for run in runs]
    return Reply(RunList(runs=runs, next_cursor=cursor))


def _run_row(row: RunIndexRow) -> RunRow:
    fork = ForkOrigin(
        source_run_id=row.fork_of or "",
        from_seq=row.fork_seq,
        mode=row.fork_mode,
        note=row.fork_note,
    )
    return copy_fields(
        RunRow,
        row,
        started_at=iso(row.created_at * 1000),
        event_count=row.next_sequence,
        completed_at=iso_or_none(row.ended_at or None),
        parent_run_id=row.parent_run,
        forked_from=None if row.fork_of is None else fork,
        roster_id=row.member,
        dead_lettered_after=row.dead_after,
    )


async def read_artifact(request: Request) -> Reply:
    store, tenant = request.store, request.tenant
    place = request.params["run_id"], request.params["artifact_id"]
    body = await store.artifact(tenant, *place) or await read_inherited_artifact(
        store, tenant, *place
    )
    if body is None:
        raise ArtifactNotFound("There is no such artifact.", **request.params)
    return Reply(body)


async def read_supervisor_turn(request: Request) -> Reply:
    run_id, number = request.params["run_id"], request.params["iteration"]
    host, tenant = request.host, request.tenant
    await host.view(tenant, run_id)  # 404 for other tenants comes first
    if not (number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS):
        raise NotFound("A turn is named by its number, from 1.", runId=run_id)
    return Reply(await read_turn_inputs(host, tenant, run_id, int(number)))


LISTED = {
    "status": TEXT, "workflow": TEXT, "agent": TEXT, "parent": TEXT, "forkOf": TEXT,
    "member": TEXT, "deadLettered": FLAG, "prefix": TEXT, "begun": FLAG, "cursor": TEXT,
    "limit": whole_number(1, 500),
}  # fmt: skip
RUN_ENDPOINTS = (
    Endpoint("POST", "/v1/runs", create_run, scope="runs:create", body=CreateRun, needs_body=True,
             status=201, answer=StartedRun),
    Endpoint("GET", "/v1/runs/{run_id}", read_run, scope="runs:read", answer=Snapshot),
    Endpoint("POST", "/v1/runs/{run_id}/cancel", cancel_run, scope="runs:cancel",
             body=CancelRunBody, answer=CancelledRun),
    Endpoint("POST", "/v1/runs:bulk-cancel", cancel_runs, scope="runs:cancel", body=BulkCancel,
             answer=BulkCancelResults),
    Endpoint("POST", "/v1/runs/{run_id}:pause", pause_run, scope="runs:cancel", body=PauseRunBody,
             status=202, answer=PausedRun),
    Endpoint("POST", "/v1/runs/{run_id}:resume", resume_run, scope="runs:cancel",
             body=ResumeRunBody, status=202, answer=ResumedRun),
    Endpoint("GET", "/v1/runs/{run_id}/artifacts/{artifact_id}", read_artifact,
             scope="artifacts:read", answer=Artifact),
    Endpoint("GET", "/v1/host/moot/runs", list_runs, scope="runs:read", query=LISTED,
             answer=RunList),
    Endpoint("GET", "/v1/host/moot/runs/{run_id}/turns/{iteration}", read_supervisor_turn,
             scope="runs:read", answer=TurnInputs),
)  # fmt: skip
