"""Answers to what waits: by run and node, by the seed's spelling, by signed link; and the inbox."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from moot.api.access import signed_links
from moot.api.access.auth import is_agents, keep_open
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.interrupts import askers, notices
from moot.api.runs.event_stream import seconds_left
from moot.api.services import Services
from moot.core.errors import (
    BadRequest,
    Forbidden,
    InterruptExpired,
    InterruptNotFound,
    MessageIdConflict,
)
from moot.core.events import decode, iso
from moot.core.interrupts.decide import too_late
from moot.core.interrupts.inbox import question
from moot.core.runs.answers import Answer
from moot.core.speaker import Speaker
from moot.core.state.conversation import Interrupt
from moot.core.state.run import Run
from moot.engine.streams.hub import Published, inbox_of
from moot.store.protocol import InboxRow, Key, Receipt

#: seconds; shorter than what proxies usually give a silent connection
LONGEST_WAIT = 30


class Resolve(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    resume_value: Any


async def by_node(request: Request) -> Reply:
    run_id, node_id = request.params["run_id"], request.params["node_id"]
    await request.services.host.runs.head(request.caller.tenant, run_id)  # 404 comes before 400
    asked = await request.read(Resolve)
    given = _given(request, node_id, asked.resume_value)
    return await _answer(request, request.caller.tenant, run_id, given)


async def by_run(request: Request) -> Reply:
    """The seed's spelling: the value itself, or wrapped, for the one question that is open."""
    run_id = request.params["run_id"]
    run = (await request.services.host.view(request.caller.tenant, run_id)).run
    body = await request.read(dict)
    node_id = body.pop("nodeId", None)
    value = body.get("resumeValue", body)
    given = _given(request, _the_one(run) if node_id is None else str(node_id), value)
    return await _answer(request, request.caller.tenant, run_id, given)


def _the_one(run: Run) -> str:
    """The node whose question is meant when none is named."""
    candidates = list(run.interrupts) or list(run.answered)[-1:] or list(run.conversations)[-1:]
    if not candidates:
        raise InterruptNotFound(run.run_id, "")
    if len(candidates) > 1:
        raise BadRequest(
            f"{len(candidates)} questions are open; name one with nodeId.", nodeIds=candidates
        )
    return candidates[0]


def speaker(request: Request) -> Speaker:
    """Who speaks is the key's matter."""
    key = request.caller
    return Speaker(key.id, tuple(key.speaks_as), key.admin)


def _given(request: Request, node_id: str, value: Any) -> Answer:
    at = request.services.clock.millis()
    keep_open(request.caller, value)
    return Answer(node_id=node_id, value=value, who=speaker(request), at=at)


async def _answer(request: Request, tenant: str, run_id: str, given: Answer) -> Reply:
    """What is answered is made from the state the command led to, not from what came after."""
    reply = _replier(given.node_id)
    if (name := _message_id(given.value)) is not None:
        answer = await _once(request, (tenant, run_id, name), given, reply)
    else:
        await request.services.host.handle(tenant, run_id, given, request.recording(reply))
        answer = request.made
    speech = _meta(given.value).get("speechId")
    if isinstance(speech, str):
        request.services.host.speeches.over(run_id, speech, request.caller.id)
    return answer


def _replier(node_id: str) -> Callable[[Run], Reply]:
    def reply(run: Run) -> Reply:
        body: dict[str, Any] = {"runId": run.run_id, "nodeId": node_id, "status": run.status.value}
        talk = run.conversations.get(node_id)
        if talk is not None:
            body["conversation"] = {
                "conversationId": talk.conversation_id,
                "operation": "exchange" if talk.open else "close",
                "turnIndex": talk.turns,
                "turns": talk.turns + 1,
                "sequence": talk.last_seq,
            }
        return Reply(body)

    return reply


def _turn(value: Any) -> dict[str, Any]:
    turn = value.get("turn", value) if isinstance(value, dict) else None
    return turn if isinstance(turn, dict) else {}


def _meta(value: Any) -> dict[str, Any]:
    meta = _turn(value).get("meta")
    return meta if isinstance(meta, dict) else {}


def _message_id(value: Any) -> str | None:
    name = _turn(value).get("messageId")
    return name if isinstance(name, str) else None


async def _once(
    request: Request, place: tuple[str, str, str], given: Answer, reply: Callable[[Run], Reply]
) -> Reply:
    """A message id is said once for ever: the same turn gets the first answer again."""
    tenant, run_id, name = place
    operation = f"TURN {run_id}/{given.node_id}"
    said = msgspec.json.encode([given.who.person, given.value], order="sorted")
    digest = hashlib.sha256(said).hexdigest()
    async with request.services.turns.lock((tenant, operation, name)):
        kept = await request.services.store.receipt(tenant, operation, name)
        if kept is not None:
            if kept.digest != digest:
                raise MessageIdConflict("This messageId belongs to another turn.", messageId=name)
            return Reply(kept.body, kept.status)
        sequence = await request.services.store.message(tenant, run_id, name)
        if sequence is not None:
            return await _repeated(request, (tenant, run_id, name), given, sequence)

        def receipt(run: Run, events: list[Published]) -> Receipt:
            request.made = reply(run)
            return Receipt(
                tenant=tenant, operation=operation, key=name, digest=digest,
                status=request.made.status, headers={}, body=request.made.body,
                created_at=given.at,
            )  # fmt: skip

        await request.services.host.handle(tenant, run_id, given, receipt)
        return request.made


async def _repeated(
    request: Request, place: tuple[str, str, str], given: Answer, sequence: int
) -> Reply:
    """A turn whose first answer is not at hand any more: the log has it."""
    tenant, run_id, name = place
    [row] = await request.services.store.read(tenant, run_id, sequence - 1, 1)
    event = decode(row)
    turn: dict[str, Any] = event.payload.get("turn") or event.payload.get("finalTurn") or {}
    said = _turn(given.value)
    asked = {key: said[key] for key in ("content", "role", "speakerId", "from") if key in said}
    if any(turn.get(key) != value for key, value in asked.items()):
        raise MessageIdConflict("This messageId belongs to another turn.", messageId=name)
    run = (await request.services.host.view(tenant, run_id)).run
    body = {
        "runId": run_id,
        "nodeId": given.node_id,
        "status": run.status.value,
        "conversation": {
            "conversationId": event.payload.get("conversationId"),
            "operation": "close" if event.type == "conversation.closed" else "exchange",
            "turnIndex": turn.get("turnIndex"),
            "turns": turn.get("turnIndex", 0) + 1,
            "sequence": sequence,
        },
    }
    return Reply(body)


async def refuse_repeat(request: Request, run_id: str, value: Any) -> None:
    """For other doors than the one above: a message id is said once."""
    name = _message_id(value)
    if name is None:
        return
    if await request.services.store.message(request.caller.tenant, run_id, name) is not None:
        raise MessageIdConflict("This messageId has been said.", messageId=name)


# -- signed links ------------------------------------------------------------------------------


async def inspect(request: Request) -> Reply:
    ticket = await _ticket(request)
    run = (await request.services.host.view(ticket.tenant, ticket.run_id)).run
    found = run.interrupts.get(ticket.node_id)
    if found is None or found.interrupt_id != ticket.interrupt_id:
        raise too_late(run, ticket.node_id)
    body = {
        **_asked(ticket.run_id, ticket.node_id, found),
        "expiresAt": iso(ticket.expires_at * 1000),
        "intent": ticket.intent,
    }
    return Reply(body, 200, {"Cache-Control": "no-store"})


def _asked(run_id: str, node_id: str, found: Interrupt) -> dict[str, Any]:
    body: dict[str, Any] = {
        "kind": found.kind,
        "key": found.key,
        "data": found.data,
        "runId": run_id,
        "nodeId": node_id,
        "interruptId": found.interrupt_id,
        "requestedAt": iso(found.requested_at * 1000),
    }
    if found.resume_schema is not None:
        body["resumeSchema"] = found.resume_schema
    return body


async def by_token(request: Request) -> Reply:
    ticket = await _ticket(request)
    if ticket.intent != "resolve":
        raise Forbidden("This link only shows the question; it cannot answer it.")
    asked = await request.read(Resolve)
    given = Answer(
        node_id=ticket.node_id,
        value=asked.resume_value,
        who=Speaker(f"link:{ticket.interrupt_id}"),
        at=request.services.clock.millis(),
        interrupt_id=ticket.interrupt_id,
    )
    return await _answer(request, ticket.tenant, ticket.run_id, given)


async def _ticket(request: Request) -> signed_links.Ticket:
    services = request.services
    now = services.clock.millis()
    ticket = signed_links.read(services.token_secret, request.params["token"], now)
    holder = await services.store.key_by_hash(ticket.by)
    late = holder is None or (holder.expires_at is not None and holder.expires_at <= now)
    if holder is None or late or holder.revoked_at is not None:
        raise InterruptExpired("The key that this link was made for is good no longer.")
    return ticket


def open_question(services: Services, run: Run, caller: Key) -> dict[str, Any] | None:
    """The question a run is stopped at, with a fresh link to it, for its snapshot."""
    for node_id, found in run.interrupts.items():
        intent = _intent(caller)
        token = _token(services, run, (node_id, found), (intent, caller.hash))
        return {
            "nodeId": node_id,
            "interruptId": found.interrupt_id,
            "kind": found.kind,
            "data": found.data,
            "requestedAt": iso(found.requested_at * 1000),
            "intent": intent,
            "interruptToken": token,
            "callbackUrl": f"/v1/interrupts/{token}",
        }
    return None


def _intent(caller: Key) -> signed_links.Intent:
    """A link gives no more than its reader has, and whoever holds one is a person: who may not
    answer, or speaks for agents only, gets one to look at."""
    may = "approvals:respond" in caller.scopes and not is_agents(caller)
    return "resolve" if caller.admin or may else "inspect"


def _token(
    services: Services,
    run: Run,
    question: tuple[str, Interrupt],
    reader: tuple[signed_links.Intent, str],
) -> str:
    node_id, found = question
    expires = found.requested_at + signed_links.LIFETIME_MS
    ticket = signed_links.Ticket(
        tenant=run.tenant,
        run_id=run.run_id,
        node_id=node_id,
        interrupt_id=found.interrupt_id,
        expires_at=min(expires, found.due) if found.due is not None else expires,
        intent=reader[0],
        by=reader[1],
    )
    return signed_links.mint(services.token_secret, ticket)


# -- what waits --------------------------------------------------------------------------------


async def of_run(request: Request) -> Reply:
    """Every open question of a run, and who has answered the others."""
    run = (await request.services.host.view(request.caller.tenant, request.params["run_id"])).run
    asked = [_open(run, node_id, found) for node_id, found in run.interrupts.items()]
    answered = [
        {"nodeId": node_id, "by": last.by, "at": iso(last.at * 1000), "action": last.action}
        for node_id, last in run.answered.items()
        if node_id not in run.interrupts
    ]
    body = {"runId": run.run_id, "status": run.status.value, "open": asked, "answered": answered}
    return Reply(body, 200, {"Cache-Control": "no-store"})


def _open(run: Run, node_id: str, found: Interrupt) -> dict[str, Any]:
    item = question(run, node_id, found)
    body = {
        **_asked(run.run_id, node_id, found),
        "question": item.question,
        "actions": item.actions,
        "askedBy": item.asked_by,
    }
    if found.votes:
        body["votes"] = found.votes
    if found.due is not None:
        body["deadline"] = iso(found.due * 1000)
    return body


async def inbox(request: Request) -> Reply:
    """With ``wait``, no sooner than the inbox differs from the revision the caller knows."""
    limit = request.integer("limit", 100, 1, 1000)
    known = request.integer("revision", -1, -1, 2**53)
    wait = request.integer("wait", 0, 0, LONGEST_WAIT)
    tenant, store, hub = request.caller.tenant, request.services.store, request.services.host.hub
    # before reading: no change is missed in between
    reader = hub.subscribe(inbox_of(tenant), holder=request.caller.id)
    try:
        rows, revision = await store.inbox(tenant, limit)
        if wait and revision == known:
            await reader.wait(min(wait, seconds_left(request)))
            rows, revision = await store.inbox(tenant, limit)
    finally:
        hub.unsubscribe(inbox_of(tenant), reader)
    items = [_item(row) | await askers.told(request, row) for row in rows]
    found = {"items": items, "revision": revision}
    return Reply({**found, **await notices.of(request)})


def _item(row: InboxRow) -> dict[str, Any]:
    item: dict[str, Any] = {
        "id": row.item_id,
        "runId": row.run_id,
        "nodeId": row.node_id,
        "kind": row.kind,
        "question": row.question,
        "actions": row.actions,
        "askedBy": row.asked_by,
        "since": iso(row.since * 1000),
    }
    if row.deadline is not None:
        item["deadline"] = iso(row.deadline * 1000)
    return item


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/runs/{run_id}/interrupts/{node_id}", call=by_node,
        scope="approvals:respond", body=Resolve, summary="Answer what a node waits for",
        errors=(404, 409, 410, 422),
    ),
    Endpoint(
        method="POST", path="/v1/runs/{run_id}:resolveInterrupt", call=by_run,
        scope="approvals:respond", summary="Answer the one question of a run",
        errors=(404, 409, 410, 422),
    ),
    Endpoint(
        method="GET", path="/v1/interrupts/{token}", call=inspect, public=True,
        summary="Read a question by its link", errors=(404, 409, 410),
    ),
    Endpoint(
        method="POST", path="/v1/interrupts/{token}", call=by_token, public=True, body=Resolve,
        summary="Answer a question by its link", errors=(404, 409, 410, 422),
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/inbox", call=inbox, scope="runs:read",
        summary="Everything that waits for a person, longest first",
        query={
            "limit": ({"type": "integer", "minimum": 1, "maximum": 1000}, "rows at most"),
            "revision": ({"type": "integer", "minimum": -1}, "the revision already known"),
            "wait": ({"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT},
                     "seconds to wait for another revision"),
        },
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/runs/{run_id}/interrupts", call=of_run,
        scope="runs:read", summary="What a run waits for, and who has answered", errors=(404,),
    ),
)  # fmt: skip
