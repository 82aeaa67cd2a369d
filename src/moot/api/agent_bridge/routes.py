"""The thread API: routes, names and shapes as programs for Agent Bridge know them.

Strict inside: who speaks is the key's matter, the host writes ids and times, and every type is
checked. With ``--trust-local`` programs on this machine are believed who they are.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot import __version__
from moot.api.access import trust_local
from moot.api.access.trust_local import is_local
from moot.api.agent_bridge import posts
from moot.api.agent_bridge.stream import ThreadReader
from moot.api.agent_bridge.view import MOST_EVENTS, Page, Thread
from moot.api.http.request import SSE, Endpoint, Reply, Request, Stream
from moot.api.runs.events import cursor
from moot.api.threads import councils, routes
from moot.api.threads.view import bridge_state
from moot.core.conversations import joining
from moot.core.errors import BadRequest, NotYourName
from moot.core.events import iso
from moot.core.runs.start import StartRun
from moot.core.state.conversation import THREAD, thread_id
from moot.core.state.council_policy import Policy
from moot.core.state.run import Run
from moot.core.text.names import is_person
from moot.store.protocol import RunFilter

#: threads in one list, the newest
MOST_THREADS = 1000
UNTITLED = "Untitled"

Name = Annotated[str, Meta(min_length=1, max_length=256)]
Title = Annotated[str, Meta(max_length=256)]


class NewThread(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}
):
    name: Title | UnsetType = UNSET
    from_: Name | UnsetType = UNSET
    #: the same as ``name``; and what a thread of this host may begin with
    title: Title | UnsetType = UNSET
    opening: councils.Text | None = None
    participants: list[Name | dict[str, Any]] = []
    policy: Policy | UnsetType = UNSET


# -- threads -----------------------------------------------------------------------------------


async def listed(request: Request) -> Reply:
    where = RunFilter(workflow_id=THREAD, mark=routes.ARCHIVED, marked=False)
    rows, _ = await request.services.store.list_runs(
        request.caller.tenant, where, None, MOST_THREADS
    )
    found = [
        {
            "id": row.run_id,
            "name": row.title or UNTITLED,
            "created_at": iso(row.created_at * 1000),
            "updated_at": iso(row.updated_at * 1000),
        }
        for row in rows
    ]
    return Reply({"threads": found}, 200, {"Cache-Control": "no-store"})


async def create(request: Request) -> Reply:
    asked = await trust_local.read(request, NewThread)
    name = "user" if is_local(request.caller) and asked.from_ is UNSET else asked.from_
    who, founder = posts.speaks(request, name)
    if not who.admin and founder != who.person and founder not in who.names:
        raise NotYourName(founder, list(who.names))
    joining.check(founder, "from")
    inputs = await _inputs(request, asked, founder)
    title = inputs["title"]
    host, tenant = request.services.host, request.caller.tenant
    command = StartRun(
        tenant=tenant,
        principal=who.principal,
        person=founder,
        at=request.services.clock.millis(),
        limits=host.limits,
        inputs=inputs,
    )
    flow = await host.flows.newest(tenant, THREAD)

    def made(run: Run) -> Reply:
        url = f"/threads/{run.run_id}"
        return Reply({"id": run.run_id, "name": title}, 200, {"Location": url})

    await host.create(flow, command, request.recording(made))
    return request.made


async def _inputs(request: Request, asked: NewThread, founder: str) -> dict[str, Any]:
    if asked.name is not UNSET and asked.title is not UNSET:
        raise BadRequest("name and title are the same; give one.", field="title")
    field, given = ("name", asked.name) if asked.title is UNSET else ("title", asked.title)
    text = "" if given is UNSET else given.strip()
    title = councils.titled(text, field) if text else UNTITLED
    if asked.opening is not None and not is_person(founder):
        raise BadRequest("A person opens a thread; an agent says its words in it.", field="opening")
    inputs = await routes.inputs_of(request, title, asked.opening, asked.participants)
    if asked.policy is not UNSET:
        inputs["participation"] = msgspec.to_builtins(asked.policy)
    return inputs


async def state(request: Request) -> Reply:
    run, talk = await councils.place(request)
    body = {
        "thread": thread_id(run, talk),
        "state": bridge_state(run, talk, request.services.clock.millis()),
    }
    return Reply(body, 200, {"Cache-Control": "no-store"})


# -- reading -----------------------------------------------------------------------------------


async def events(request: Request) -> Reply:
    run, talk = await councils.place(request)
    thread = Thread(request.services.store, run, talk)
    limit = request.integer("limit", MOST_EVENTS, 1, MOST_EVENTS)
    since = request.query.get("since")
    if "after" in request.query:
        page = await thread.after(request.integer("after", -1, -1, 2**53), limit)
    elif since:
        page = await thread.since(since, limit)
    else:
        page = await thread.whole(limit)
    return Reply(_page(page), 200, {"Cache-Control": "no-store"})


def _page(page: Page) -> bytes:
    more = b',"more":true' if page.more else b""
    events = b",".join(page.events)
    return b'{"events":[%b],"count":%d%b}' % (events, len(page.events), more)


async def stream(request: Request) -> Reply | Stream:
    """Without a cursor from the end on; a reader that comes back may say in a header what it has.
    Who comes to the end of a closed thread is told to stay away: nothing will ever come."""
    run, talk = await councils.place(request)
    head = await request.services.host.view(run.tenant, run.run_id)
    since = None if "after" in request.query else request.query.get("since") or None
    seen = request.header("last-event-id")
    begin = run.next_sequence - 1 if since or not seen else cursor(seen)
    after = request.integer("after", begin, -1, 2**53)
    reader = await ThreadReader(request, head, talk, after).begin(since)
    if reader.at_end:
        return Reply(None, 204)
    return Stream(reader.write)


async def ping(request: Request) -> Reply:
    now = iso(request.services.clock.micros())
    body = {"status": "ok", "server": "moot", "version": __version__, "timestamp": now}
    return Reply(body, 200, {"Cache-Control": "no-store"})


SINCE = ({"type": "string", "format": "date-time"}, "the ts of the newest event already seen")
AFTER = ({"type": "integer", "minimum": -1}, "the seq of the newest event already seen")
ENDPOINTS = (
    Endpoint(
        method="GET", path="/threads", call=listed, scope="runs:read", local=True,
        summary="List the threads, newest first",
    ),
    Endpoint(
        method="POST", path="/threads", call=create, scope="runs:create", body=NewThread,
        local=True, summary="Begin a thread",
    ),
    Endpoint(
        method="GET", path="/threads/{thread_id}/events", call=events, scope="runs:read",
        local=True, joined=True, errors=(404,),
        summary="Read the events of a thread, oldest first",
        query={
            "since": SINCE, "after": AFTER,
            "limit": ({"type": "integer", "minimum": 1, "maximum": MOST_EVENTS}, "events at most"),
        },
    ),
    Endpoint(
        method="POST", path="/threads/{thread_id}/events", call=posts.post,
        scope="approvals:respond", body=posts.Posted, local=True, joined=True,
        errors=(404, 409, 422), summary="Say something in a thread, or steer it",
    ),
    Endpoint(
        method="GET", path="/threads/{thread_id}/events/stream", call=stream, scope="runs:read",
        media=SSE, local=True, joined=True, errors=(404,), query={"since": SINCE, "after": AFTER},
        summary="The events of a thread as they happen, from the end on or from a cursor",
    ),
    Endpoint(
        method="GET", path="/threads/{thread_id}/state", call=state, scope="runs:read",
        local=True, joined=True, errors=(404,),
        summary="How a thread is steered, and who is invited",
    ),
    Endpoint(
        method="GET", path="/ping", call=ping, public=True, summary="Whether the host is there",
    ),
)  # fmt: skip
