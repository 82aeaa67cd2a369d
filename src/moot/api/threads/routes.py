"""Begin, list, rename, link, archive and reopen threads."""

from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict, replace

from moot.api.access.auth import speaker_from_request
from moot.api.agent_bridge.thread_log import MOST_EVENTS, ThreadLog
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.search import read_marks
from moot.api.threads import controls
from moot.api.threads.controls import send_command
from moot.api.threads.inputs import check_title, thread_inputs
from moot.api.threads.list import thread_rows
from moot.api.threads.lookup import check_open, find_thread, find_thread_by_id
from moot.api.threads.view import thread_view
from moot.core.errors import BadRequest, Conflict
from moot.core.events import Event, decode
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
)
from moot.core.runs.start import LinkedStart
from moot.core.sentences.conversations import opening_sentence
from moot.core.sentences.table import text_of
from moot.core.state.conversation import THREAD, Conversation, thread_id
from moot.core.state.council_policy import describe_unused_settings
from moot.core.state.run import Run
from moot.core.state.titles import current_title
from moot.core.text.names import handle_from_name
from moot.core.threads.rendered_event import RenderedEvent
from moot.core.threads.undo import undo_control
from moot.engine.replay.fork import ForkRequest, fork_run
from moot.engine.start import RunOrder, prepare_run, start_command, start_run
from moot.store.cursor import bind_cursor, unbind_cursor
from moot.store.protocol import RunFilter
from moot.store.records import Record
from moot.wire.threads import (
    BeginThread,
    LinkedThread,
    LinkThread,
    RenameThread,
    ReopenThread,
    ThreadEvent,
    ThreadEventList,
    ThreadList,
    ThreadView,
)

#: The kind of records that mark archived threads.
ARCHIVED = "archived-thread"
MOST_LISTED = 500
ORDERS = ("newest", "active")

# -- beginning -----------------------------------------------------------------------------------


async def begin_thread(request: Request) -> Reply:
    body = await request.read(BeginThread)
    inputs = await thread_inputs(request, body.title, body.opening, body.participants)
    if body.policy is not UNSET:
        inputs["participation"] = policy = msgspec.to_builtins(body.policy)
        if problem := describe_unused_settings(policy):
            raise BadRequest(problem, field="policy")
    order = _thread_order(request, inputs)
    await start_run(request.services.host, order, receipt=request.record_reply(begun_reply))
    return request.reply


def _thread_order(request: Request, inputs: dict[str, Any]) -> RunOrder:
    who = speaker_from_request(request)
    return RunOrder(
        tenant=request.caller.tenant,
        principal=who.principal,
        workflow_id=THREAD,
        person=who.person,
        inputs=inputs,
    )


def begun_reply(run: Run) -> Reply:
    [conversation] = run.conversations.values()
    url = f"/v1/host/moot/threads/{run.run_id}"
    return Reply(replace(thread_view(run, conversation), url=url), 201, {"Location": url})


# -- the list ------------------------------------------------------------------------------------


async def list_threads(request: Request) -> Reply:
    """List threads, newest or last used first. Archived ones appear only on request."""
    tenant, store = request.caller.tenant, request.services.store
    limit, order = request.integer("limit", 50, 1, MOST_LISTED), _parse_order(request)
    archived = request.query.get("archived") == "true"
    where = RunFilter(
        workflow_id=THREAD, prefix=request.query.get("prefix") or None, mark=ARCHIVED,
        marked=archived,
        used=order is not None,
    )  # fmt: skip
    cursor = _store_cursor(request.query.get("cursor"), order)
    rows, cursor = await store.list_runs(tenant, where, cursor, limit)
    views = await thread_rows(request, rows, archived)
    if cursor is not None and order is not None:
        cursor = bind_cursor(cursor, order)
    page = ThreadList(threads=views, you=read_marks.reader_name(request), next_cursor=cursor)
    return Reply(page, 200, {"Cache-Control": "no-store"})


def _parse_order(request: Request) -> str | None:
    """Return the order, or None for the newest first."""
    order = request.query.get("order", ORDERS[0])
    if order not in ORDERS:
        raise BadRequest(f"order is {' or '.join(ORDERS)}.", field="order")
    return None if order == ORDERS[0] else order


def _store_cursor(cursor: str | None, order: str | None) -> str | None:
    """Return the store's cursor. A cursor is valid only for its own order."""
    return cursor if order is None else unbind_cursor(cursor, order)


async def archive_thread(request: Request) -> Reply:
    return await _set_archived(request, gone=False)


async def unarchive_thread(request: Request) -> Reply:
    return await _set_archived(request, gone=True)


async def _set_archived(request: Request, gone: bool) -> Reply:
    """Mark the thread as archived or not. The thread itself does not change."""
    run, conversation = await find_thread(request)
    if run.workflow_id != THREAD:
        raise BadRequest("It is a part of its run, and in no list of threads.", runId=run.run_id)
    now = request.services.clock.millis()
    record = Record(
        tenant=run.tenant, kind=ARCHIVED, name=thread_id(run, conversation), version=str(now),
        body=b"{}",
        created_at=now, by=request.caller.id, gone=gone,
    )  # fmt: skip
    await request.services.store.put_record(record)
    return Reply(replace(thread_view(run, conversation), archived=not gone))


# -- names and links -----------------------------------------------------------------------------


async def rename_thread(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    body = await request.read(RenameThread)
    command = await controls.control_command(request, conversation, {"rename": body.title})
    return await send_command(request, run, conversation, command)


async def link_thread(request: Request) -> Reply:
    """Begin and link a side thread in one commit, or link an existing thread."""
    run, conversation = await find_thread(request)
    body = await request.read(LinkThread)
    check_open(conversation, request.params["thread_id"])
    own, begins = thread_id(run, conversation), None
    if body.thread is None:
        begins = await _side_thread(request, body, own)
        name, title = begins.run_id, check_title(str(body.title))
    else:
        other, other_conversation = await find_thread_by_id(request, body.thread)
        name, title = thread_id(other, other_conversation), current_title(other, other_conversation)
    content = {"link": {"thread": name, "title": title}}
    # a thread that has not begun cannot be looked up
    command = await controls.control_command(
        request, conversation, content if begins is None else {}
    )
    command = replace(command, content=command.content or content, begins=begins)
    url = f"/v1/host/moot/threads/{name}"
    answer = LinkedThread(thread_id=name, title=title, linked_from=own, url=url)
    reply = Reply(answer, 200 if begins is None else 201, {"Location": url})
    return await send_command(request, run, conversation, command, answer=lambda _: reply)


async def _side_thread(request: Request, body: LinkThread, own: str) -> LinkedStart:
    """Return the new side thread that the link's commit begins."""
    if body.title is None:
        raise BadRequest("Name a thread, or give the title of a new one.", field="title")
    inputs = await thread_inputs(request, body.title, body.opening, body.participants)
    order, host = _thread_order(request, {**inputs, "sideOf": own}), request.services.host
    flow, pinned = await prepare_run(host, order)
    host.refuse_when_stopping()
    command = start_command(host, order, flow, pinned)
    return LinkedStart(request.services.clock.new_id("th_"), flow, command)


# -- taken up again ------------------------------------------------------------------------------


async def reopen_thread(request: Request) -> Reply:
    """Continue a closed thread in a new one, from right before its end.

    The closed one stays closed.
    """
    run, conversation = await find_thread(request)
    body = await request.read(ReopenThread)
    if conversation.open:
        raise Conflict("The thread is open; there is nothing to take up again.")
    first = await _closing_sequence(request, run, conversation)
    wanted = ForkRequest(
        from_seq=first, by=speaker_from_request(request), note=body.note or "reopened"
    )

    def answer(fork: Run) -> Reply:
        again = fork.conversations[conversation.node_id]
        url = f"/v1/host/moot/threads/{thread_id(fork, again)}"
        source = thread_id(run, conversation)
        view = replace(thread_view(fork, again), reopened_from=source, url=url)
        return Reply(view, 201, {"Location": url})

    host = request.services.host
    await fork_run(host, run.tenant, run.run_id, wanted, request.record_reply(answer))
    return request.reply


async def _closing_sequence(request: Request, run: Run, conversation: Conversation) -> int:
    """Return the start of the decision that closed the conversation or ended its run."""
    thread = ThreadLog(request.services.store, run, conversation)
    closing = await _read_event(request, run, conversation.last_seq)
    if closing.type == ConversationEnded.event_type:
        return await thread.decision_after(conversation.last_seq - 1)
    return await thread.decision_after(run.next_sequence - 2)


async def _read_event(request: Request, run: Run, sequence: int) -> Event:
    [row] = await request.services.store.read(run.tenant, run.run_id, sequence - 1, 1)
    return decode(row)


# -- read by people ------------------------------------------------------------------------------


async def read_thread_events(request: Request) -> Reply:
    """Return the thread's events with sentences, and how to undo controls that still hold."""
    run, conversation = await find_thread(request)
    now = request.services.clock.millis()

    def describe(event: Event, rendered: RenderedEvent) -> ThreadEvent:
        undo = undo_control(rendered, conversation, now)
        return ThreadEvent(**asdict(rendered), says=_event_sentence(event, rendered), undo=undo)

    thread = ThreadLog(request.services.store, run, conversation, describe)
    limit = request.integer("limit", 1000, 1, MOST_EVENTS)
    if "before" in request.query:
        page = await thread.before(request.integer("before", 0, 0, 2**53), limit)
    else:
        page = await thread.after(request.integer("after", -1, -1, 2**53), limit)
    events = [msgspec.json.decode(row, type=ThreadEvent) for row in page.events]
    answer = ThreadEventList(events=events, count=len(events), more=page.more)
    return Reply(answer, 200, {"Cache-Control": "no-store"})


def _event_sentence(event: Event, rendered: RenderedEvent) -> str | None:
    """Return a sentence about an event that is not a turn."""
    if rendered.type == "thread.created":
        return opening_sentence(rendered.sender, rendered.content)
    if isinstance(event.payload, ConversationOpened | ConversationExchanged | ConversationEnded):
        return None
    return text_of(event.payload, handle_from_name)


THREADS = "/v1/host/moot/threads"
TEXT = {"type": "string"}
THREAD_ENDPOINTS = (
    Endpoint(
        method="GET", path=THREADS, call=list_threads, scope="runs:read",
        summary="List the threads, newest first",
        query={
            "limit": ({"type": "integer", "minimum": 1, "maximum": MOST_LISTED}, "rows at most"),
            "cursor": (TEXT, "nextCursor of the page before"),
            "prefix": (TEXT, "how the id begins"),
            "archived": ({"type": "boolean"}, "those that were put away, instead of the others"),
            "about": ({"type": "boolean"}, "also who takes part, and what was said last"),
            "order": ({"type": "string", "enum": list(ORDERS)},
                      "newest unless told otherwise; active has what was used last first"),
        },
        tag="Threads", operation_id="listThreads", answer=ThreadList,
        description="Lists the threads of the tenant in pages, each with the number of unread "
        "turns. Archived threads appear only with `archived`.",
    ),
    Endpoint(
        method="POST", path=THREADS, call=begin_thread, scope="runs:create", body=BeginThread,
        status=201,
        summary="Begin a thread",
        tag="Threads", operation_id="beginThread", answer=ThreadView,
        description="Begins a thread with a title, an opening turn if there is one, and invited "
        "participants. Agents of this host answer when they are addressed. Refuses a title "
        "without readable characters and settings that the policy's mode does not use.",
    ),
    Endpoint(
        method="GET", path=f"{THREADS}/{{thread_id}}/events", call=read_thread_events,
        scope="runs:read",
        joined=True, errors=(404,),
        summary="Read the events of a thread, controls in sentences and how to take them back",
        query={
            "after": ({"type": "integer", "minimum": -1}, "highest sequence already seen"),
            "before": ({"type": "integer", "minimum": 0},
                       "instead of after: the newest that are lower than this"),
            "limit": ({"type": "integer", "minimum": 1, "maximum": MOST_EVENTS}, "events at most"),
        },
        tag="Threads", operation_id="listThreadEvents", answer=ThreadEventList,
        description="Returns the events of a thread, oldest first. Controls come with a sentence "
        "about them and, while they have an effect, with the control that undoes them.",
    ),
    Endpoint(
        method="POST", path=f"{THREADS}/{{thread_id}}:rename", call=rename_thread,
        scope="approvals:respond", body=RenameThread, summary="Give a thread another name",
        errors=(404, 409),
        tag="Threads", operation_id="renameThread", answer=ThreadView,
        description="Changes the title of a thread. Refuses a closed thread with 409.",
    ),
    Endpoint(
        method="POST", path=f"{THREADS}/{{thread_id}}/links", call=link_thread, scope="runs:create",
        body=LinkThread, status=201, summary="Begin a side thread, or link one that is there",
        errors=(404, 409),
        tag="Threads", operation_id="linkThread", answer=LinkedThread,
        description="Links an existing thread, or begins a side thread and links it in one step. "
        "The side thread's decision is posted here when it closes. Refuses a closed thread with "
        "409.",
    ),
    Endpoint(
        method="POST", path=f"{THREADS}/{{thread_id}}:archive", call=archive_thread,
        scope="approvals:respond", summary="Put a thread away: lists leave it out", errors=(404,),
        tag="Threads", operation_id="archiveThread", answer=ThreadView,
        description="Takes a thread out of the list. The thread itself does not change. Refuses a "
        "conversation that is a part of another run.",
    ),
    Endpoint(
        method="POST", path=f"{THREADS}/{{thread_id}}:unarchive", call=unarchive_thread,
        scope="approvals:respond", summary="Take a thread out again", errors=(404,),
        tag="Threads", operation_id="unarchiveThread", answer=ThreadView,
        description="Puts an archived thread back into the list.",
    ),
    Endpoint(
        method="POST", path=f"{THREADS}/{{thread_id}}:reopen", call=reopen_thread,
        scope="runs:create",
        body=ReopenThread, status=201, errors=(404, 409, 422),
        summary="Go on with a closed thread in a new one that has its history",
        tag="Threads", operation_id="reopenThread", answer=ThreadView,
        description="Continues a closed thread in a new one that begins with its history. The "
        "closed one stays closed. Refuses an open thread with 409.",
    ),
)  # fmt: skip
