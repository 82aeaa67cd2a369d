"""Forks: a run said again from its record."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from moot.api.idempotency import refused
from moot.api.wire import Endpoint, Reply, Request
from moot.core.errors import (
    BadRequest,
    Forbidden,
    NotProvided,
    ReplayDivergedAtRefusal,
    Unprocessable,
)
from moot.core.run import Run
from moot.engine.forking import replay

MODES = ("replay", "branch")


class Fork(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    mode: str
    from_seq: int | None = None
    run_options_overlay: dict[str, Any] | None = None


async def fork(request: Request) -> Reply:
    host, tenant = request.services.host, request.caller.tenant
    source = (await host.view(tenant, request.params["run_id"])).run
    asked = await request.read(Fork)
    _check(request, asked)
    from_seq = asked.from_seq or 0
    if from_seq > source.next_sequence:
        raise Unprocessable(
            f"The run has {source.next_sequence} events; it cannot be forked at {from_seq}.",
            sourceRunId=source.run_id,
            fromSeq=from_seq,
        )

    def answer(run: Run) -> Reply:
        url = f"/v1/runs/{run.run_id}"
        body = {
            "runId": run.run_id,
            "sourceRunId": source.run_id,
            "fromSeq": from_seq,
            "mode": asked.mode,
            "status": "pending",
            "eventsUrl": f"{url}/events",
        }
        return Reply(body, 201, {"Location": url})

    await replay(
        host, tenant, source.run_id, from_seq, request.recording(_unless_diverged(request, answer))
    )
    return request.made


def _unless_diverged(request: Request, answer: Callable[[Run], Reply]) -> Callable[[Run], Reply]:
    """A replay whose model refused, or did not, is there to be looked at, and it is none."""

    def reply(run: Run) -> Reply:
        error = run.error or {}
        if error.get("code") != ReplayDivergedAtRefusal.code:
            return answer(run)
        told = ReplayDivergedAtRefusal(error["message"], runId=run.run_id, **error["details"])
        return refused(told, request.services)

    return reply


def _check(request: Request, asked: Fork) -> None:
    if not request.caller.admin and "runs:read" not in request.caller.scopes:
        raise Forbidden("A fork reads its source: runs:read is needed.", scopeRequired="runs:read")
    if asked.mode not in MODES:
        raise BadRequest(f"mode must be one of {', '.join(MODES)}.", field="mode")
    if asked.from_seq is not None and asked.from_seq < 0:
        raise BadRequest("fromSeq must be a whole number from 0.", field="fromSeq")
    if asked.mode == "branch":
        if asked.from_seq is None:
            raise BadRequest("A branch needs fromSeq.", field="fromSeq")
        raise NotProvided("Branches are not offered by this host yet.", capability="replay.branch")
    if asked.run_options_overlay:
        raise BadRequest("A replay takes no overlay.", field="runOptionsOverlay")


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/runs/{run_id}:fork", call=fork, scope="runs:create", body=Fork,
        status=201, summary="Say a run again from its record", errors=(404, 422, 501),
    ),
)  # fmt: skip
