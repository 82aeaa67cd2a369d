"""Threads as they are kept: begun, listed, named, linked, put away, taken up again."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from moot.api.agent_bridge.view import MOST_EVENTS, Thread
from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.api.interrupts import routes
from moot.api.search import read_marks
from moot.api.threads import controls, councils
from moot.api.threads.list import rows
from moot.api.threads.view import shown
from moot.core.conversations.participants import check_invited
from moot.core.errors import BadRequest, Conflict
from moot.core.events import Event, decode
from moot.core.runs.start import Beginning, StartRun
from moot.core.state.conversation import THREAD, Conversation, thread_id, title_of
from moot.core.state.council_policy import OF_THREADS, Policy, meaningless
from moot.core.state.run import Run
from moot.core.threads.control_text import says
from moot.core.threads.undo import undo
from moot.engine.replay.branch import Wanted, branch
from moot.store.cursor import bound, unbound
from moot.store.protocol import Record, RunFilter

#: under which the store keeps what was put away
ARCHIVED = "archived-thread"
MOST_LISTED = 500
ORDERS = ("newest", "active")

Name = Annotated[str, Meta(min_length=1, max_length=256)]
Title = Annotated[str, Meta(min_length=1, max_length=256)]


class Begin(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A thread; whoever is invited may take part from the beginning."""

    title: Title
    opening: councils.Text | None = None
    participants: list[Name | dict[str, Any]] = []
    policy: Policy | UnsetType = UNSET


class Rename(Struct, frozen=True, forbid_unknown_fields=True):
    title: Title


class LinkTo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A thread that is there, by its id; or the beginning of a new one."""

    thread: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    title: Title | None = None
    opening: councils.Text | None = None
    participants: list[Name | dict[str, Any]] = []


class Reopen(Struct, frozen=True, forbid_unknown_fields=True):
    note: Annotated[str, Meta(min_length=1, max_length=500)] | None = None


# -- beginning -----------------------------------------------------------------------------------


async def begin(request: Request) -> Reply:
    asked = await request.read(Begin)
    inputs = await inputs_of(request, asked.title, asked.opening, asked.participants)
    if asked.policy is not UNSET:
        inputs["participation"] = said = msgspec.to_builtins(asked.policy)
        if problem := meaningless(said):
            raise BadRequest(problem, field="policy")
    await _create(request, inputs, begun)
    return request.made


async def inputs_of(
    request: Request, title: str, opening: str | None, invited: list[str | dict[str, Any]]
) -> dict[str, Any]:
    """What a thread begins with; whom the host knows is known from the beginning."""
    members = [councils.member(item) for item in invited]
    check_invited(members)
    names = [str(each["agentId"]) for each in members]
    known = await councils.profiles_of(request, names)
    inputs: dict[str, Any] = {
        "title": councils.titled(title),
        "invited": members,
        "participation": OF_THREADS,
        "profiles": known,
        "outside": [name for name in names if name not in known],
    }
    return inputs if opening is None else {**inputs, "question": opening}


async def _create(request: Request, inputs: dict[str, Any], answer: Callable[[Run], Reply]) -> Run:
    host, command = request.services.host, _start(request, inputs)
    flow = await host.flows.newest(command.tenant, THREAD)
    return await host.create(flow, command, request.recording(answer))


def _start(request: Request, inputs: dict[str, Any]) -> StartRun:
    who = routes.speaker(request)
    return StartRun(
        tenant=request.caller.tenant,
        principal=who.principal,
        person=who.person,
        at=request.services.clock.millis(),
        limits=request.services.host.limits,
        inputs=inputs,
    )


def begun(run: Run) -> Reply:
    [talk] = run.conversations.values()
    url = f"/v1/host/moot/threads/{run.run_id}"
    return Reply({**shown(run, talk), "url": url}, 201, {"Location": url})


# -- the list ------------------------------------------------------------------------------------


async def listed(request: Request) -> Reply:
    """Newest first, or as they were used last; those that were put away only when they are asked
    for."""
    tenant, store = request.caller.tenant, request.services.store
    limit, order = request.integer("limit", 50, 1, MOST_LISTED), _order(request)
    away = request.query.get("archived") == "true"
    where = RunFilter(
        workflow_id=THREAD, prefix=request.query.get("prefix") or None, mark=ARCHIVED, marked=away,
        used=order is not None,
    )  # fmt: skip
    cursor = _unbound(request.query.get("cursor"), order)
    found, cursor = await store.list_runs(tenant, where, cursor, limit)
    told = await rows(request, found, away)
    body: dict[str, Any] = {"threads": told, "you": read_marks.reader(request)}
    if cursor is not None:
        body["nextCursor"] = cursor if order is None else bound(cursor, order)
    return Reply(body, 200, {"Cache-Control": "no-store"})


def _order(request: Request) -> str | None:
    """None: as they were begun."""
    order = request.query.get("order", ORDERS[0])
    if order not in ORDERS:
        raise BadRequest(f"order is {' or '.join(ORDERS)}.", field="order")
    return None if order == ORDERS[0] else order


def _unbound(cursor: str | None, order: str | None) -> str | None:
    """A page goes on in its own order only."""
    return cursor if order is None else unbound(cursor, order)


async def put_away(request: Request) -> Reply:
    return await _mark(request, gone=False)


async def take_out(request: Request) -> Reply:
    return await _mark(request, gone=True)


async def _mark(request: Request, gone: bool) -> Reply:
    """A mark of the list: nothing is said in the thread, which stays as it is."""
    run, talk = await councils.place(request)
    if run.workflow_id != THREAD:
        raise BadRequest("It is a part of its run, and in no list of threads.", runId=run.run_id)
    now = request.services.clock.millis()
    record = Record(
        tenant=run.tenant, kind=ARCHIVED, name=thread_id(run, talk), version=str(now), body=b"{}",
        created_at=now, by=request.caller.id, gone=gone,
    )  # fmt: skip
    await request.services.store.put_record(record)
    return Reply({**shown(run, talk), "archived": not gone})


# -- names and links -----------------------------------------------------------------------------


async def rename(request: Request) -> Reply:
    run, talk = await councils.place(request)
    asked = await request.read(Rename)
    command = await controls.control(request, talk, {"rename": asked.title})
    return await councils.act(request, run, talk, command)


async def link(request: Request) -> Reply:
    """A side thread is begun and linked, in one commit; or one that is there is linked."""
    run, talk = await councils.place(request)
    asked = await request.read(LinkTo)
    councils.must_be_open(talk, request.params["thread_id"])
    own, begins = thread_id(run, talk), None
    if asked.thread is None:
        begins = await _beginning(request, asked, own)
        name, title = begins.run_id, councils.titled(str(asked.title))
    else:
        other, its = await councils.place_of(request, asked.thread)
        name, title = thread_id(other, its), title_of(other, its)
    content = {"link": {"thread": name, "title": title}}
    # what is yet to begin is nowhere to be looked up
    command = await controls.control(request, talk, content if begins is None else {})
    command = replace(command, content=command.content or content, begins=begins)
    url = f"/v1/host/moot/threads/{name}"
    body = {"threadId": name, "title": title, "linkedFrom": own, "url": url}
    made = Reply(body, 200 if begins is None else 201, {"Location": url})
    return await councils.act(request, run, talk, command, answer=lambda _: made)


async def _beginning(request: Request, asked: LinkTo, own: str) -> Beginning:
    """A new thread, as it is to be there with the link."""
    if asked.title is None:
        raise BadRequest("Name a thread, or give the title of a new one.", field="title")
    inputs = await inputs_of(request, asked.title, asked.opening, asked.participants)
    command = _start(request, {**inputs, "sideOf": own})
    host = request.services.host
    flow = await host.flows.newest(command.tenant, THREAD)
    host.refuse_when_stopping()
    return Beginning(request.services.clock.new_id("th_"), flow, command)


# -- taken up again ------------------------------------------------------------------------------


async def reopen(request: Request) -> Reply:
    """A closed thread stays closed: a new one goes on from right before its end."""
    run, talk = await councils.place(request)
    asked = await request.read(Reopen)
    if talk.open:
        raise Conflict("The thread is open; there is nothing to take up again.")
    first = await _last_decision(request, run, talk)
    wanted = Wanted(from_seq=first, by=routes.speaker(request), note=asked.note or "reopened")

    def answer(made: Run) -> Reply:
        again = made.conversations[talk.node_id]
        url = f"/v1/host/moot/threads/{thread_id(made, again)}"
        body = {**shown(made, again), "reopenedFrom": thread_id(run, talk), "url": url}
        return Reply(body, 201, {"Location": url})

    host = request.services.host
    await branch(host, run.tenant, run.run_id, wanted, request.recording(answer))
    return request.made


async def _last_decision(request: Request, run: Run, talk: Conversation) -> int:
    """Where the decision begins that closed the conversation, or ended its run."""
    thread = Thread(request.services.store, run, talk)
    closing = await _event(request, run, talk.last_seq)
    if closing.type == "conversation.closed":
        return await thread.decision_after(talk.last_seq - 1)
    return await thread.decision_after(run.next_sequence - 2)


async def _event(request: Request, run: Run, sequence: int) -> Event:
    [row] = await request.services.store.read(run.tenant, run.run_id, sequence - 1, 1)
    return decode(row)


# -- read by people ------------------------------------------------------------------------------


async def events(request: Request) -> Reply:
    """The events of the thread API, with sentences, and how what still holds is taken back."""
    run, talk = await councils.place(request)
    thread = Thread(request.services.store, run, talk)
    limit = request.integer("limit", 1000, 1, MOST_EVENTS)
    if "before" in request.query:
        page = await thread.before(request.integer("before", 0, 0, 2**53), limit)
    else:
        page = await thread.after(request.integer("after", -1, -1, 2**53), limit)
    now = request.services.clock.millis()
    told = [_worded(msgspec.json.decode(row), talk, now) for row in page.events]
    body = {"events": told, "count": len(told), "more": page.more}
    return Reply(encode(body), 200, {"Cache-Control": "no-store"})


def _worded(told: dict[str, Any], talk: Conversation, at: int) -> dict[str, Any]:
    sentence, back = says(told), undo(told, talk, at)
    if sentence is not None:
        told["says"] = sentence
    if back is not None:
        told["undo"] = back
    return told


THREADS = "/v1/host/moot/threads"
TEXT = {"type": "string"}
ENDPOINTS = (
    Endpoint(
        method="GET", path=THREADS, call=listed, scope="runs:read",
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
    ),
    Endpoint(
        method="POST", path=THREADS, call=begin, scope="runs:create", body=Begin, status=201,
        summary="Begin a thread",
    ),
    Endpoint(
        method="GET", path=f"{THREADS}/{{thread_id}}/events", call=events, scope="runs:read",
        joined=True, errors=(404,),
        summary="Read the events of a thread, controls in sentences and how to take them back",
        query={
            "after": ({"type": "integer", "minimum": -1}, "highest sequence already seen"),
            "before": ({"type": "integer", "minimum": 0},
                       "instead of after: the newest that are lower than this"),
            "limit": ({"type": "integer", "minimum": 1, "maximum": MOST_EVENTS}, "events at most"),
        },
    ),
    Endpoint(
        method="POST", path=f"{THREADS}/{{thread_id}}:rename", call=rename,
        scope="approvals:respond", body=Rename, summary="Give a thread another name",
        errors=(404, 409),
    ),
    Endpoint(
        method="POST", path=f"{THREADS}/{{thread_id}}/links", call=link, scope="runs:create",
        body=LinkTo, status=201, summary="Begin a side thread, or link one that is there",
        errors=(404, 409),
    ),
    Endpoint(
        method="POST", path=f"{THREADS}/{{thread_id}}:archive", call=put_away,
        scope="approvals:respond", summary="Put a thread away: lists leave it out", errors=(404,),
    ),
    Endpoint(
        method="POST", path=f"{THREADS}/{{thread_id}}:unarchive", call=take_out,
        scope="approvals:respond", summary="Take a thread out again", errors=(404,),
    ),
    Endpoint(
        method="POST", path=f"{THREADS}/{{thread_id}}:reopen", call=reopen, scope="runs:create",
        body=Reopen, status=201, errors=(404, 409, 422),
        summary="Go on with a closed thread in a new one that has its history",
    ),
)  # fmt: skip
