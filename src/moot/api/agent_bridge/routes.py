"""The thread API, in routes and shapes that Agent Bridge programs know.

The key decides who speaks, the host writes ids and times, and every type is checked. With
``--trust-local`` the host believes local programs without a key.
"""

import msgspec
from msgspec import UNSET

from moot import __version__
from moot.api.access import trust_local
from moot.api.access.trust_local import is_local
from moot.api.agent_bridge import posts
from moot.api.agent_bridge.stream import ThreadEventStream
from moot.api.agent_bridge.thread_log import MOST_EVENTS, ThreadLog, ThreadLogPage
from moot.api.http.request import SSE, Endpoint, Reply, Request, Stream, whole_number
from moot.api.runs.events import parse_cursor
from moot.api.threads import routes
from moot.api.threads.inputs import check_title, thread_inputs, thread_order
from moot.api.threads.lookup import find_thread
from moot.api.threads.view import bridge_state
from moot.core.conversations.participants import check_participant_name
from moot.core.errors import BadRequest, NotYourName
from moot.core.events import iso
from moot.core.state.conversation import THREAD, thread_id
from moot.core.state.run import Run
from moot.core.text.names import is_person
from moot.engine.start import start_run
from moot.store.protocol import RunFilter
from moot.wire.agent_bridge import (
    BridgeEventList,
    BridgePing,
    BridgePostResult,
    BridgeThread,
    BridgeThreadList,
    BridgeThreadState,
    CreateBridgeThread,
    CreatedBridgeThread,
    PostBridgeEvent,
)

#: A list holds the newest threads.
MOST_THREADS = 1000
UNTITLED = "Untitled"

# -- threads -----------------------------------------------------------------------------------


async def list_bridge_threads(request: Request) -> Reply:
    where = RunFilter(workflow_id=THREAD, mark=routes.ARCHIVED, marked=False)
    rows, _ = await request.store.list_runs(request.tenant, where, None, MOST_THREADS)
    threads = [
        BridgeThread(
            id=row.run_id,
            name=row.title or UNTITLED,
            created_at=iso(row.created_at * 1000),
            updated_at=iso(row.updated_at * 1000),
        )
        for row in rows
    ]
    return Reply(BridgeThreadList(threads), 200, {"Cache-Control": "no-store"})


async def create_bridge_thread(request: Request) -> Reply:
    body = await trust_local.read_lenient_body(request, CreateBridgeThread)
    name = "user" if is_local(request.caller) and body.sender is UNSET else body.sender
    who, founder = posts.speaker_and_name(request, name)
    if not who.admin and founder != who.person and founder not in who.names:
        raise NotYourName(founder, list(who.names))
    check_participant_name(founder, "from")
    inputs = await _bridge_inputs(request, body, founder)
    title = str(inputs["title"])
    order = thread_order(request, inputs, who, founder)

    def created_reply(run: Run) -> Reply:
        url = f"/threads/{run.run_id}"
        return Reply(CreatedBridgeThread(id=run.run_id, name=title), 200, {"Location": url})

    await start_run(request.host, order, receipt=request.record_reply(created_reply))
    return request.reply


async def _bridge_inputs(
    request: Request, body: CreateBridgeThread, founder: str
) -> dict[str, object]:
    if body.name is not UNSET and body.title is not UNSET:
        raise BadRequest("name and title are the same; give one.", field="title")
    field, title_text = ("name", body.name) if body.title is UNSET else ("title", body.title)
    text = "" if title_text is UNSET else title_text.strip()
    title = check_title(text, field) if text else UNTITLED
    if body.opening is not None and not is_person(founder):
        raise BadRequest("A person opens a thread; an agent says its words in it.", field="opening")
    inputs = await thread_inputs(request, title, body.opening, body.participants)
    if body.policy is not UNSET:
        inputs["participation"] = msgspec.to_builtins(body.policy)
    return inputs


async def read_bridge_state(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    state = bridge_state(run, conversation, request.now())
    answer = BridgeThreadState(thread=thread_id(run, conversation), state=state)
    return Reply(answer, 200, {"Cache-Control": "no-store"})


# -- reading -----------------------------------------------------------------------------------


async def read_bridge_events(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    thread = ThreadLog(request.store, run, conversation)
    limit = request.integer("limit", MOST_EVENTS, 1, MOST_EVENTS)
    since = request.query.get("since")
    if "after" in request.query:
        page = await thread.after(request.integer("after", -1, -1, 2**53), limit)
    elif since:
        page = await thread.since(since, limit)
    else:
        page = await thread.whole(limit)
    return Reply(_encode_page(page), 200, {"Cache-Control": "no-store"})


def _encode_page(page: ThreadLogPage) -> bytes:
    more = b',"more":true' if page.more else b""
    events = b",".join(page.events)
    return b'{"events":[%b],"count":%d%b}' % (events, len(page.events), more)


async def stream_bridge_events(request: Request) -> Reply | Stream:
    """Stream events from a cursor on, or from the end without one.

    A reader that reconnects may send its cursor in a header. At the end of a closed thread the
    answer is 204, which tells the reader to stay away.
    """
    run, conversation = await find_thread(request)
    head = await request.host.view(run.tenant, run.run_id)
    since = None if "after" in request.query else request.query.get("since") or None
    last_event_id = request.header("last-event-id")
    begin = run.next_sequence - 1 if since or not last_event_id else parse_cursor(last_event_id)
    after = request.integer("after", begin, -1, 2**53)
    reader = await ThreadEventStream(request, head, conversation, after).begin(since)
    if reader.at_end:
        return Reply(None, 204)
    return Stream(reader.write)


async def ping(request: Request) -> Reply:
    now = iso(request.services.clock.micros())
    answer = BridgePing(status="ok", server="moot", version=__version__, timestamp=now)
    return Reply(answer, 200, {"Cache-Control": "no-store"})


CURSOR = {"since": {"type": "string", "format": "date-time"}, "after": whole_number(-1)}
BRIDGE_ENDPOINTS = (
    Endpoint("GET", "/threads", list_bridge_threads, scope="runs:read", local=True,
             answer=BridgeThreadList),
    Endpoint("POST", "/threads", create_bridge_thread, scope="runs:create", local=True,
             body=CreateBridgeThread, answer=CreatedBridgeThread),
    Endpoint("GET", "/threads/{thread_id}/events", read_bridge_events, scope="runs:read",
             local=True, joined=True, query={**CURSOR, "limit": whole_number(1, MOST_EVENTS)},
             answer=BridgeEventList),
    Endpoint("POST", "/threads/{thread_id}/events", posts.post_event, scope="approvals:respond",
             local=True, joined=True, body=PostBridgeEvent, answer=BridgePostResult),
    Endpoint("GET", "/threads/{thread_id}/events/stream", stream_bridge_events, scope="runs:read",
             local=True, joined=True, query=CURSOR, media=SSE),
    Endpoint("GET", "/threads/{thread_id}/state", read_bridge_state, scope="runs:read", local=True,
             joined=True, answer=BridgeThreadState),
    Endpoint("GET", "/ping", ping, public=True, answer=BridgePing),
)  # fmt: skip
