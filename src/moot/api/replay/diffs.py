"""Compare two runs, event by event."""

from collections.abc import AsyncIterator
from itertools import zip_longest
from typing import Any

import msgspec

from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.core import events
from moot.core.errors import BadRequest
from moot.core.replay.compare import diff_states, is_same_event
from moot.engine.head import Head

#: Limits of the answer: differences, and bytes of both logs.
MOST_LISTED = 1000
LARGEST = 4 * 1024 * 1024
PAGE = 500

Pair = tuple[bytes | None, bytes | None]


async def diff_runs(request: Request) -> Reply:
    host, tenant = request.services.host, request.caller.tenant
    a = await host.whole(tenant, request.params["run_id"])
    against = request.query.get("against")
    if not against:
        raise BadRequest("Say which run to compare with: ?against=<runId>.", field="against")
    b = await host.whole(tenant, against)
    differences, cut = await _list_differences(request, a, b)
    body: dict[str, Any] = {
        "a": a.run.run_id,
        "b": b.run.run_id,
        "divergedAtSeq": differences[0]["seq"] if differences else None,
        "eventDiffs": differences,
        "stateDiff": diff_states(a.run, b.run),
    }
    if cut or not (a.run.terminal and b.run.terminal):
        body["truncated"] = True
    return Reply(encode(body))


async def _list_differences(
    request: Request, a: Head, b: Head
) -> tuple[list[dict[str, Any]], bool]:
    """Return the differences, and whether the list was cut."""
    differences: list[dict[str, Any]] = []
    size, sequence = 0, 0
    async for ours, theirs in _event_pairs(request, a, b):
        difference = _difference(sequence, ours, theirs)
        if difference is not None:
            size += len(ours or b"") + len(theirs or b"")
            if len(differences) >= MOST_LISTED or (size > LARGEST and differences):
                return differences, True
            differences.append(difference)
        sequence += 1
    return differences, False


def _difference(sequence: int, ours: bytes | None, theirs: bytes | None) -> dict[str, Any] | None:
    if ours is None or theirs is None:
        side = "bEvent" if ours is None else "aEvent"
        op = "added" if ours is None else "removed"
        return {"seq": sequence, "op": op, side: msgspec.Raw(ours or theirs or b"")}
    if is_same_event(events.decode(ours), events.decode(theirs)):
        return None
    return {
        "seq": sequence,
        "op": "changed",
        "aEvent": msgspec.Raw(ours),
        "bEvent": msgspec.Raw(theirs),
    }


async def _event_pairs(request: Request, a: Head, b: Head) -> AsyncIterator[Pair]:
    """Yield both logs in pairs, a page at a time.

    Events a living run has not reached yet are no difference.
    """
    short, long = sorted((a, b), key=lambda head: head.run.next_sequence)
    last = long.run.next_sequence if short.run.terminal else short.run.next_sequence
    for first in range(0, last, PAGE):
        ours, theirs = [
            await request.services.store.read(
                head.run.tenant, head.run.run_id, first - 1, _rows_left(head, first, last)
            )
            if _rows_left(head, first, last)
            else []
            for head in (a, b)
        ]
        for pair in zip_longest(ours, theirs):
            yield pair


def _rows_left(head: Head, first: int, last: int) -> int:
    return max(0, min(PAGE, head.run.next_sequence - first, last - first))


DIFF_ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/runs/{run_id}:diff", call=diff_runs, scope="runs:read",
        summary="Where two runs part ways, event by event", published="run-diff-response",
        query={"against": ({"type": "string"}, "the run to compare with")}, errors=(404,),
    ),
)  # fmt: skip
