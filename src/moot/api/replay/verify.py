"""Verify that this host could have written a run's log."""

from msgspec.structs import asdict

from moot.api.http.request import Endpoint, Reply, Request
from moot.engine.replay.replay import verify_run
from moot.wire.replay import RunVerification, VerificationDifference, VerifyRunBody


async def verify_log(request: Request) -> Reply:
    run_id = request.params["run_id"]
    await request.read(VerifyRunBody)
    checked = await verify_run(request.services.host, request.caller.tenant, run_id)
    first = checked.first
    verification = RunVerification(
        run_id=run_id,
        events=checked.events,
        model_calls=checked.calls,
        identical=first is None,
        first=None if first is None else VerificationDifference(**asdict(first)),
    )
    return Reply(verification)


VERIFY_ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/runs/{run_id}:verify", call=verify_log,
        scope="runs:read",
        body=VerifyRunBody, summary="Work a run out anew from its log and compare",
        errors=(404, 409),
        tag="Replay", operation_id="verifyRun", answer=RunVerification,
        description="Recomputes a run from its log and its workflow, and returns the first event "
        "that this host would not have written. Refuses a log of a newer engine with "
        "409.",
    ),
)  # fmt: skip
