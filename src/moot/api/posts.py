"""What is said in a thread by way of the thread API: messages, tasks, results, controls, names.

Who speaks is the key's matter; of a program that sends none the host believes who it is.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from moot.api import interrupts, threads
from moot.api.bridge_view import Thread, teller
from moot.api.dialect import as_bridge
from moot.api.trust import is_local
from moot.api.wire import Reply, Request
from moot.core import controls, presence, tasks
from moot.core.bridge import Told
from moot.core.commands import Command
from moot.core.conversation import Speaker
from moot.core.errors import (
    BadRequest,
    BodyTooLarge,
    Conflict,
    ConversationClosed,
    InterruptAlreadyResolved,
    MessageIdConflict,
)
from moot.core.events import decode
from moot.core.nesting import too_deep
from moot.core.resolving import Answer
from moot.core.run import Run
from moot.core.thread import full_name, is_person
from moot.core.threads import KNOWN, Control
from moot.core.waiting import Conversation, thread_id
from moot.engine.hub import Group, Subscription

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
    to: Name = "all"
    content: Any = UNSET
    meta: dict[str, Any] = {}
    id: Name | UnsetType = UNSET
    ts: Any = UNSET
    thread: str | UnsetType = UNSET
    seq: Any = UNSET
    turn: Any = UNSET


def line(text: str) -> str:
    """A title: one line."""
    return " ".join(text.split())


def speaks(request: Request, name: str | UnsetType) -> tuple[Speaker, str]:
    """Who holds the key and the name it is used under. Who sends no key says who he is."""
    if is_local(request.caller):
        if name is UNSET:
            raise BadRequest("Say who you are: from.", field="from")
        known = full_name(name)
        return Speaker(request.caller.id, (known,), joins="outside"), known
    who = interrupts.speaker(request)
    return who, who.person if name is UNSET else full_name(name)


async def post(request: Request) -> Reply:
    run, talk = await threads.place_to_act(request)
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
    if not talk.open:
        raise ConversationClosed("The conversation is closed.")
    asked = await request.read(Posted)
    if asked.thread is not UNSET and asked.thread not in (thread_id(run, talk), run.run_id):
        raise BadRequest("The event names another thread.", field="thread")
    if asked.type == "control":
        return await _steer(request, run, talk, asked, _content(asked))
    if asked.type == "thread.renamed":
        content = {"rename": None if asked.content is UNSET else asked.content}
        return await _steer(request, run, talk, asked, content)
    if asked.type == "presence":
        return await _present(request, run, talk, asked)
    return await _message(request, run, talk, asked)


async def _message(request: Request, run: Run, talk: Conversation, asked: Posted) -> Reply:
    who, name = speaks(request, asked.from_)
    if who.joins is not None and await threads.profiles_of(request, [name]):
        who = replace(who, joins="inside")  # the host may speak for it as well
    turn = _turn(run, asked, name)
    command = Answer(
        node_id=talk.node_id,
        value={"operation": "exchange", "turn": turn},
        who=who,
        at=request.services.clock.millis(),
    )
    if asked.id is UNSET:
        return await _said(request, run, talk, command)
    place = (run.tenant, f"POSTED {run.run_id}", asked.id)
    async with request.services.turns.lock(place):
        sequence = await request.services.store.message(run.tenant, run.run_id, asked.id)
        if sequence is None:
            return await _said(request, run, talk, command)
        return await _repeated(request, run, talk, turn, sequence)


def _turn(run: Run, asked: Posted, name: str) -> dict[str, Any]:
    content = asked.content
    if content is UNSET:
        raise BadRequest(f"A {asked.type} has content.", field="content")
    if asked.type == "message" and not isinstance(content, str):
        raise BadRequest("The content of a message is a text.", field="content")
    if isinstance(content, str) and len(content) > threads.LONGEST_TEXT:
        raise BodyTooLarge(
            f"A text has at most {threads.LONGEST_TEXT} characters; send it in parts.",
            field="content",
            maxCharacters=threads.LONGEST_TEXT,
        )
    turn: dict[str, Any] = {"role": "user", "from": name, "content": content}
    if not is_person(name):
        turn = {"role": "agent", "speakerId": name, "content": content}
    if asked.to != "all":
        turn["to"] = asked.to
    if meta := _meta(run, asked):
        turn["meta"] = meta
    if asked.id is not UNSET:
        turn["messageId"] = asked.id
    return turn


def _meta(run: Run, asked: Posted) -> dict[str, Any]:
    """An event of this thread is meant by its place, which it keeps in every fork."""
    meta = dict(asked.meta)
    reply = meta.pop("reply_to", None) or meta.pop("task_id", None)
    if reply is not None:
        if not isinstance(reply, str) or not 1 <= len(reply) <= 256:
            raise BadRequest("reply_to is the id of an event.", field="meta.reply_to")
        place, _, sequence = reply.partition(".")
        number = sequence.partition(".")[0]
        here = place == run.run_id and number.isascii() and number.isdigit() and len(number) < 16
        meta["replyTo"] = int(number) if here else reply
    tags = meta.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise BadRequest("tags is a list of texts.", field="meta.tags")
    if asked.type != "message":
        meta["kind"] = asked.type
    else:
        meta.pop("kind", None)
    return meta


async def _repeated(
    request: Request, run: Run, talk: Conversation, turn: dict[str, Any], sequence: int
) -> Reply:
    """The same again gets the same answer; something else under its name is refused."""
    page = await Thread(request.services.store, run, talk).after(sequence - 1, 1)
    [row] = await request.services.store.read(run.tenant, run.run_id, sequence - 1, 1)
    known = decode(row).payload.get("turn", {})
    meant = {"from": turn.get("speakerId"), **turn}
    if "to" in turn:
        meant["to"] = full_name(turn["to"])
    same = ["content", "role", "from", "meta", "speakerId"]
    if tasks.kind_of(turn) != "task":  # which may be for a role, and says whom that meant
        same.append("to")
    if any(known.get(key) != meant.get(key) for key in same) or not page.events:
        raise MessageIdConflict("This id belongs to another event.", messageId=turn["messageId"])
    return Reply(b'{"received":true,"event":%b}' % page.events[0])


async def _present(request: Request, run: Run, talk: Conversation, asked: Posted) -> Reply:
    """What somebody begins or ends to do, where that is to be written down: once for each change,
    however often it is said."""
    state = presence.begun(asked.content)
    if state is None:
        raise BadRequest(
            f"A presence that is kept says what begins or ends: {', '.join(presence.STATES)},"
            " such as thinking.start.",
            field="content",
        )
    reply = await _steer(request, run, talk, asked, {"presence": state})
    _, name = speaks(request, asked.from_)
    request.services.host.presence.set((run.run_id, talk.conversation_id), name, state)
    return reply


def _content(asked: Posted) -> Any:
    """An object, or the text of one; a control may have none."""
    if asked.content is UNSET:
        return {}
    if not isinstance(asked.content, str) or too_deep(asked.content.encode()):
        return asked.content
    try:
        found = msgspec.json.decode(asked.content)
    except (msgspec.DecodeError, RecursionError):
        return asked.content
    return found if isinstance(found, dict) else asked.content


async def _steer(
    request: Request, run: Run, talk: Conversation, asked: Posted, content: Any
) -> Reply:
    who, name = speaks(request, asked.from_)
    command = Control(
        node_id=talk.node_id,
        content=await threads.introduced(request, content),
        who=who,
        at=request.services.clock.millis(),
        sender=name,
        lenient=True,
    )
    reply = await _said(request, run, talk, command)
    wrong = controls.warning(content, KNOWN)
    return reply if wrong is None else _warned(reply, wrong)


def _warned(reply: Reply, wrong: str) -> Reply:
    return Reply({**msgspec.json.decode(reply.body), "warning": wrong}, reply.status)


async def _said(request: Request, run: Run, talk: Conversation, command: Command) -> Reply:
    """Answered with the event as it stands in the log: it is published before this goes on."""
    host = request.services.host
    reader = host.hub.subscribe(run.run_id, holder=request.caller.id)
    ends: list[int] = []
    types = SPOKEN if isinstance(command, Answer) else STEERED

    def note(after: Run) -> None:
        ends.append(after.next_sequence)

    try:
        await host.handle(run.tenant, run.run_id, command, note)
        told = _found(reader, run, talk, ends[-1], types)
        told = told or await _newest(request, run, talk, ends[-1], types)
        if types is SPOKEN and told is not None:
            place = (run.run_id, talk.conversation_id)
            host.presence.spoke(place, full_name(told["from"]))
    finally:
        host.hub.unsubscribe(run.run_id, reader)
    return Reply({"received": True, "event": told})


def _found(
    reader: Subscription, run: Run, talk: Conversation, end: int, types: tuple[str, ...]
) -> Told | None:
    """The first thing a thread was told by the commit that ended there."""
    for group in reader.waiting:
        if isinstance(group, Group) and group.events[-1].sequence == end - 1:
            told = teller(run, talk)
            for event in group.events:
                for each in told.tell(decode(event.body)):
                    if each["type"] in types:
                        return each
    return None


async def _newest(
    request: Request, run: Run, talk: Conversation, end: int, types: tuple[str, ...]
) -> Told | None:
    """What the thread was told last before that: where so much is said at once that what one
    commit said is not at hand any more."""
    run = (await request.services.host.view(run.tenant, run.run_id)).run
    page = await Thread(request.services.store, run, talk).after(end - MOST_AT_ONCE)
    told = map(msgspec.json.decode, page.events)
    found = [each for each in told if each["seq"] < end and each["type"] in types]
    return found[-1] if found else None
