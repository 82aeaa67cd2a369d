"""Read marks: how far each reader has read a thread, and what is unread.

The store keeps marks beside the logs, never in one.
"""

from moot.api.access.auth import speaker_from_request
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.threads.lookup import find_thread
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.run import Run
from moot.engine.threads import transcript
from moot.engine.threads.transcript import ConversationExtent, StoredConversation
from moot.store.search import ReadMark
from moot.wire.search import MarkRead, ReadStatus


async def mark_read(request: Request) -> Reply:
    """Move the mark forward. It never moves back, so the device that has read further counts."""
    run, conversation = await find_thread(request)
    body = await request.read(MarkRead)
    services, name = request.services, thread_id(run, conversation)
    thread, newest = StoredConversation(services.store, run, conversation), run.next_sequence - 1
    up_to = newest if body.up_to is None else min(body.up_to, newest)
    if body.turn is not None and body.turn <= conversation.turns:
        up_to = min(up_to, await transcript.turn_sequence(thread, body.turn))
    turn = await transcript.turn_index_at(thread, up_to)
    mark = await services.store.mark_read(
        ReadMark(
            tenant=run.tenant,
            reader=reader_name(request),
            thread_id=name,
            sequence=up_to,
            turn=turn,
            at=services.clock.millis(),
        )
    )
    return Reply(await _mark_view(request, run, conversation, mark))


async def read_own_mark(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    marks = await find_marks(request, [thread_id(run, conversation)])
    return Reply(
        await _mark_view(request, run, conversation, marks.get(thread_id(run, conversation)))
    )


async def _mark_view(
    request: Request, run: Run, conversation: Conversation, mark: ReadMark | None
) -> ReadStatus:
    name, extent = thread_id(run, conversation), transcript.conversation_extent(run, conversation)
    return ReadStatus(
        thread_id=name,
        reader=reader_name(request),
        up_to=mark.sequence if mark else -1,
        turn_index=mark.turn if mark else -1,
        unread=(await count_unread(request, {name: extent}))[name],
    )


def reader_name(request: Request) -> str:
    """Return the reader's name from the key. All keys of one person share their marks."""
    return speaker_from_request(request).person


async def find_marks(request: Request, threads: list[str]) -> dict[str, ReadMark]:
    marks = await request.store.read_marks(request.tenant, reader_name(request), threads)
    return {mark.thread_id: mark for mark in marks}


async def count_unread(request: Request, threads: dict[str, ConversationExtent]) -> dict[str, int]:
    """Return the number of unread turns of others, for each thread."""
    store, who = request.store, reader_name(request)
    marks = await find_marks(request, list(threads))
    return {
        name: await transcript.count_unread(store, where, marks.get(name), who)
        for name, where in threads.items()
    }


READ_MARK_ENDPOINTS = (
    Endpoint("POST", "/v1/host/moot/threads/{thread_id}/read", mark_read, scope="runs:read",
             joined=True, personal=True, body=MarkRead, answer=ReadStatus),
    Endpoint("GET", "/v1/host/moot/threads/{thread_id}/read", read_own_mark, scope="runs:read",
             joined=True, answer=ReadStatus),
)  # fmt: skip
