"""Catch-ups: a part of a thread summed up by a named agent, for who asks and nobody else.

Each is a run in the reader's own room (``core.rooms``): the thread's log, its agents and its other
readers learn nothing of it, and its model call is recorded and paid for like any other.
"""

import asyncio
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.agents.invocation.desk import Heard
from moot.agents.prompts.fencing import words
from moot.api.access.auth import is_agents
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.runs.event_stream import seconds_left
from moot.api.search import read_marks
from moot.api.threads.councils import place
from moot.core.errors import BadRequest, Forbidden, NotFound, RunNotFound
from moot.core.events import iso
from moot.core.runs.start import StartRun
from moot.core.state.conversation import Conversation, thread_id, title_of
from moot.core.state.run import Run
from moot.core.state.status import LIVE
from moot.core.tenants import room
from moot.engine.nodes.catch_up import TOLD, Told
from moot.engine.threads.transcript import Talk, between
from moot.engine.workflows.built_in import CATCH_UP
from moot.store.protocol import RunFilter

#: turns that one catch-up is told, characters of all of them and of each
MOST_TURNS, MOST_TEXT, LONGEST_TURN = 200, 100_000, 4000
MOST_LISTED = 200
LONGEST_WAIT = 60
USUAL_WAIT = 30
NODE = "sum-up"

Index = Annotated[int, Meta(ge=0, le=2**53)]


class CatchUp(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"first": "from"}
):
    """Turns by their index: from the first one that is unread to the newest, unless told."""

    first: Index | None = None
    to: Index | None = None
    #: an agent of this host; else the thread's moderator, else a member that is one
    author: Annotated[str, Meta(min_length=1, max_length=256)] | None = None


async def ask(request: Request) -> Reply:
    run, talk = await place(request)
    if is_agents(request.caller):
        raise Forbidden("A catch-up is for people; an agent is told what it needs.")
    asked = await request.read(CatchUp)
    told = await _told(request, run, talk, asked)
    wait = request.integer("wait", USUAL_WAIT, 0, LONGEST_WAIT)
    async with request.services.turns.lock((_room(request), "CATCH-UP", told.thread_id)):
        run_id = await _under_way(request, told) or await _begun(request, told)
    return _made(await _ended(request, run_id, wait))


async def _under_way(request: Request, told: Told) -> str | None:
    """The same is summed up once at a time, however often it is asked for."""
    services, owner = request.services, _room(request)
    where = RunFilter(workflow_id=CATCH_UP, statuses=tuple(LIVE))
    rows, _ = await services.store.list_runs(owner, where, None, MOST_LISTED)
    for row in rows:
        if row.scope_id == told.thread_id:
            known = (await services.host.view(owner, row.run_id)).run.inputs[TOLD]
            if (known["first"], known["last"], known["author"]) == (
                told.first, told.last, told.author
            ):  # fmt: skip
                return row.run_id
    return None


async def _begun(request: Request, told: Told) -> str:
    services, owner = request.services, _room(request)
    flow = await services.host.flows.own(owner, CATCH_UP)
    command = StartRun(
        tenant=owner,
        principal=request.caller.id,
        person=told.reader,
        at=services.clock.millis(),
        limits=services.host.limits,
        inputs={TOLD: msgspec.to_builtins(told)},
        scope_id=told.thread_id,
    )
    return (await services.host.create(flow, command, request.recording(_made))).run_id


async def _told(request: Request, run: Run, talk: Conversation, asked: CatchUp) -> Told:
    name = thread_id(run, talk)
    author = await _author(request, talk, asked.author)
    first, last = await _range(request, name, talk, asked)
    there = Talk(request.services.store, run, talk)
    turns = _fitting(await between(there, first, last, MOST_TURNS))
    hidden = last - first + 1 - len(turns)
    if first > 0:  # the question is never hidden
        turns = [*_fitting(await between(there, 0, 0, 1)), *turns]
    return Told(
        thread_id=name,
        run_id=run.run_id,
        title=title_of(run, talk),
        author=author,
        reader=read_marks.reader(request),
        first=first,
        last=last,
        hidden=hidden,
        turns=turns,
        members=_members(talk),
    )


async def _author(request: Request, talk: Conversation, named: str | None) -> str:
    agents, tenant = request.services.agents, request.caller.tenant
    if named is not None:
        return (await agents.must_be(tenant, named)).agent_id
    policy = talk.floor.policy if talk.floor is not None else None
    first = [policy.moderator, policy.summarise] if policy is not None else []
    for name in [*first, *(talk.roster or ()), *_members(talk)]:
        found = await agents.named(tenant, name) if name is not None else None
        if found is not None:
            return found.agent_id
    raise BadRequest(
        "Nobody who takes part here is an agent of this host; name one as the author.",
        field="author",
    )


def _members(talk: Conversation) -> dict[str, dict[str, Any]]:
    if talk.floor is not None:
        return {name: dict(member.profile) for name, member in talk.floor.members.items()}
    invited = {name: dict(member.profile) for name, member in talk.state.members.items()}
    return {**{name: {} for name in talk.roster or ()}, **invited}


async def _range(
    request: Request, name: str, talk: Conversation, asked: CatchUp
) -> tuple[int, int]:
    last = talk.turns if asked.to is None else min(asked.to, talk.turns)
    first = asked.first
    if first is None:
        read = (await read_marks.marks(request, [name])).get(name)
        first = read.turn + 1 if read is not None else 0
    if first > last:
        raise BadRequest(
            f"There is nothing to sum up from turn {first} to {last}; say from which on.",
            field="from",
            newest=talk.turns,
        )
    return first, last


def _fitting(turns: list[Heard]) -> list[Heard]:
    """As many as are told at once, the newest of them; a very long one is cut."""
    kept: list[Heard] = []
    left = MOST_TEXT
    for turn in reversed(turns):
        text = words(turn.content)
        if len(text) > LONGEST_TURN:
            text = f"{text[:LONGEST_TURN]} […]"
        left -= len(text)
        if left < 0:
            break
        kept.append(replace(turn, content=text))
    return kept[::-1]


def _room(request: Request) -> str:
    return room(request.caller.tenant, read_marks.reader(request))


async def _ended(request: Request, run_id: str, wait: int) -> Run:
    """The catch-up as it is when it has ended, or the time is over."""
    host, owner, now = request.services.host, _room(request), asyncio.get_running_loop().time
    until = now() + min(wait, seconds_left(request))
    reader = host.hub.subscribe(run_id, holder=request.caller.id)
    try:
        while True:
            reader.waiting.clear()
            reader.lagging = False
            run = (await host.view(owner, run_id)).run
            if run.terminal or reader.closed or now() >= until:
                return run
            await reader.wait(until - now())
    finally:
        host.hub.unsubscribe(run_id, reader)


def _made(run: Run) -> Reply:
    body = shown(run)
    url = f"/v1/host/moot/threads/{body['threadId']}/catch-ups/{run.run_id}"
    return Reply({**body, "url": url}, 201, {"Location": url, "Cache-Control": "no-store"})


def shown(run: Run) -> dict[str, Any]:
    """A turn of nobody's log: private, and with the name of who wrote it."""
    told = run.inputs[TOLD]
    body: dict[str, Any] = {
        "catchUpId": run.run_id,
        "threadId": told["threadId"],
        "from": told["first"],
        "to": told["last"],
        "hidden": told["hidden"],
        "author": told["author"],
        "reader": told["reader"],
        "private": True,
        "status": run.status.value,
        "askedAt": iso(run.started_at * 1000),
    }
    done = run.nodes[NODE].outputs if NODE in run.nodes else None
    if done is not None:
        body["turn"] = {
            "role": "system",
            "from": told["author"],
            "to": told["reader"],
            "content": done["text"],
            "agent": done["agent"],
            "meta": done["meta"],
        }
        body["usage"] = done["usage"]
    if run.error is not None:
        body["error"] = run.error
    return body


async def read(request: Request) -> Reply:
    _, talk = found = await place(request)
    name, wanted = thread_id(found[0], talk), request.params["catch_up_id"]
    wait = request.integer("wait", 0, 0, LONGEST_WAIT)
    try:
        run = await _ended(request, wanted, wait)
    except RunNotFound:
        run = None
    if run is None or run.workflow_id != CATCH_UP or run.scope_id != name:
        raise NotFound("You have no such catch-up.", catchUpId=wanted)
    return Reply(shown(run), 200, {"Cache-Control": "no-store"})


async def listed(request: Request) -> Reply:
    run, talk = await place(request)
    name, owner, services = thread_id(run, talk), _room(request), request.services
    where = RunFilter(workflow_id=CATCH_UP, scope_id=name)
    before = request.query.get("cursor")
    limit = request.integer("limit", MOST_LISTED, 1, MOST_LISTED)
    rows, cursor = await services.store.list_runs(owner, where, before, limit)
    found = [shown((await services.host.view(owner, row.run_id)).run) for row in rows]
    body: dict[str, Any] = {"catchUps": found}
    if cursor is not None:
        body["nextCursor"] = cursor
    return Reply(body, 200, {"Cache-Control": "no-store"})


WAIT = {
    "wait": (
        {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT},
        "seconds to wait for its end",
    )
}
ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}:catch-up", call=ask,
        scope="runs:create", body=CatchUp, status=201, query=WAIT, errors=(404,), personal=True,
        summary="Have a part of a thread summed up, for yourself alone",
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}/catch-ups", call=listed,
        scope="runs:read", summary="Your own catch-ups of a thread, newest first", errors=(404,),
        query={
            "limit": ({"type": "integer", "minimum": 1, "maximum": MOST_LISTED}, "rows at most"),
            "cursor": ({"type": "string"}, "nextCursor of the page before"),
        },
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}/catch-ups/{catch_up_id}", call=read,
        scope="runs:read", query=WAIT, summary="One of your own catch-ups", errors=(404,),
    ),
)  # fmt: skip
