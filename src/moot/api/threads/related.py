"""Where a thread goes on: those that were made of it, and of the side threads it points to."""

from typing import Any

from moot.api.http.request import Request
from moot.core.state.run import Run
from moot.store.protocol import RunFilter

#: of one thread that are told, and ended side threads that are looked after
MOST_FORKS, MOST_SIDES = 20, 20


async def with_kin(request: Request, run: Run, body: dict[str, Any]) -> dict[str, Any]:
    """A thread as it is shown, and with it which others have its history."""
    if found := await _forks(request, run.run_id):
        body["goesOnIn"] = found
    ended = [link for link in body.get("links", []) if not link["open"]]
    for link in ended[-MOST_SIDES:]:
        if found := await _forks(request, link["threadId"]):
            link["goesOnIn"] = found
    return body


async def _forks(request: Request, run_id: str) -> list[dict[str, Any]]:
    """The newest first."""
    store, where = request.services.store, RunFilter(fork_of=run_id)
    rows, _ = await store.list_runs(request.caller.tenant, where, None, MOST_FORKS)
    return [{"threadId": row.run_id, "note": row.fork_note} for row in rows]
