"""Compare two runs, event by event, or a run with what its log must lead to."""

from collections.abc import AsyncIterator
from itertools import zip_longest

from msgspec.structs import asdict

from moot.api.http.request import TEXT, Endpoint, Reply, Request
from moot.core import events
from moot.core.errors import BadRequest
from moot.core.replay.compare import diff_states, is_same_event
from moot.engine.head import Head
from moot.engine.replay.replay import verify_run
from moot.wire.json import stored_object
from moot.wire.replay import (
    EventDiff,
    RunDiff,
    RunVerification,
    VerificationDifference,
    VerifyRunBody,
)

#: Limits of the answer: differences, and bytes of both logs.
MOST_LISTED = 1000
LARGEST = 4 * 1024 * 1024
PAGE = 500

Pair = tuple[bytes | None, bytes | None]


async def diff_runs(request: Request) -> Reply:
    host, tenant = request.host, request.tenant
    a = await host.whole(tenant, request.params["run_id"])
    against = request.query.get("against")
    if not against:
        raise BadRequest("Say which run to compare with: ?against=<runId>.", field="against")
    b = await host.whole(tenant, against)
    differences, cut = await _list_differences(request, a, b)
    diff = RunDiff(
        a=a.run.run_id,
        b=b.run.run_id,
        diverged_at_seq=differences[0].seq if differences else None,
        event_diffs=differences,
        state_diff=diff_states(a.run, b.run),
        truncated=cut or not (a.run.terminal and b.run.terminal),
    )
    return Reply(diff)


async def _list_differences(request: Request, a: Head, b: Head) -> tuple[list[EventDiff], bool]:
    """Return the differences, and whether the list was cut."""
    differences: list[EventDiff] = []
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


def _difference(sequence: int, ours: bytes | None, theirs: bytes | None) -> EventDiff | None:
    is_in_both = ours is not None and theirs is not None
    if ours and theirs and is_same_event(events.decode(ours), events.decode(theirs)):
        return None
    return EventDiff(
        seq=sequence,
        op="changed" if is_in_both else "added" if ours is None else "removed",
        a_event=None if ours is None else stored_object(ours),
        b_event=None if theirs is None else stored_object(theirs),
    )


async def _event_pairs(request: Request, a: Head, b: Head) -> AsyncIterator[Pair]:
    """Yield both logs in pairs, a page at a time.

    Events a living run has not reached yet are no difference.
    """
    short, long = sorted((a, b), key=lambda head: head.run.next_sequence)
    last = long.run.next_sequence if short.run.terminal else short.run.next_sequence
    for first in range(0, last, PAGE):
        ours, theirs = [
            await request.store.read(
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


async def verify_log(request: Request) -> Reply:
    run_id = request.params["run_id"]
    await request.read(VerifyRunBody)
    checked = await verify_run(request.host, request.tenant, run_id)
    first = checked.first
    verification = RunVerification(
        run_id=run_id,
        events=checked.events,
        model_calls=checked.calls,
        identical=first is None,
        first=None if first is None else VerificationDifference(**asdict(first)),
    )
    return Reply(verification)


COMPARISON_ENDPOINTS = (
    Endpoint("GET", "/v1/runs/{run_id}:diff", diff_runs, scope="runs:read", query={"against": TEXT},
             answer=RunDiff),
    Endpoint("POST", "/v1/host/moot/runs/{run_id}:verify", verify_log, scope="runs:read",
             body=VerifyRunBody, answer=RunVerification),
)  # fmt: skip
