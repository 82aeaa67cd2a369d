"""Supervisors, looked at from outside: what a turn was decided from."""

from moot.api.http.request import Endpoint, Reply, Request
from moot.core.errors import NotFound
from moot.engine.supervisors import turn_inputs

#: more digits than any turn has
LONGEST = 9


async def turn(request: Request) -> Reply:
    run_id, asked = request.params["run_id"], request.params["iteration"]
    host, tenant = request.services.host, request.caller.tenant
    await host.view(tenant, run_id)  # whose run it is comes first
    if not (asked.isascii() and asked.isdigit() and len(asked) <= LONGEST):
        raise NotFound("A turn is named by its number, from 1.", runId=run_id)
    return Reply(await turn_inputs(host, tenant, run_id, int(asked)))


ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/host/moot/runs/{run_id}/turns/{iteration}", call=turn,
        scope="runs:read", errors=(404,),
        summary="What a supervisor knew when it decided in a turn",
    ),
)  # fmt: skip
