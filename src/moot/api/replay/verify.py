"""Whether a run's log is what its workflow and the facts in it lead to."""

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from moot.api.http.request import Endpoint, Reply, Request
from moot.engine.replay.verify import verified


class Verify(Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing to say."""


async def verify(request: Request) -> Reply:
    run_id = request.params["run_id"]
    await request.read(Verify)
    checked = await verified(request.services.host, request.caller.tenant, run_id)
    body: dict[str, Any] = {
        "runId": run_id,
        "events": checked.events,
        "modelCalls": checked.calls,
        "identical": checked.first is None,
    }
    if checked.first is not None:
        body["first"] = asdict(checked.first)
    return Reply(body)


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/runs/{run_id}:verify", call=verify, scope="runs:read",
        body=Verify, summary="Work a run out anew from its log and compare", errors=(404, 409),
    ),
)  # fmt: skip
