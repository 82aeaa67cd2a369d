"""Two runs side by side: by sequence, as the protocol says."""

from collections.abc import AsyncIterator
from itertools import zip_longest
from typing import Any

import msgspec

from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.core import events
from moot.core.errors import BadRequest
from moot.core.replay.compare import same, state_diff
from moot.engine.head import Head

#: differences that are listed, and how much of both logs they may show; then the answer is cut
MOST_LISTED = 1000
LARGEST = 4 * 1024 * 1024
PAGE = 500

Pair = tuple[bytes | None, bytes | None]


async def diff(request: Request) -> Reply:
    host, tenant = request.services.host, request.caller.tenant
    a = await host.whole(tenant, request.params["run_id"])
    against = request.query.get("against")
    if not against:
        raise BadRequest("Say which run to compare with: ?against=<runId>.", field="against")
    b = await host.whole(tenant, against)
    listed, cut = await _listed(request, a, b)
    body: dict[str, Any] = {
        "a": a.run.run_id,
        "b": b.run.run_id,
        "divergedAtSeq": listed[0]["seq"] if listed else None,
        "eventDiffs": listed,
        "stateDiff": state_diff(a.run, b.run),
    }
    if cut or not (a.run.terminal and b.run.terminal):
        body["truncated"] = True
    return Reply(encode(body))


async def _listed(request: Request, a: Head, b: Head) -> tuple[list[dict[str, Any]], bool]:
    """The differences, and whether there may be more of them."""
    listed: list[dict[str, Any]] = []
    size, sequence = 0, 0
    async for ours, theirs in _pairs(request, a, b):
        found = _difference(sequence, ours, theirs)
        if found is not None:
            size += len(ours or b"") + len(theirs or b"")
            if len(listed) >= MOST_LISTED or (size > LARGEST and listed):
                return listed, True
            listed.append(found)
        sequence += 1
    return listed, False


def _difference(sequence: int, ours: bytes | None, theirs: bytes | None) -> dict[str, Any] | None:
    if ours is None or theirs is None:
        side = "bEvent" if ours is None else "aEvent"
        op = "added" if ours is None else "removed"
        return {"seq": sequence, "op": op, side: msgspec.Raw(ours or theirs or b"")}
    if same(events.decode(ours), events.decode(theirs)):
        return None
    return {
        "seq": sequence,
        "op": "changed",
        "aEvent": msgspec.Raw(ours),
        "bEvent": msgspec.Raw(theirs),
    }


async def _pairs(request: Request, a: Head, b: Head) -> AsyncIterator[Pair]:
    """Both logs, a page at a time. What a living run has not come to yet is no difference."""
    short, long = sorted((a, b), key=lambda head: head.run.next_sequence)
    last = long.run.next_sequence if short.run.terminal else short.run.next_sequence
    for first in range(0, last, PAGE):
        ours, theirs = [
            await request.services.store.read(
                head.run.tenant, head.run.run_id, first - 1, _left(head, first, last)
            )
            if _left(head, first, last)
            else []
            for head in (a, b)
        ]
        for pair in zip_longest(ours, theirs):
            yield pair


def _left(head: Head, first: int, last: int) -> int:
    return max(0, min(PAGE, head.run.next_sequence - first, last - first))


ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/runs/{run_id}:diff", call=diff, scope="runs:read",
        summary="Where two runs part ways, event by event", answer="run-diff-response",
        query={"against": ({"type": "string"}, "the run to compare with")}, errors=(404,),
    ),
)  # fmt: skip
