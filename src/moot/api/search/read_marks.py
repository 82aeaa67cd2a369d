"""How far everybody has read: a mark for each reader of a thread, and what is unread after it.

A mark is nobody's news: it is kept beside the logs, never in one.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from moot.api.http.request import Endpoint, Reply, Request
from moot.api.interrupts import routes
from moot.api.threads.councils import place
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.run import Run
from moot.engine.threads import transcript
from moot.engine.threads.transcript import Extent, Talk
from moot.store.search import ReadMark


class Read(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """``upTo``: the sequence of the last event that was read, or ``turn``: the index of the last
    turn; left out, all there is."""

    up_to: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    turn: Annotated[int, Meta(ge=0, le=2**53)] | None = None


async def mark(request: Request) -> Reply:
    """A mark only goes on: of two devices the one that has read further counts."""
    run, talk = await place(request)
    asked = await request.read(Read)
    services, name = request.services, thread_id(run, talk)
    there, newest = Talk(services.store, run, talk), run.next_sequence - 1
    up_to = newest if asked.up_to is None else min(asked.up_to, newest)
    if asked.turn is not None and asked.turn <= talk.turns:
        up_to = min(up_to, await transcript.place_of(there, asked.turn))
    turn = await transcript.turn_at(there, up_to)
    kept = await services.store.mark_read(
        ReadMark(
            tenant=run.tenant,
            reader=reader(request),
            thread_id=name,
            sequence=up_to,
            turn=turn,
            at=services.clock.millis(),
        )
    )
    return Reply(await _shown(request, run, talk, kept))


async def show(request: Request) -> Reply:
    run, talk = await place(request)
    found = await marks(request, [thread_id(run, talk)])
    return Reply(await _shown(request, run, talk, found.get(thread_id(run, talk))))


async def _shown(
    request: Request, run: Run, talk: Conversation, kept: ReadMark | None
) -> dict[str, Any]:
    name, where = thread_id(run, talk), transcript.extent(run, talk)
    return {
        "threadId": name,
        "reader": reader(request),
        "upTo": kept.sequence if kept else -1,
        "turnIndex": kept.turn if kept else -1,
        "unread": (await unread(request, {name: where}))[name],
    }


def reader(request: Request) -> str:
    """Who reads is the key's matter; all keys of one person share their marks."""
    return routes.speaker(request).person


async def marks(request: Request, threads: list[str]) -> dict[str, ReadMark]:
    found = await request.services.store.read_marks(request.caller.tenant, reader(request), threads)
    return {each.thread_id: each for each in found}


async def unread(request: Request, threads: dict[str, Extent]) -> dict[str, int]:
    """Of some threads, as a list has them: how many turns of others the caller has not read."""
    store, who = request.services.store, reader(request)
    known = await marks(request, list(threads))
    return {
        name: await transcript.unread(store, where, known.get(name), who)
        for name, where in threads.items()
    }


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}/read", call=mark, scope="runs:read",
        body=Read, summary="Say how far you have read a thread", errors=(404,), joined=True,
        personal=True,
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}/read", call=show, scope="runs:read",
        summary="How far you have read a thread, and how much is unread", errors=(404,),
        joined=True,
    ),
)  # fmt: skip
