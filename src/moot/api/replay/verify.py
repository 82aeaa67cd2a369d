"""Verify that this host could have written a run's log."""

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from moot.api.http.request import Endpoint, Reply, Request
from moot.engine.replay.verify import verify_run


class Verify(Struct, frozen=True, forbid_unknown_fields=True):
    """An empty body."""


async def verify_log(request: Request) -> Reply:
    run_id = request.params["run_id"]
    await request.read(Verify)
    checked = await verify_run(request.services.host, request.caller.tenant, run_id)
    body: dict[str, Any] = {
        "runId": run_id,
        "events": checked.events,
        "modelCalls": checked.calls,
        "identical": checked.first is None,
    }
    if checked.first is not None:
        body["first"] = asdict(checked.first)
    return Reply(body)


VERIFY_ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/runs/{run_id}:verify", call=verify_log,
        scope="runs:read",
        body=Verify, summary="Work a run out anew from its log and compare", errors=(404, 409),
    ),
)  # fmt: skip
