"""Convene councils, and read and close threads."""

import msgspec
from msgspec.structs import replace

from moot.api.access.auth import speaker_from_request
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.interrupts import answers
from moot.api.threads.controls import send_command
from moot.api.threads.inputs import (
    agent_profiles,
    check_members_known,
    check_title,
    participant_from_item,
    thread_order,
)
from moot.api.threads.lookup import find_thread
from moot.api.threads.view import add_forks, thread_view
from moot.core.conversations.participants import check_invited, check_roster
from moot.core.errors import BadRequest
from moot.core.events import iso
from moot.core.runs.answers import GateAnswer
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.council_policy import Policy, describe_unused_settings
from moot.core.state.run import Run
from moot.core.text.names import full_name
from moot.core.threads.decide import Control
from moot.engine.replay.import_log import IMPORT_RECORD
from moot.engine.start import start_run
from moot.engine.workflows.built_in import TALK
from moot.wire.councils import ConveneCouncil, ConvenedCouncil, CouncilBudget
from moot.wire.threads import CloseThread, ImportMark, ThreadView


async def convene_council(request: Request) -> Reply:
    body = await request.read(ConveneCouncil)
    members = _council_participants(body)
    if len(members) == 1 and _has_policy(body):  # report a wrong name before a roster of one
        only = members[0].get("agentId")
        await check_members_known(request, [only] if isinstance(only, str) else [])
    inputs: dict[str, object] = {"question": body.question}
    if body.title is not None:
        inputs["title"] = check_title(body.title)
    if body.open:
        inputs["invited"] = check_invited(members)
    else:
        check_roster(members)
        inputs["participants"] = members
    inputs |= await _policy_inputs(request, body, members, await _policy_in_body(request))
    order = thread_order(request, inputs)
    await start_run(request.host, order, receipt=request.record_reply(_convened_reply))
    return request.reply


def _council_participants(body: ConveneCouncil) -> list[dict[str, object]]:
    """Return the participants, with the moderator once."""
    members = [participant_from_item(each) for each in body.participants]
    moderator = body.moderator or (body.policy.moderator if body.policy else None)
    if moderator is None or any(each.get("agentId") == full_name(moderator) for each in members):
        return members
    return [*members, participant_from_item(moderator)]


async def _policy_in_body(request: Request) -> dict[str, object]:
    """Return the policy fields that the body really has, without defaults."""
    body = msgspec.json.decode(await request.body() or b"{}")
    policy: dict[str, object] = body.get("policy") or {}
    moderator = body.get("moderator")
    return policy if moderator is None else {**policy, "moderator": moderator}


def _has_policy(body: ConveneCouncil) -> bool:
    return any(field is not None for field in (body.policy, body.moderator, body.budget))


async def _policy_inputs(
    request: Request,
    body: ConveneCouncil,
    members: list[dict[str, object]],
    sent_policy: dict[str, object],
) -> dict[str, object]:
    """Return the policy and the members' profiles, or nothing when the host does not lead the
    council."""
    if not _has_policy(body):
        return {}
    if problem := describe_unused_settings(sent_policy):
        raise BadRequest(problem, field="policy")
    policy, budget = body.policy or Policy(), body.budget or CouncilBudget()
    names = [str(member["agentId"]) for member in members]
    await check_members_known(request, names)
    limits = policy.limits
    limits = replace(
        limits,
        consecutive=budget.turns or _turn_limit(policy, sent_policy, len(names)),
        tokens=budget.tokens or limits.tokens,
        money=budget.money or limits.money,
        minutes=budget.minutes or limits.minutes,
    )
    moderator = _check_participant(names, body.moderator or policy.moderator, "moderator")
    summarise = _check_participant(names, policy.summarise, "summarise")
    complete = replace(policy, limits=limits, moderator=moderator, summarise=summarise)
    profiles = await agent_profiles(request, names)
    return {"participation": msgspec.to_builtins(complete), "profiles": profiles}


def _turn_limit(policy: Policy, sent_policy: dict[str, object], members: int) -> int:
    """Return enough turns for all rounds, unless the body sets a limit."""
    limit = policy.limits.consecutive
    limits = sent_policy.get("limits")
    if isinstance(limits, dict) and "consecutive" in limits:
        return limit
    return max(limit, min(policy.rounds * members + members, 1000))


def _check_participant(names: list[str], name: str | None, field: str) -> str | None:
    if name is None:
        return None
    if full_name(name) not in names:
        raise BadRequest(f"'{field}' must be one of the participants.", field=field, roster=names)
    return full_name(name)


def _convened_reply(run: Run) -> Reply:
    conversation = run.conversations[TALK]
    name = thread_id(run, conversation)
    url = f"/v1/host/moot/threads/{name}"
    council = ConvenedCouncil(run_id=run.run_id, thread_id=name, url=url)
    return Reply(council, 201, {"Location": url})


async def read_thread(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    view = thread_view(run, conversation, request.now())
    view = replace(view, you=speaker_from_request(request).person)
    mark = await request.store.record(run.tenant, IMPORT_RECORD, run.run_id)
    if mark is not None:  # the turns were written on another host
        view = replace(view, imported=ImportMark(at=iso(mark.created_at * 1000), by=mark.by))
    return Reply(await add_forks(request, run, view))


async def close_thread(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    body = await request.read(CloseThread)
    if body.vote:
        return await send_command(
            request, run, conversation, _vote_command(request, conversation, body)
        )
    value: dict[str, object] = {"operation": "close", "outcome": body.outcome}
    if body.decision is not None:
        value["decision"] = body.decision
    if body.turn is not None:
        value["turn"] = body.turn
    await answers.check_new_message_id(request, run.run_id, value)
    command = GateAnswer(
        node_id=conversation.node_id,
        value=value,
        who=speaker_from_request(request),
        at=request.now(),
    )
    return await send_command(request, run, conversation, command)


def _vote_command(request: Request, conversation: Conversation, body: CloseThread) -> Control:
    if isinstance(body.decision, dict) or body.outcome is not None or body.turn is not None:
        raise BadRequest("With vote a close has a decision of text and nothing else.", field="vote")
    vote: dict[str, object] = {"close": True}
    if body.decision is not None:
        vote["decision"] = body.decision
    return Control(
        node_id=conversation.node_id,
        content={"vote": vote},
        who=speaker_from_request(request),
        at=request.now(),
    )


COUNCIL_ENDPOINTS = (
    Endpoint("POST", "/v1/host/moot/councils", convene_council, scope="runs:create",
             body=ConveneCouncil, status=201, answer=ConvenedCouncil),
    Endpoint("GET", "/v1/host/moot/threads/{thread_id}", read_thread, scope="runs:read",
             joined=True, answer=ThreadView),
    Endpoint("POST", "/v1/host/moot/threads/{thread_id}:close", close_thread,
             scope="approvals:respond", body=CloseThread, answer=ThreadView),
)  # fmt: skip
