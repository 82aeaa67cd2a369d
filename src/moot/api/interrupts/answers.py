"""Answer interrupts: by run and node, or by a signed link."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import asdict

from moot.api.access import signed_links
from moot.api.access.auth import check_may_close, is_agent_key, speaker_from_request
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.services import Services
from moot.core.conversations.turns import recorded_turn
from moot.core.errors import (
    BadRequest,
    Forbidden,
    InterruptExpired,
    InterruptNotFound,
    MessageIdConflict,
)
from moot.core.events import decode, iso
from moot.core.interrupts.decide import too_late_error
from moot.core.payloads.conversations import ConversationEnded, Turn
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state.conversation import Conversation
from moot.core.state.interrupt import Interrupt
from moot.core.state.run import Run
from moot.engine.streams.hub import Published
from moot.store.protocol import Key, Receipt
from moot.wire.interrupts import (
    AnswerBody,
    AnswerResult,
    AskedQuestion,
    ConversationPosition,
    LinkedQuestion,
    OpenQuestion,
    RunAnswerBody,
)
from moot.wire.json import JsonObject


async def answer_node(request: Request) -> Reply:
    run_id, node_id = request.params["run_id"], request.params["node_id"]
    await request.services.host.runs.head(request.caller.tenant, run_id)  # 404 comes before 400
    body = await request.read(AnswerBody)
    command = _answer_command(request, node_id, body.resume_value)
    return await _handle_answer(request, request.caller.tenant, run_id, command)


async def answer_run(request: Request) -> Reply:
    """Answer the only open question of a run, with the value itself or wrapped in
    ``resumeValue``."""
    run_id = request.params["run_id"]
    run = (await request.services.host.view(request.caller.tenant, run_id)).run
    body = await request.read(dict)
    node_id = body.pop("nodeId", None)
    value = body.get("resumeValue", body)
    command = _answer_command(request, _only_node(run) if node_id is None else str(node_id), value)
    return await _handle_answer(request, request.caller.tenant, run_id, command)


def _only_node(run: Run) -> str:
    """Return the node whose question is meant. Raise BadRequest when several are open."""
    candidates = list(run.interrupts) or list(run.answered)[-1:] or list(run.conversations)[-1:]
    if not candidates:
        raise InterruptNotFound(run.run_id, "")
    if len(candidates) > 1:
        raise BadRequest(
            f"{len(candidates)} questions are open; name one with nodeId.", nodeIds=candidates
        )
    return candidates[0]


def _answer_command(request: Request, node_id: str, value: Any) -> GateAnswer:
    at = request.services.clock.millis()
    check_may_close(request.caller, value)
    return GateAnswer(node_id=node_id, value=value, who=speaker_from_request(request), at=at)


async def _handle_answer(request: Request, tenant: str, run_id: str, command: GateAnswer) -> Reply:
    """Send the answer. The reply shows the state right after it, not a later one."""
    reply = _answer_reply(command.node_id)
    turn = _turn_in(command.value)
    if (name := _message_id(turn)) is not None:
        answer = await _answer_once(request, (tenant, run_id, name), command, reply)
    else:
        await request.services.host.handle(tenant, run_id, command, request.record_reply(reply))
        answer = request.reply
    meta = turn.get("meta")
    speech = meta.get("speechId") if isinstance(meta, dict) else None
    if isinstance(speech, str):
        request.services.host.speeches.over(run_id, speech, request.caller.id)
    return answer


def _answer_reply(node_id: str) -> Callable[[Run], Reply]:
    def reply(run: Run) -> Reply:
        conversation = run.conversations.get(node_id)
        result = AnswerResult(
            run_id=run.run_id,
            node_id=node_id,
            status=run.status.value,
            conversation=None if conversation is None else _position(conversation),
        )
        return Reply(result)

    return reply


def _position(conversation: Conversation) -> ConversationPosition:
    return ConversationPosition(
        conversation_id=conversation.conversation_id,
        operation="exchange" if conversation.open else "close",
        turn_index=conversation.turns,
        turns=conversation.turns + 1,
        sequence=conversation.last_seq,
    )


def _turn_in(value: Any) -> JsonObject:
    turn = value.get("turn", value) if isinstance(value, dict) else None
    return turn if isinstance(turn, dict) else {}


def _message_id(turn: JsonObject) -> str | None:
    name = turn.get("messageId")
    return name if isinstance(name, str) else None


async def _answer_once(
    request: Request,
    place: tuple[str, str, str],
    command: GateAnswer,
    reply: Callable[[Run], Reply],
) -> Reply:
    """Send an answer with a message id. The same turn again gets the first reply."""
    tenant, run_id, name = place
    operation = f"TURN {run_id}/{command.node_id}"
    encoded = msgspec.json.encode([command.who.person, command.value], order="sorted")
    digest = hashlib.sha256(encoded).hexdigest()
    async with request.services.request_locks.lock((tenant, operation, name)):
        receipt = await request.services.store.receipt(tenant, operation, name)
        if receipt is not None:
            if receipt.digest != digest:
                raise MessageIdConflict("This messageId belongs to another turn.", messageId=name)
            return Reply(receipt.body, receipt.status)
        sequence = await request.services.store.message(tenant, run_id, name)
        if sequence is not None:
            return await _repeat_answer(request, (tenant, run_id, name), command, sequence)

        def make_receipt(run: Run, events: list[Published]) -> Receipt:
            request.reply = reply(run)
            return Receipt(
                tenant=tenant, operation=operation, key=name, digest=digest,
                status=request.reply.status, headers={}, body=request.reply.body,
                created_at=command.at,
            )  # fmt: skip

        await request.services.host.handle(tenant, run_id, command, make_receipt)
        return request.reply


async def _repeat_answer(
    request: Request, place: tuple[str, str, str], command: GateAnswer, sequence: int
) -> Reply:
    """Return the reply to a repeated turn from the log, when its receipt is gone."""
    tenant, run_id, name = place
    [row] = await request.services.store.read(tenant, run_id, sequence - 1, 1)
    event = decode(row)
    turn, sent = recorded_turn(event.payload) or Turn(), _turn_in(command.value)
    recorded = {
        "content": turn.content, "role": turn.role, "speakerId": turn.speaker_id, "from": turn.from_
    }  # fmt: skip
    if any(key in sent and sent[key] != value for key, value in recorded.items()):
        raise MessageIdConflict("This messageId belongs to another turn.", messageId=name)
    run = (await request.services.host.view(tenant, run_id)).run
    position = ConversationPosition(
        conversation_id=getattr(event.payload, "conversation_id", None),
        operation="close" if isinstance(event.payload, ConversationEnded) else "exchange",
        turn_index=turn.turn_index,
        turns=(turn.turn_index or 0) + 1,
        sequence=sequence,
    )
    return Reply(
        AnswerResult(
            run_id=run_id,
            node_id=command.node_id,
            status=run.status.value,
            conversation=position,
        )
    )


async def check_new_message_id(request: Request, run_id: str, value: Any) -> None:
    """Raise MessageIdConflict when a turn of this run already has the message id."""
    name = _message_id(_turn_in(value))
    if name is None:
        return
    if await request.services.store.message(request.caller.tenant, run_id, name) is not None:
        raise MessageIdConflict("This messageId has been said.", messageId=name)


# -- signed links ------------------------------------------------------------------------------


async def read_by_link(request: Request) -> Reply:
    ticket = await _read_ticket(request)
    run = (await request.services.host.view(ticket.tenant, ticket.run_id)).run
    interrupt = run.interrupts.get(ticket.node_id)
    if interrupt is None or interrupt.interrupt_id != ticket.interrupt_id:
        raise too_late_error(run, ticket.node_id)
    question = LinkedQuestion(
        **asdict(asked_question(ticket.run_id, ticket.node_id, interrupt)),
        expires_at=iso(ticket.expires_at * 1000),
        intent=ticket.intent,
    )
    return Reply(question, 200, {"Cache-Control": "no-store"})


def asked_question(run_id: str, node_id: str, interrupt: Interrupt) -> AskedQuestion:
    return AskedQuestion(
        kind=interrupt.kind,
        key=interrupt.key,
        data=interrupt.data,
        run_id=run_id,
        node_id=node_id,
        interrupt_id=interrupt.interrupt_id,
        requested_at=iso(interrupt.requested_at * 1000),
        resume_schema=interrupt.resume_schema,
    )


async def answer_by_link(request: Request) -> Reply:
    ticket = await _read_ticket(request)
    if ticket.intent != "resolve":
        raise Forbidden("This link only shows the question; it cannot answer it.")
    body = await request.read(AnswerBody)
    command = GateAnswer(
        node_id=ticket.node_id,
        value=body.resume_value,
        who=Speaker(f"link:{ticket.interrupt_id}"),
        at=request.services.clock.millis(),
        interrupt_id=ticket.interrupt_id,
    )
    return await _handle_answer(request, ticket.tenant, ticket.run_id, command)


async def _read_ticket(request: Request) -> signed_links.Ticket:
    services = request.services
    now = services.clock.millis()
    ticket = signed_links.read_link(services.token_secret, request.params["token"], now)
    holder = await services.store.key_by_hash(ticket.by)
    late = holder is None or (holder.expires_at is not None and holder.expires_at <= now)
    if holder is None or late or holder.revoked_at is not None:
        raise InterruptExpired("The key that this link was made for is good no longer.")
    return ticket


def open_question_view(services: Services, run: Run, caller: Key) -> OpenQuestion | None:
    """Return the question a run waits for, with a fresh link, for the run's snapshot."""
    for node_id, interrupt in run.interrupts.items():
        intent = _link_intent(caller)
        token = _link_token(services, run, (node_id, interrupt), (intent, caller.hash))
        return OpenQuestion(
            node_id=node_id,
            interrupt_id=interrupt.interrupt_id,
            kind=interrupt.kind,
            data=interrupt.data,
            requested_at=iso(interrupt.requested_at * 1000),
            intent=intent,
            interrupt_token=token,
            callback_url=f"/v1/interrupts/{token}",
        )
    return None


def _link_intent(caller: Key) -> signed_links.Intent:
    """Return what the link may do.

    A link gives its holder no more than its reader has, and every holder counts as a person. So
    agents and keys without the scope get a link to look at.
    """
    may = "approvals:respond" in caller.scopes and not is_agent_key(caller)
    return "resolve" if caller.admin or may else "inspect"


def _link_token(
    services: Services,
    run: Run,
    question: tuple[str, Interrupt],
    reader: tuple[signed_links.Intent, str],
) -> str:
    node_id, interrupt = question
    expires = interrupt.requested_at + signed_links.LIFETIME_MS
    ticket = signed_links.Ticket(
        tenant=run.tenant,
        run_id=run.run_id,
        node_id=node_id,
        interrupt_id=interrupt.interrupt_id,
        expires_at=min(expires, interrupt.due) if interrupt.due is not None else expires,
        intent=reader[0],
        by=reader[1],
    )
    return signed_links.sign_link(services.token_secret, ticket)


INTERRUPT_ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/runs/{run_id}/interrupts/{node_id}", call=answer_node,
        scope="approvals:respond", body=AnswerBody, summary="Answer what a node waits for",
        errors=(404, 409, 410, 422),
        tag="Inbox", operation_id="answerNode", answer=AnswerResult,
        description="Answers the question that a node waits for, or speaks in its conversation. "
        "Refuses a second answer with 409, a late one with 410, and a value that the "
        "question does not allow with 400 or 422.",
    ),
    Endpoint(
        method="POST", path="/v1/runs/{run_id}:resolveInterrupt", call=answer_run,
        scope="approvals:respond", summary="Answer the one question of a run",
        errors=(404, 409, 410, 422),
        tag="Inbox", operation_id="answerRun", answer=AnswerResult, body=RunAnswerBody,
        description="Answers a question of the run: the one of `nodeId`, or its only one. The "
        "body may also be the answer itself. Refuses a run with several open "
        "questions with 400 unless `nodeId` names one.",
    ),
    Endpoint(
        method="GET", path="/v1/interrupts/{token}", call=read_by_link, public=True,
        summary="Read a question by its link", errors=(404, 409, 410),
        tag="Inbox", operation_id="readQuestionByLink", answer=LinkedQuestion,
        description="Returns the question of a signed link. The link is the only credential. "
        "Refuses an unknown link with 404, an answered question with 409, and an "
        "expired link with 410.",
    ),
    Endpoint(
        method="POST", path="/v1/interrupts/{token}", call=answer_by_link, public=True,
        body=AnswerBody,
        summary="Answer a question by its link", errors=(404, 409, 410, 422),
        tag="Inbox", operation_id="answerQuestionByLink", answer=AnswerResult,
        description="Answers the question of a signed link. The link is the only credential. "
        "Refuses a link that only shows the question with 403.",
    ),
)  # fmt: skip
