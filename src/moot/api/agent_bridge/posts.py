"""What is said in a thread by way of the thread API: messages, tasks, results, controls, names.

Who speaks is the key's matter; of a program that sends none the host believes who it is.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from moot.api.access import trust_local
from moot.api.access.trust_local import is_local
from moot.api.agent_bridge.view import Thread, teller
from moot.api.http.error_codes import as_bridge
from moot.api.http.request import Reply, Request
from moot.api.interrupts import routes
from moot.api.threads import councils
from moot.api.threads.controls import control, digest
from moot.core.commands import Command
from moot.core.conversations import addressing, joining, turns
from moot.core.errors import (
    BadRequest,
    BodyTooLarge,
    Conflict,
    ConversationClosed,
    InterruptAlreadyResolved,
    MessageIdConflict,
)
from moot.core.events import decode
from moot.core.runs.answers import Answer
from moot.core.speaker import Speaker
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.run import Run
from moot.core.text.names import full_name, is_person
from moot.core.threads import control_checks, presence
from moot.core.threads.agent_bridge import Told
from moot.core.threads.decide import HUMAN_ONLY, KNOWN, in_vain, unheeded
from moot.engine.streams.hub import Published

#: more events than one command causes at once
MOST_AT_ONCE = 1000
#: what is answered to who has spoken, and to who has steered
SPOKEN = ("message", "task", "result")
STEERED = ("control", "thread.renamed", "thread.linked", "presence")

Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Posted(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}
):
    """An event as it is sent. ``id`` is the sender's own name for it: who sends it again gets the
    first answer. The host's id and time stand in what is answered, whatever was sent."""

    type: Literal["message", "control", "presence", "task", "result", "thread.renamed"] = "message"
    from_: Name | UnsetType = UNSET
    to: Name | None = None
    content: Any = UNSET
    meta: dict[str, Any] | None = None
    id: Name | UnsetType = UNSET
    ts: Any = UNSET
    thread: str | UnsetType = UNSET
    seq: Any = UNSET
    turn: Any = UNSET


def speaks(request: Request, name: str | UnsetType) -> tuple[Speaker, str]:
    """Who holds the key and the name it is used under. Who sends no key says who he is."""
    if is_local(request.caller):
        if name is UNSET:
            raise BadRequest("Say who you are: from.", field="from")
        known = full_name(name)
        joining.check(known, "from")
        return Speaker(request.caller.id, (known,), joins="outside"), known
    who = routes.speaker(request)
    return who, who.person if name is UNSET else full_name(name)


async def post(request: Request) -> Reply:
    run, talk = await councils.place_to_act(request)
    return await nested(request, lambda: _posted(request, run, talk))


async def nested(request: Request, call: Callable[[], Awaitable[Reply]]) -> Reply:
    """Conflicts have the shape that programs for Agent Bridge look into."""
    try:
        return await call()
    except InterruptAlreadyResolved as late:
        refusal: Conflict = ConversationClosed("The conversation is closed.", **late.details)
    except Conflict as conflict:
        refusal = conflict
    raise as_bridge(refusal, request.params["thread_id"])


async def _posted(request: Request, run: Run, talk: Conversation) -> Reply:
    asked = await trust_local.read(request, Posted)
    if asked.thread is not UNSET and asked.thread not in (thread_id(run, talk), run.run_id):
        raise BadRequest("The event names another thread.", field="thread")
    who, name = speaks(request, asked.from_)
    if asked.id is UNSET:
        return await _new(request, run, talk, asked, who, name)
    async with request.services.turns.lock((run.tenant, f"POSTED {run.run_id}", asked.id)):
        sequence = await request.services.store.message(run.tenant, run.run_id, asked.id)
        if sequence is None:
            return await _new(request, run, talk, asked, who, name)
        return await _repeated(request, run, talk, asked, name, sequence)


async def _new(
    request: Request, run: Run, talk: Conversation, asked: Posted, who: Speaker, name: str
) -> Reply:
    if not talk.open:
        raise ConversationClosed("The conversation is closed.")
    if asked.type not in SPOKEN:
        return await _steer(request, run, talk, asked, who, name)
    comes_in = who.joins is not None and joining.needs_seat(talk, name)
    if comes_in and await councils.profiles_of(request, [name]):
        who = replace(who, joins="inside")  # the host may speak for it as well
    command = Answer(
        node_id=talk.node_id,
        value={"operation": "exchange", "turn": _turn(run, asked, name)},
        who=who,
        at=request.services.clock.millis(),
    )
    wrong = addressing.warning(talk, asked.to, asked.content)  # as it is before that
    return _warned(await _said(request, run, talk, command), wrong)


def _turn(run: Run, asked: Posted, name: str) -> dict[str, Any]:
    content = asked.content
    if content is UNSET:
        raise BadRequest(f"A {asked.type} has content.", field="content")
    if asked.type == "message" and not isinstance(content, str):
        raise BadRequest("The content of a message is a text.", field="content")
    if isinstance(content, str) and len(content) > councils.LONGEST_TEXT:
        raise BodyTooLarge(
            f"A text has at most {councils.LONGEST_TEXT} characters; send it in parts.",
            field="content",
            maxCharacters=councils.LONGEST_TEXT,
        )
    turn: dict[str, Any] = {"role": "user", "from": name, "content": content}
    if not is_person(name):
        turn = {"role": "agent", "speakerId": name, "content": content}
    if asked.to not in (None, "all"):
        turn["to"] = asked.to
    if meta := _meta(run, asked):
        turn["meta"] = meta
    if asked.id is not UNSET:
        turn["messageId"] = asked.id
    return turn


def _meta(run: Run, asked: Posted) -> dict[str, Any]:
    """An event of this thread is meant by its place, which it keeps in every fork."""
    meta = dict(asked.meta or {})
    reply, again = meta.pop("reply_to", None), meta.pop("replyTo", None)
    reply = reply or again or meta.pop("task_id", None)
    if reply is not None:
        if not isinstance(reply, str) or not 1 <= len(reply) <= 256:
            raise BadRequest("reply_to is the id of an event.", field="meta.reply_to")
        place, _, sequence = reply.partition(".")
        number = sequence.partition(".")[0]
        here = place == run.run_id and number.isascii() and number.isdigit() and len(number) < 16
        meta["replyTo"] = int(number) if here else reply
    if meta.get("tags", []) is None:
        del meta["tags"]
    tags = meta.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise BadRequest("tags is a list of texts.", field="meta.tags")
    if asked.type != "message":
        meta["kind"] = asked.type
    else:
        meta.pop("kind", None)
    return meta


async def _repeated(
    request: Request, run: Run, talk: Conversation, asked: Posted, name: str, sequence: int
) -> Reply:
    """The same again gets the same answer, whatever has become of the thread since; something else
    under its name is refused."""
    page = await Thread(request.services.store, run, talk).after(sequence - 1, 1)
    [row] = await request.services.store.read(run.tenant, run.run_id, sequence - 1, 1)
    known = decode(row).payload
    if asked.type in SPOKEN:
        same = _is_said(talk, known.get("turn", {}), _turn(run, asked, name))
    else:
        same = known.get("digest") == digest(name, _content(asked))
    if not same or not page.events:
        raise MessageIdConflict("This id belongs to another event.", messageId=asked.id)
    reply = Reply(b'{"received":true,"event":%b}' % page.events[0])
    if asked.type in SPOKEN:
        return _warned(reply, addressing.warning(talk, asked.to, asked.content))
    if asked.type != "control":
        return reply
    refused = frozenset() if is_person(name) else HUMAN_ONLY
    return _warned(reply, control_checks.warning(_content(asked), KNOWN, refused))


def _is_said(talk: Conversation, known: dict[str, Any], turn: dict[str, Any]) -> bool:
    meant = {"from": turn.get("speakerId"), **turn}
    same = ["content", "role", "from", "meta", "speakerId"]
    return all(known.get(key) == meant.get(key) for key in same) and _is_to(talk, known, turn)


def _is_to(talk: Conversation, known: dict[str, Any], turn: dict[str, Any]) -> bool:
    """An address may be a nickname or a role, and the log says whom that meant."""
    if "to" not in turn or "to" not in known:
        return ("to" in turn) == ("to" in known)
    could = addressing.meant(turn["to"], turns.everybody(talk))
    return known["to"] in (full_name(turn["to"]), *could)


def _content(asked: Posted) -> Any:
    """What a control says: an object, or the text of one; there may be none."""
    if asked.type == "thread.renamed":
        return {"rename": None if asked.content is UNSET else asked.content}
    if asked.type == "presence":
        return {"presence": _state(asked)}
    return {} if asked.content is UNSET else thread_controls.meant(asked.content)


def _state(asked: Posted) -> presence.State:
    """What somebody begins or ends to do, where that is to be written down: once for each change,
    however often it is said."""
    state = presence.begun({} if asked.content is UNSET else asked.content)
    if state is None:
        raise BadRequest(
            f"A presence that is kept says what begins or ends: {', '.join(presence.STATES)},"
            " such as thinking.start.",
            field="content",
        )
    return state


async def _steer(
    request: Request, run: Run, talk: Conversation, asked: Posted, who: Speaker, name: str
) -> Reply:
    content = _content(asked)
    own = None if asked.id is UNSET else asked.id
    command = await control(
        request, talk, content, who=who, sender=name, lenient=asked.type == "control",
        message_id=own,
    )  # fmt: skip
    head = await request.services.host.runs.head(run.tenant, run.run_id)
    wrong = unheeded(head.run, head.flow, command)
    vain = in_vain(head.run.conversations[talk.node_id], content, command.at)
    reply = await _said(request, run, talk, command)
    await councils.dismiss(request, run, talk, content)
    if asked.type == "presence":
        place = (run.run_id, talk.conversation_id)
        request.services.host.presence.set(place, name, _state(asked))
    return _warned(reply, " ".join([*filter(None, [control_checks.told(wrong)]), *vain]) or None)


def _warned(reply: Reply, wrong: str | None) -> Reply:
    if wrong is None:
        return reply
    return Reply({**msgspec.json.decode(reply.body), "warning": wrong}, reply.status)


async def _said(request: Request, run: Run, talk: Conversation, command: Command) -> Reply:
    """Answered with the event as it stands in the log, once it is there."""
    host = request.services.host
    types = SPOKEN if isinstance(command, Answer) else STEERED
    end, caused = 0, list[Published]()

    def note(after: Run, events: list[Published]) -> None:
        nonlocal end, caused
        end, caused = after.next_sequence, events

    await host.handle(run.tenant, run.run_id, command, note)
    told = _found(caused, run, talk, types) or await _newest(request, run, talk, end, types)
    if types is SPOKEN and told is not None:
        host.presence.spoke((run.run_id, talk.conversation_id), full_name(told["from"]))
    return Reply({"received": True, "event": told})


def _found(
    events: list[Published], run: Run, talk: Conversation, types: tuple[str, ...]
) -> Told | None:
    """The first thing a thread is told by what a command caused."""
    told = teller(run, talk)
    for event in events:
        for each in told.tell(decode(event.body)):
            if each["type"] in types:
                return each
    return None


async def _newest(
    request: Request, run: Run, talk: Conversation, end: int, types: tuple[str, ...]
) -> Told | None:
    """What the thread was told last before that: where a command has changed nothing."""
    run = (await request.services.host.view(run.tenant, run.run_id)).run
    page = await Thread(request.services.store, run, talk).after(end - MOST_AT_ONCE)
    told = map(msgspec.json.decode, page.events)
    found = [each for each in told if each["seq"] < end and each["type"] in types]
    return found[-1] if found else None
