"""Catch-ups: an agent sums up a part of a thread for one reader.

Each catch-up is a run in the reader's private room. Nothing of it reaches the thread. The host
records and bills its model call like any other.
"""

import asyncio

import msgspec
from msgspec.structs import replace

from moot.agents.invocation.context import TranscriptTurn
from moot.agents.prompts.fencing import content_text
from moot.api.access.auth import is_agent_key
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.runs.event_stream import seconds_until_expiry
from moot.api.search import read_marks
from moot.api.threads.lookup import find_thread
from moot.core.errors import BadRequest, Forbidden, NotFound, RunNotFound
from moot.core.events import iso
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.run import Run
from moot.core.state.status import LIVE
from moot.core.state.titles import current_title
from moot.core.tenants import private_tenant
from moot.engine.nodes.host_nodes import CATCH_UP_INPUT, CatchUpInput
from moot.engine.start import RunOrder, start_run
from moot.engine.threads.transcript import StoredConversation, read_turns
from moot.engine.workflows.built_in import CATCH_UP
from moot.store.protocol import RunFilter
from moot.wire.json import JsonObject
from moot.wire.search import CatchUpList, CatchUpTurn, CatchUpView, RequestCatchUp

#: Limits of one catch-up: turns, characters of all turns, characters of each.
MOST_TURNS, MOST_TEXT, LONGEST_TURN = 200, 100_000, 4000
MOST_LISTED = 200
LONGEST_WAIT = 60
USUAL_WAIT = 30
NODE = "sum-up"


async def request_catch_up(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    if is_agent_key(request.caller):
        raise Forbidden("A catch-up is for people; an agent is told what it needs.")
    body = await request.read(RequestCatchUp)
    material = await _catch_up_material(request, run, conversation, body)
    wait = request.integer("wait", USUAL_WAIT, 0, LONGEST_WAIT)
    async with request.services.request_locks.lock(
        (_reader_room(request), "CATCH-UP", material.thread_id)
    ):
        run_id = await _find_running(request, material) or await _start_catch_up(request, material)
    return _created_reply(await _wait_for_end(request, run_id, wait))


async def _find_running(request: Request, material: CatchUpInput) -> str | None:
    """Return the running catch-up of the same turns, if there is one."""
    services, owner = request.services, _reader_room(request)
    where = RunFilter(workflow_id=CATCH_UP, statuses=tuple(LIVE))
    rows, _ = await services.store.list_runs(owner, where, None, MOST_LISTED)
    for row in rows:
        if row.scope_id == material.thread_id:
            inputs = (await services.host.view(owner, row.run_id)).run.inputs[CATCH_UP_INPUT]
            if (inputs["first"], inputs["last"], inputs["author"]) == (
                material.first, material.last, material.author
            ):  # fmt: skip
                return row.run_id
    return None


async def _start_catch_up(request: Request, material: CatchUpInput) -> str:
    services, owner = request.services, _reader_room(request)
    order = RunOrder(
        tenant=owner,
        principal=request.caller.id,
        workflow_id=CATCH_UP,
        flow=await services.host.flows.own(owner, CATCH_UP),
        person=material.reader,
        inputs={CATCH_UP_INPUT: msgspec.to_builtins(material)},
        scope_id=material.thread_id,
    )
    receipt = request.record_reply(_created_reply)
    return (await start_run(services.host, order, receipt=receipt)).run_id


async def _catch_up_material(
    request: Request, run: Run, conversation: Conversation, body: RequestCatchUp
) -> CatchUpInput:
    name = thread_id(run, conversation)
    author = await _choose_author(request, conversation, body.author)
    first, last = await _turn_range(request, name, conversation, body)
    transcript = StoredConversation(request.services.store, run, conversation)
    turns = _fit_turns(await read_turns(transcript, first, last, MOST_TURNS))
    hidden = last - first + 1 - len(turns)
    if first > 0:  # always include the question
        turns = [*_fit_turns(await read_turns(transcript, 0, 0, 1)), *turns]
    return CatchUpInput(
        thread_id=name,
        run_id=run.run_id,
        title=current_title(run, conversation),
        author=author,
        reader=read_marks.reader_name(request),
        first=first,
        last=last,
        hidden=hidden,
        turns=turns,
        members=_member_profiles(conversation),
    )


async def _choose_author(request: Request, conversation: Conversation, named: str | None) -> str:
    agents, tenant = request.services.agents, request.caller.tenant
    if named is not None:
        return (await agents.must_find_by_id(tenant, named)).agent_id
    policy = conversation.floor.policy if conversation.floor is not None else None
    first = [policy.moderator, policy.summarise] if policy is not None else []
    for name in [*first, *(conversation.roster or ()), *_member_profiles(conversation)]:
        agent = await agents.named(tenant, name) if name is not None else None
        if agent is not None:
            return agent.agent_id
    raise BadRequest(
        "Nobody who takes part here is an agent of this host; name one as the author.",
        field="author",
    )


def _member_profiles(conversation: Conversation) -> dict[str, JsonObject]:
    if conversation.floor is not None:
        return {name: dict(member.profile) for name, member in conversation.floor.members.items()}
    invited = {name: dict(member.profile) for name, member in conversation.state.members.items()}
    return {**{name: {} for name in conversation.roster or ()}, **invited}


async def _turn_range(
    request: Request, name: str, conversation: Conversation, body: RequestCatchUp
) -> tuple[int, int]:
    last = conversation.turns if body.to is None else min(body.to, conversation.turns)
    first = body.first
    if first is None:
        read = (await read_marks.find_marks(request, [name])).get(name)
        first = read.turn + 1 if read is not None else 0
    if first > last:
        raise BadRequest(
            f"There is nothing to sum up from turn {first} to {last}; say from which on.",
            field="from",
            newest=conversation.turns,
        )
    return first, last


def _fit_turns(turns: list[TranscriptTurn]) -> list[TranscriptTurn]:
    """Return the newest turns that fit into one prompt. A very long turn is cut."""
    fitting: list[TranscriptTurn] = []
    left = MOST_TEXT
    for turn in reversed(turns):
        text = content_text(turn.content)
        if len(text) > LONGEST_TURN:
            text = f"{text[:LONGEST_TURN]} […]"
        left -= len(text)
        if left < 0:
            break
        fitting.append(replace(turn, content=text))
    return fitting[::-1]


def _reader_room(request: Request) -> str:
    return private_tenant(request.caller.tenant, read_marks.reader_name(request))


async def _wait_for_end(request: Request, run_id: str, wait: int) -> Run:
    """Return the catch-up when it has ended or the wait is over."""
    host, owner, now = request.services.host, _reader_room(request), asyncio.get_running_loop().time
    until = now() + min(wait, seconds_until_expiry(request))
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


def _created_reply(run: Run) -> Reply:
    view = catch_up_view(run)
    url = f"/v1/host/moot/threads/{view.thread_id}/catch-ups/{run.run_id}"
    return Reply(replace(view, url=url), 201, {"Location": url, "Cache-Control": "no-store"})


def catch_up_view(run: Run) -> CatchUpView:
    """Return a catch-up with its summary, which is private to its reader."""
    inputs = run.inputs[CATCH_UP_INPUT]
    done = run.nodes[NODE].outputs if NODE in run.nodes else None
    return CatchUpView(
        catch_up_id=run.run_id,
        thread_id=inputs["threadId"],
        first=inputs["first"],
        to=inputs["last"],
        hidden=inputs["hidden"],
        author=inputs["author"],
        reader=inputs["reader"],
        private=True,
        status=run.status.value,
        asked_at=iso(run.started_at * 1000),
        turn=None if done is None else _summary_turn(inputs, done),
        usage=None if done is None else done["usage"],
        error=None if run.error is None else msgspec.to_builtins(run.error),
    )


def _summary_turn(inputs: JsonObject, done: JsonObject) -> CatchUpTurn:
    return CatchUpTurn(
        role="system",
        sender=inputs["author"],
        to=inputs["reader"],
        content=done["text"],
        agent=done["agent"],
        meta=done["meta"],
    )


async def read_catch_up(request: Request) -> Reply:
    _, conversation = thread = await find_thread(request)
    name, wanted = thread_id(thread[0], conversation), request.params["catch_up_id"]
    wait = request.integer("wait", 0, 0, LONGEST_WAIT)
    try:
        run = await _wait_for_end(request, wanted, wait)
    except RunNotFound:
        run = None
    if run is None or run.workflow_id != CATCH_UP or run.scope_id != name:
        raise NotFound("You have no such catch-up.", catchUpId=wanted)
    return Reply(catch_up_view(run), 200, {"Cache-Control": "no-store"})


async def list_catch_ups(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    name, owner, services = thread_id(run, conversation), _reader_room(request), request.services
    where = RunFilter(workflow_id=CATCH_UP, scope_id=name)
    before = request.query.get("cursor")
    limit = request.integer("limit", MOST_LISTED, 1, MOST_LISTED)
    rows, cursor = await services.store.list_runs(owner, where, before, limit)
    views = [catch_up_view((await services.host.view(owner, row.run_id)).run) for row in rows]
    answer = CatchUpList(catch_ups=views, next_cursor=cursor)
    return Reply(answer, 200, {"Cache-Control": "no-store"})


WAIT = {
    "wait": (
        {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT},
        "seconds to wait for its end",
    )
}
CATCH_UP_ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}:catch-up", call=request_catch_up,
        scope="runs:create", body=RequestCatchUp, status=201, query=WAIT, errors=(404,),
        personal=True,
        summary="Have a part of a thread summed up, for yourself alone",
        tag="Threads", operation_id="requestCatchUp", answer=CatchUpView,
        description="Lets an agent of this host sum up turns of a thread for you alone. Nothing "
        "of it reaches the thread. Waits for the summary up to `wait` seconds. Refuses agents' "
        "keys with 403.",
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}/catch-ups", call=list_catch_ups,
        scope="runs:read", summary="Your own catch-ups of a thread, newest first", errors=(404,),
        query={
            "limit": ({"type": "integer", "minimum": 1, "maximum": MOST_LISTED}, "rows at most"),
            "cursor": ({"type": "string"}, "nextCursor of the page before"),
        },
        tag="Threads", operation_id="listCatchUps", answer=CatchUpList,
        description="Lists your own catch-ups of a thread, newest first.",
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}/catch-ups/{catch_up_id}",
        call=read_catch_up,
        scope="runs:read", query=WAIT, summary="One of your own catch-ups", errors=(404,),
        tag="Threads", operation_id="readCatchUp", answer=CatchUpView,
        description="Returns one of your own catch-ups, after a wait for its end if you ask for "
        "one.",
    ),
)  # fmt: skip
