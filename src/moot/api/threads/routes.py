"""Begin, list, rename, link, archive and reopen threads."""

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict, replace

from moot.api.access.auth import speaker_from_request
from moot.api.agent_bridge.thread_log import MOST_EVENTS, ThreadLog
from moot.api.http.request import FLAG, TEXT, Endpoint, Reply, Request, whole_number
from moot.api.search import read_marks
from moot.api.threads import controls
from moot.api.threads.controls import send_command
from moot.api.threads.inputs import check_title, thread_inputs, thread_order
from moot.api.threads.lookup import check_open, find_thread, find_thread_by_id
from moot.api.threads.view import closing_decision, thread_view
from moot.api.views import copy_fields
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
from moot.core.state.conversation import (
    THREAD,
    Conversation,
    count_turns,
    current_title,
    is_opened_by_title,
    thread_id,
)
from moot.core.state.council_policy import describe_unused_settings
from moot.core.state.run import Run
from moot.core.text.fencing import content_text
from moot.core.text.names import handle_from_name
from moot.core.threads.rendered_event import RenderedEvent
from moot.core.threads.undo import undo_control
from moot.engine.replay.fork import ForkRequest, fork_run
from moot.engine.replay.import_log import IMPORT_RECORD
from moot.engine.start import prepare_run, start_command, start_run
from moot.engine.threads import transcript
from moot.engine.threads.transcript import ConversationExtent
from moot.engine.workflows.built_in import TALK
from moot.store.cursor import bind_cursor, unbind_cursor
from moot.store.protocol import RunFilter, RunIndexRow
from moot.store.records import Record
from moot.wire.threads import (
    BeginThread,
    LastTurn,
    LinkedThread,
    LinkThread,
    RenameThread,
    ReopenThread,
    ThreadEvent,
    ThreadEventList,
    ThreadList,
    ThreadSummary,
    ThreadView,
)

#: The kind of records that mark archived threads.
ARCHIVED = "archived-thread"
MOST_LISTED = 500
NEWEST = "newest"
ORDERS = (NEWEST, "active")

# -- beginning -----------------------------------------------------------------------------------


async def begin_thread(request: Request) -> Reply:
    body = await request.read(BeginThread)
    inputs = await thread_inputs(request, body.title, body.opening, body.participants)
    if body.policy is not UNSET:
        inputs["participation"] = policy = msgspec.to_builtins(body.policy)
        if problem := describe_unused_settings(policy):
            raise BadRequest(problem, field="policy")
    order = thread_order(request, inputs)
    await start_run(request.host, order, receipt=request.record_reply(begun_reply))
    return request.reply


def begun_reply(run: Run) -> Reply:
    [conversation] = run.conversations.values()
    url = f"/v1/host/moot/threads/{run.run_id}"
    return Reply(replace(thread_view(run, conversation), url=url), 201, {"Location": url})


# -- the list ------------------------------------------------------------------------------------


async def list_threads(request: Request) -> Reply:
    """List threads, newest or last used first. Archived ones appear only on request."""
    tenant, store = request.tenant, request.store
    limit, order = request.integer("limit", 50, 1, MOST_LISTED), request.query.get("order", NEWEST)
    if order not in ORDERS:
        raise BadRequest(f"order is {' or '.join(ORDERS)}.", field="order")
    archived = request.query.get("archived") == "true"
    where = RunFilter(
        workflow_id=THREAD, prefix=request.query.get("prefix") or None, mark=ARCHIVED,
        marked=archived,
        used=order != NEWEST,
    )  # fmt: skip
    cursor = request.query.get("cursor")
    if order != NEWEST:  # a cursor is valid only for its own order
        cursor = unbind_cursor(cursor, order)
    rows, cursor = await store.list_runs(tenant, where, cursor, limit)
    views = await thread_rows(request, rows, archived)
    if cursor is not None and order != NEWEST:
        cursor = bind_cursor(cursor, order)
    page = ThreadList(threads=views, you=read_marks.reader_name(request), next_cursor=cursor)
    return Reply(page, 200, {"Cache-Control": "no-store"})


async def archive_thread(request: Request) -> Reply:
    return await _set_archived(request, gone=False)


async def unarchive_thread(request: Request) -> Reply:
    return await _set_archived(request, gone=True)


async def _set_archived(request: Request, gone: bool) -> Reply:
    """Mark the thread as archived or not. The thread itself does not change."""
    run, conversation = await find_thread(request)
    if run.workflow_id != THREAD:
        raise BadRequest("It is a part of its run, and in no list of threads.", runId=run.run_id)
    now = request.now()
    record = Record(
        tenant=run.tenant, kind=ARCHIVED, name=thread_id(run, conversation), version=str(now),
        body=b"{}",
        created_at=now, by=request.caller.id, gone=gone,
    )  # fmt: skip
    await request.store.put_record(record)
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
    order, host = thread_order(request, {**inputs, "sideOf": own}), request.host
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

    host = request.host
    await fork_run(host, run.tenant, run.run_id, wanted, request.record_reply(answer))
    return request.reply


async def _closing_sequence(request: Request, run: Run, conversation: Conversation) -> int:
    """Return the start of the decision that closed the conversation or ended its run."""
    thread = ThreadLog(request.store, run, conversation)
    closing = await _read_event(request, run, conversation.last_seq)
    if closing.type == ConversationEnded.event_type:
        return await thread.decision_after(conversation.last_seq - 1)
    return await thread.decision_after(run.next_sequence - 2)


async def _read_event(request: Request, run: Run, sequence: int) -> Event:
    [row] = await request.store.read(run.tenant, run.run_id, sequence - 1, 1)
    return decode(row)


# -- read by people ------------------------------------------------------------------------------


async def read_thread_events(request: Request) -> Reply:
    """Return the thread's events with sentences, and how to undo controls that still hold."""
    run, conversation = await find_thread(request)
    now = request.now()

    def describe(event: Event, rendered: RenderedEvent) -> ThreadEvent:
        undo = undo_control(rendered, conversation, now)
        return ThreadEvent(**asdict(rendered), says=_event_sentence(event, rendered), undo=undo)

    thread = ThreadLog(request.store, run, conversation, describe)
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


#: Characters of the last turn and of the decision.
LONGEST_QUOTE = 160


async def thread_rows(
    request: Request, rows: list[RunIndexRow], archived: bool
) -> list[ThreadSummary]:
    """Return one view for each row, in the same order."""
    extents = {row.run_id: _row_extent(row) for row in rows}
    unread = await read_marks.count_unread(request, extents)
    views = [_row_view(row, archived, unread[row.run_id]) for row in rows]
    if request.query.get("about") == "true":
        views = [await _add_details(request, view, extents[view.run_id]) for view in views]
    return views


def _row_extent(row: RunIndexRow) -> ConversationExtent:
    return ConversationExtent(
        tenant=row.tenant,
        run_id=row.run_id,
        node_id=TALK,
        turns=-1 if row.turns is None else row.turns,
        length=row.next_sequence,
        first=row.fork_seq or 0,
    )


def _row_view(row: RunIndexRow, archived: bool, unread: int) -> ThreadSummary:
    return copy_fields(
        ThreadSummary,
        row,
        thread_id=row.run_id,
        title=row.title or "",
        open=row.ended_at is None,
        archived=archived,
        turns=row.turns or 0,
        last_sequence=row.next_sequence - 1,
        unread=unread,
        forked_from=row.fork_of,
        fork_note=UNSET if row.fork_of is None else row.fork_note,
    )


async def _add_details(
    request: Request, view: ThreadSummary, where: ConversationExtent
) -> ThreadSummary:
    services = request.services
    run = (await services.host.view(where.tenant, where.run_id)).run
    conversation = run.conversations.get(TALK)
    if conversation is None:
        return view
    everyone = conversation.participants.items()
    members = [name for name, each in everyone if each.listed or each.joined]
    mark = await services.store.record(where.tenant, IMPORT_RECORD, where.run_id)
    decision = closing_decision(run, conversation)
    return replace(
        view,
        paused=conversation.state.paused,
        created_by=run.person,
        turn_count=count_turns(run, conversation),
        participants=[handle_from_name(name) for name in members],
        imported=mark is not None,
        decision=None if decision is None else _shorten(decision.text),
        adopted=None if decision is None or decision.adopted else False,
        last=await _last_turn(request, run, where),
    )


async def _last_turn(request: Request, run: Run, where: ConversationExtent) -> LastTurn | None:
    last = await transcript.newest_turn(request.store, where)
    if last is None or (last.index == 0 and is_opened_by_title(run)):
        return None
    text = _shorten(content_text(last.content))
    return LastTurn(speaker=handle_from_name(last.speaker), content=text)


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"


THREADS = "/v1/host/moot/threads"
LISTED = {
    "limit": whole_number(1, MOST_LISTED), "cursor": TEXT, "prefix": TEXT, "archived": FLAG,
    "about": FLAG, "order": {"type": "string", "enum": list(ORDERS)},
}  # fmt: skip
READ = {"after": whole_number(-1), "before": whole_number(0), "limit": whole_number(1, MOST_EVENTS)}
THREAD_ENDPOINTS = (
    Endpoint("GET", THREADS, list_threads, scope="runs:read",
             query=LISTED, answer=ThreadList),
    Endpoint("POST", THREADS, begin_thread, scope="runs:create", body=BeginThread, status=201,
             answer=ThreadView),
    Endpoint("GET", f"{THREADS}/{{thread_id}}/events", read_thread_events, scope="runs:read",
             joined=True, query=READ, answer=ThreadEventList),
    Endpoint("POST", f"{THREADS}/{{thread_id}}:rename", rename_thread, scope="approvals:respond",
             body=RenameThread, answer=ThreadView),
    Endpoint("POST", f"{THREADS}/{{thread_id}}/links", link_thread, scope="runs:create",
             body=LinkThread, status=201, answer=LinkedThread),
    Endpoint("POST", f"{THREADS}/{{thread_id}}:archive", archive_thread, scope="approvals:respond",
             answer=ThreadView),
    Endpoint("POST", f"{THREADS}/{{thread_id}}:unarchive", unarchive_thread,
             scope="approvals:respond", answer=ThreadView),
    Endpoint("POST", f"{THREADS}/{{thread_id}}:reopen", reopen_thread, scope="runs:create",
             body=ReopenThread, status=201, answer=ThreadView),
)  # fmt: skip
