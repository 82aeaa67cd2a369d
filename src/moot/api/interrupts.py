"""Answers to what waits: by run and node, by the seed's spelling, by signed link; and the inbox."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from moot.api import tokens
from moot.api.services import Services
from moot.api.wire import Endpoint, Reply, Request
from moot.core.conversation import Speaker
from moot.core.errors import BadRequest, Forbidden, InterruptNotFound, MessageIdConflict
from moot.core.events import iso
from moot.core.interrupts import Answer
from moot.core.run import Run
from moot.core.waiting import Interrupt
from moot.store.protocol import InboxRow, Receipt


class Resolve(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    resume_value: Any


async def by_node(request: Request) -> Reply:
    asked = await request.read(Resolve)
    return await _answer(request, request.params["node_id"], asked.resume_value)


async def by_run(request: Request) -> Reply:
    """The seed's spelling: the value itself, or wrapped, for the one question that is open."""
    body = await request.read(dict)
    node_id = body.pop("nodeId", None)
    value = body.get("resumeValue", body)
    host = request.services.host
    run = (await host.view(request.caller.tenant, request.params["run_id"])).run
    if node_id is None:
        candidates = list(run.interrupts) or list(run.answered)
        if len(candidates) != 1:
            raise BadRequest(
                f"{len(candidates)} questions are open; name one with nodeId.",
                nodeIds=candidates,
            )
        node_id = candidates[0]
    return await _answer(request, str(node_id), value)


def speaker(request: Request) -> Speaker:
    """Who speaks is the key's matter."""
    key = request.caller
    return Speaker(key.id, tuple(key.speaks_as), key.admin)


async def _answer(request: Request, node_id: str, value: Any) -> Reply:
    run_id = request.params["run_id"]
    given = Answer(
        node_id=node_id, value=value, who=speaker(request), at=request.services.clock.millis()
    )
    reply = _replier(node_id)
    name = _message_id(value)
    if name is None:
        await request.services.host.handle(
            request.caller.tenant, run_id, given, request.recording(reply)
        )
        return request.made
    return await _once(request, (run_id, node_id, name), given, reply)


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


def _message_id(value: Any) -> str | None:
    turn = value.get("turn", value) if isinstance(value, dict) else None
    name = turn.get("messageId") if isinstance(turn, dict) else None
    return name if isinstance(name, str) else None


async def _once(
    request: Request,
    place: tuple[str, str, str],
    given: Answer,
    reply: Callable[[Run], Reply],
) -> Reply:
    """A message id is said once for ever: the same turn gets the first answer again."""
    run_id, node_id, name = place
    tenant, host = request.caller.tenant, request.services.host
    operation = f"TURN {run_id}/{node_id}"
    said = msgspec.json.encode([given.who.person, given.value], order="sorted")
    digest = hashlib.sha256(said).hexdigest()
    async with request.services.turns.lock((tenant, operation, name)):
        kept = await request.services.store.receipt(tenant, operation, name)
        if kept is not None:
            if kept.digest != digest:
                raise MessageIdConflict("This messageId belongs to another turn.", messageId=name)
            return Reply(kept.body, kept.status)

        def receipt(run: Run) -> Receipt:
            request.made = answer = reply(run)
            return Receipt(
                tenant=tenant, operation=operation, key=name, digest=digest, status=answer.status,
                headers={}, body=answer.body, created_at=given.at,
            )  # fmt: skip

        await host.handle(tenant, run_id, given, receipt)
        return request.made


# -- signed links ------------------------------------------------------------------------------


async def inspect(request: Request) -> Reply:
    ticket = await _ticket(request)
    run = (await request.services.host.view(ticket.tenant, ticket.run_id)).run
    found = run.interrupts.get(ticket.node_id)
    if found is None or found.interrupt_id != ticket.interrupt_id:
        await _explain(request, ticket)
        raise InterruptNotFound(ticket.run_id, ticket.node_id)
    body: dict[str, Any] = {
        "kind": found.kind,
        "key": found.key,
        "data": found.data,
        "runId": ticket.run_id,
        "nodeId": ticket.node_id,
        "interruptId": found.interrupt_id,
        "requestedAt": iso(found.requested_at * 1000),
        "expiresAt": iso(ticket.expires_at * 1000),
        "intent": ticket.intent,
    }
    if found.resume_schema is not None:
        body["resumeSchema"] = found.resume_schema
    return Reply(body, 200, {"Cache-Control": "no-store"})


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
    note = request.recording(_replier(ticket.node_id))
    await request.services.host.handle(ticket.tenant, ticket.run_id, given, note)
    return request.made


async def _explain(request: Request, ticket: tokens.Ticket) -> None:
    """Says why a question is no longer there, as an answer to it would."""
    given = Answer(
        node_id=ticket.node_id, value=None, who=Speaker(""), at=0, interrupt_id=ticket.interrupt_id
    )
    await request.services.host.handle(ticket.tenant, ticket.run_id, given)


async def _ticket(request: Request) -> tokens.Ticket:
    services = request.services
    return tokens.read(services.token_secret, request.params["token"], services.clock.millis())


def open_question(services: Services, run: Run) -> dict[str, Any] | None:
    """The question a run is stopped at, with a fresh link to it, for its snapshot."""
    for node_id, found in run.interrupts.items():
        token = _token(services, run, node_id, found)
        return {
            "nodeId": node_id,
            "interruptId": found.interrupt_id,
            "kind": found.kind,
            "data": found.data,
            "requestedAt": iso(found.requested_at * 1000),
            "interruptToken": token,
            "callbackUrl": f"/v1/interrupts/{token}",
        }
    return None


def _token(services: Services, run: Run, node_id: str, found: Interrupt) -> str:
    expires = services.clock.millis() + tokens.LIFETIME_MS
    ticket = tokens.Ticket(
        tenant=run.tenant,
        run_id=run.run_id,
        node_id=node_id,
        interrupt_id=found.interrupt_id,
        expires_at=min(expires, found.due) if found.due is not None else expires,
    )
    return tokens.mint(services.token_secret, ticket)


# -- the inbox ---------------------------------------------------------------------------------


async def inbox(request: Request) -> Reply:
    limit = request.integer("limit", 100, 1, 1000)
    rows, revision = await request.services.store.inbox(request.caller.tenant, limit)
    return Reply({"items": [_item(row) for row in rows], "revision": revision})


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
        summary="Everything that waits for a person",
        query={"limit": ({"type": "integer", "minimum": 1, "maximum": 1000}, "rows at most")},
    ),
)  # fmt: skip
