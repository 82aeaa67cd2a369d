"""Councils and threads: one conversation each, of a run. Convene, read, close."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.api.access.auth import is_agents
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.interrupts import routes
from moot.api.threads.related import with_kin
from moot.api.threads.unknown_members import refuse_strangers
from moot.api.threads.view import shown
from moot.core.commands import Command
from moot.core.conversations import joining
from moot.core.conversations.participants import check_invited, check_roster
from moot.core.errors import (
    BadRequest,
    ConversationClosed,
    InterruptAlreadyResolved,
    NotFound,
    RunNotFound,
)
from moot.core.events import iso
from moot.core.runs.answers import Answer
from moot.core.runs.start import StartRun
from moot.core.state.conversation import THREAD, TITLE, Conversation, as_title, thread_id
from moot.core.state.council_policy import Policy, meaningless
from moot.core.state.run import Run
from moot.core.text.names import full_name
from moot.core.threads.decide import Control
from moot.engine.replay.import_log import TAKEN_IN
from moot.engine.workflows.built_in import TALK

LONGEST_TEXT = 100_000

Text = Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Budget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a led council stops at the latest."""

    turns: Annotated[int, Meta(ge=1, le=1000)] | None = None
    tokens: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    money: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None
    minutes: Annotated[int, Meta(ge=1, le=100_000)] | None = None


class Convene(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A council: a question to a closed roster, or with ``open`` to whoever is invited."""

    question: Text
    participants: list[Name | dict[str, Any]] = []
    title: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    open: bool = False
    #: who leads it; with any of these the host gives the floor to its agents
    moderator: Name | None = None
    policy: Policy | None = None
    budget: Budget | None = None


class Close(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    decision: str | dict[str, Any] | None = None
    outcome: Any = None
    turn: dict[str, Any] | None = None
    #: the members vote on the decision first; it is closed when they have
    vote: bool = False


async def convene(request: Request) -> Reply:
    asked = await request.read(Convene)
    members = _seated(asked)
    if len(members) == 1 and _is_led(asked) and isinstance(members[0].get("agentId"), str):
        await refuse_strangers(request, [members[0]["agentId"]])  # a name that is none is the cause
    inputs: dict[str, Any] = {"question": asked.question}
    if asked.title is not None:
        inputs["title"] = titled(asked.title)
    if asked.open:
        inputs["invited"] = check_invited(members)
    else:
        check_roster(members)
        inputs["participants"] = members
    services, caller = request.services, request.caller
    inputs |= await _led(request, asked, members, await _policy_as_given(request))
    flow = await services.host.flows.newest(caller.tenant, THREAD)
    command = StartRun(
        tenant=caller.tenant,
        principal=caller.id,
        person=routes.speaker(request).person,
        at=services.clock.millis(),
        limits=services.host.limits,
        inputs=inputs,
    )
    await services.host.create(flow, command, request.recording(_convened))
    return request.made


def _seated(asked: Convene) -> list[dict[str, Any]]:
    """Who takes part; who moderates does, whether or not it is named twice."""
    members = [member(each) for each in asked.participants]
    moderator = asked.moderator or (asked.policy.moderator if asked.policy else None)
    if moderator is None or any(each.get("agentId") == full_name(moderator) for each in members):
        return members
    return [*members, member(moderator)]


async def _policy_as_given(request: Request) -> dict[str, Any]:
    """What was said about it, to be told from what was not."""
    body = msgspec.json.decode(await request.body() or b"{}")
    said: dict[str, Any] = body.get("policy") or {}
    moderator = body.get("moderator")
    return said if moderator is None else {**said, "moderator": moderator}


def _is_led(asked: Convene) -> bool:
    return any(said is not None for said in (asked.policy, asked.moderator, asked.budget))


async def _led(
    request: Request, asked: Convene, members: list[dict[str, Any]], said: dict[str, Any]
) -> dict[str, Any]:
    """Nothing for a council that nobody leads; else its policy, and who the members are."""
    if not _is_led(asked):
        return {}
    if problem := meaningless(said):
        raise BadRequest(problem, field="policy")
    policy, budget = asked.policy or Policy(), asked.budget or Budget()
    names = [str(member["agentId"]) for member in members]
    await refuse_strangers(request, names)
    limits = policy.limits
    limits = replace(
        limits,
        consecutive=budget.turns or _consecutive(policy, said, len(names)),
        tokens=budget.tokens or limits.tokens,
        money=budget.money or limits.money,
        minutes=budget.minutes or limits.minutes,
    )
    moderator = _one_of(names, asked.moderator or policy.moderator, "moderator")
    summarise = _one_of(names, policy.summarise, "summarise")
    led = replace(policy, limits=limits, moderator=moderator, summarise=summarise)
    profiles = await profiles_of(request, names)
    return {"participation": msgspec.to_builtins(led), "profiles": profiles}


def _consecutive(policy: Policy, said: dict[str, Any], members: int) -> int:
    """Enough for all rounds, unless somebody has said how many."""
    given = policy.limits.consecutive
    if "consecutive" in (said.get("limits") or {}):
        return given
    return max(given, min(policy.rounds * members + members, 1000))


def _one_of(names: list[str], name: str | None, field: str) -> str | None:
    if name is None:
        return None
    if full_name(name) not in names:
        raise BadRequest(f"'{field}' must be one of the participants.", field=field, roster=names)
    return full_name(name)


def _convened(run: Run) -> Reply:
    talk = run.conversations[TALK]
    name = thread_id(run, talk)
    url = f"/v1/host/moot/threads/{name}"
    body = {"runId": run.run_id, "threadId": name, "url": url}
    return Reply(body, 201, {"Location": url})


def titled(text: str, field: str = "title") -> str:
    """A title as it is kept."""
    found = as_title(text)
    if found is None:
        raise BadRequest(TITLE, field=field)
    return found


def member(item: str | dict[str, Any]) -> dict[str, Any]:
    """A bare name is an agent of this host."""
    if isinstance(item, dict):
        return item
    return {"agentId": full_name(item)}


async def place(request: Request) -> tuple[Run, Conversation]:
    """The conversation a thread id names; a conversation id is taken as well."""
    return await place_of(request, request.params["thread_id"])


async def place_to_act(request: Request) -> tuple[Run, Conversation]:
    """The same for who is about to add to it: what is on its way to disk is waited for then."""
    return await place_of(request, request.params["thread_id"], settled=False)


async def place_of(request: Request, name: str, settled: bool = True) -> tuple[Run, Conversation]:
    run_id, *rest = re.split("[~:]", name)
    host, tenant = request.services.host, request.caller.tenant
    try:
        run = (await (host.view if settled else host.runs.head)(tenant, run_id)).run
    except RunNotFound:
        raise NotFound("There is no such thread.", threadId=name) from None
    found = list(run.conversations.values())
    if rest:
        found = [talk for talk in found if name in (talk.conversation_id, thread_id(run, talk))]
    if len(found) > 1:
        raise BadRequest(
            "The run has several conversations; name one.",
            threadIds=[thread_id(run, talk) for talk in found],
        )
    if not found:
        raise NotFound("There is no such thread.", threadId=name)
    _check_seat(request, found[0])
    return run, found[0]


def _check_seat(request: Request, talk: Conversation) -> None:
    """A key for one conversation is good while who holds it takes part."""
    key = request.caller
    gone = [name for name in key.speaks_as if joining.needs_seat(talk, name)]
    if key.thread is not None and is_agents(key) and len(gone) == len(key.speaks_as):
        raise joining.not_invited(talk, gone[0])


async def dismiss(request: Request, run: Run, talk: Conversation, content: Any) -> None:
    """What somebody reads who was sent away ends there."""
    asked = content.get("uninvite") if isinstance(content, dict) else None
    name = asked.get("participant_id") if isinstance(asked, dict) else asked
    if not isinstance(name, str):
        return
    place, services = f"{run.run_id}/{talk.node_id}", request.services
    for key in await services.store.keys(run.tenant):
        if key.thread == place and full_name(name) in key.speaks_as:
            services.host.hub.dismiss(key.id)


async def read(request: Request) -> Reply:
    run, talk = await place(request)
    told = shown(run, talk, request.services.clock.millis())
    told["you"] = routes.speaker(request).person
    mark = await request.services.store.record(run.tenant, TAKEN_IN, run.run_id)
    if mark is not None:  # who said what in it was said elsewhere
        told["imported"] = {"at": iso(mark.created_at * 1000), "by": mark.by}
    return Reply(await with_kin(request, run, told))


def must_be_open(talk: Conversation, name: str) -> None:
    if not talk.open:
        raise ConversationClosed("The conversation is closed.", threadId=name)


async def profiles_of(request: Request, names: list[str]) -> dict[str, dict[str, Any]]:
    found = {}
    for name in names:
        if not name.startswith("host:"):
            continue
        agent = await request.services.agents.find(request.caller.tenant, name[5:])
        if agent is not None:
            found[name] = {"name": agent.called, "role": agent.role, "model": agent.model}
    return found


async def close(request: Request) -> Reply:
    run, talk = await place(request)
    asked = await request.read(Close)
    if asked.vote:
        return await act(request, run, talk, _vote_first(request, talk, asked))
    value: dict[str, Any] = {"operation": "close", "outcome": asked.outcome}
    if asked.decision is not None:
        value["decision"] = asked.decision
    if asked.turn is not None:
        value["turn"] = asked.turn
    await routes.refuse_repeat(request, run.run_id, value)
    command = Answer(
        node_id=talk.node_id,
        value=value,
        who=routes.speaker(request),
        at=request.services.clock.millis(),
    )
    return await act(request, run, talk, command)


def _vote_first(request: Request, talk: Conversation, asked: Close) -> Control:
    if isinstance(asked.decision, dict) or asked.outcome is not None or asked.turn is not None:
        raise BadRequest("With vote a close has a decision of text and nothing else.", field="vote")
    said: dict[str, Any] = {"close": True}
    if asked.decision is not None:
        said["decision"] = asked.decision
    return Control(
        node_id=talk.node_id,
        content={"vote": said},
        who=routes.speaker(request),
        at=request.services.clock.millis(),
    )


async def act(
    request: Request,
    run: Run,
    talk: Conversation,
    command: Command,
    warnings: Sequence[str] = (),
    answer: Callable[[Run], Reply] | None = None,
) -> Reply:
    def seen(after: Run) -> Reply:
        body = shown(after, after.conversations[talk.node_id])
        return Reply({**body, "warnings": list(warnings)} if warnings else body)

    host = request.services.host
    try:
        await host.handle(run.tenant, run.run_id, command, request.recording(answer or seen))
    except InterruptAlreadyResolved as late:
        raise ConversationClosed(
            "The conversation is closed.", **{**late.details, "threadId": thread_id(run, talk)}
        ) from None
    return request.made


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/councils", call=convene, scope="runs:create",
        body=Convene, status=201, summary="Convene a council on a question", errors=(422,),
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}", call=read, scope="runs:read",
        summary="Read a thread: who takes part, and how it is steered", errors=(404,),
        joined=True,
    ),
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}:close", call=close,
        scope="approvals:respond", body=Close, summary="Close a thread, with a decision or without",
        errors=(404, 409),
    ),
)  # fmt: skip
