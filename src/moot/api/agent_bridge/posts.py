"""Handle events that a program posts to a thread: turns and controls.

The key decides who speaks. The host believes a local program that sends no key.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, replace

from moot.api.access import trust_local
from moot.api.access.auth import speaker_from_request
from moot.api.access.trust_local import is_local
from moot.api.agent_bridge.thread_log import ThreadLog, event_translator
from moot.api.http.error_codes import bridge_conflict
from moot.api.http.request import Reply, Request
from moot.api.threads.controls import control_command, control_digest, end_uninvited_streams
from moot.api.threads.inputs import agent_profiles
from moot.api.threads.lookup import find_thread_to_write
from moot.core.commands import Command
from moot.core.conversations.participants import (
    check_participant_name,
    recipient_warning,
    resolve_address,
)
from moot.core.errors import (
    BadRequest,
    BodyTooLarge,
    Conflict,
    ConversationClosed,
    InterruptAlreadyResolved,
    MessageIdConflict,
)
from moot.core.events import decode, payload_fields
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state.control_content import parse_control
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.participants import needs_invitation, participant_profiles
from moot.core.state.run import Run
from moot.core.text.names import full_name, is_person
from moot.core.threads import control_checks, presence
from moot.core.threads.decide import (
    ignored_control_reasons,
    target_warnings,
)
from moot.engine.streams.hub import Published
from moot.wire.agent_bridge import BridgeEvent, BridgePostResult, PostBridgeEvent
from moot.wire.request import LONGEST_TEXT

#: One command causes fewer events than this.
MOST_AT_ONCE = 1000
#: Types of events that answer a turn and a control.
TURN_TYPES = ("message", "task", "result")
CONTROL_TYPES = ("control", "thread.renamed", "thread.linked", "presence")


def speaker_and_name(request: Request, name: str | UnsetType) -> tuple[Speaker, str]:
    """Return the speaker behind the key and the name it uses.

    A program without a key must name itself.
    """
    if is_local(request.caller):
        if name is UNSET:
            raise BadRequest("Say who you are: from.", field="from")
        full = full_name(name)
        check_participant_name(full, "from")
        return Speaker(request.caller.id, (full,), joins="outside"), full
    who = speaker_from_request(request)
    return who, who.person if name is UNSET else full_name(name)


async def post_event(request: Request) -> Reply:
    run, conversation = await find_thread_to_write(request)
    return await with_bridge_conflicts(request, lambda: _handle_post(request, run, conversation))


async def with_bridge_conflicts(request: Request, call: Callable[[], Awaitable[Reply]]) -> Reply:
    """Run the call and raise conflicts in the shape that Agent Bridge programs expect."""
    try:
        return await call()
    except InterruptAlreadyResolved as late:
        refusal: Conflict = ConversationClosed("The conversation is closed.", **late.details)
    except Conflict as conflict:
        refusal = conflict
    raise bridge_conflict(refusal, request.params["thread_id"])


async def _handle_post(request: Request, run: Run, conversation: Conversation) -> Reply:
    body = await trust_local.read_lenient_body(request, PostBridgeEvent)
    if body.thread is not UNSET and body.thread not in (thread_id(run, conversation), run.run_id):
        raise BadRequest("The event names another thread.", field="thread")
    who, name = speaker_and_name(request, body.sender)
    if body.id is UNSET:
        return await _post_new(request, run, conversation, body, who, name)
    async with request.services.request_locks.lock((run.tenant, f"POSTED {run.run_id}", body.id)):
        sequence = await request.services.store.message(run.tenant, run.run_id, body.id)
        if sequence is None:
            return await _post_new(request, run, conversation, body, who, name)
        return await _answer_repeat(request, run, conversation, body, name, sequence)


async def _post_new(
    request: Request,
    run: Run,
    conversation: Conversation,
    body: PostBridgeEvent,
    who: Speaker,
    name: str,
) -> Reply:
    if not conversation.open:
        raise ConversationClosed("The conversation is closed.")
    if body.type not in TURN_TYPES:
        return await _send_control(request, run, conversation, body, who, name)
    comes_in = who.joins is not None and needs_invitation(conversation, name)
    if comes_in and await agent_profiles(request, [name]):
        who = replace(who, joins="inside")  # the host may speak for it as well
    command = GateAnswer(
        node_id=conversation.node_id,
        value={"operation": "exchange", "turn": _turn_from_post(run, body, name)},
        who=who,
        at=request.services.clock.millis(),
    )
    # before the turn changes the roster
    wrong = recipient_warning(conversation, body.to, body.content)
    event = await _send_command(request, run, conversation, command)
    return Reply(BridgePostResult(received=True, event=event, warning=wrong))


def _turn_from_post(run: Run, body: PostBridgeEvent, name: str) -> dict[str, object]:
    content = body.content
    if content is UNSET:
        raise BadRequest(f"A {body.type} has content.", field="content")
    if body.type == "message" and not isinstance(content, str):
        raise BadRequest("The content of a message is a text.", field="content")
    if isinstance(content, str) and len(content) > LONGEST_TEXT:
        raise BodyTooLarge(
            f"A text has at most {LONGEST_TEXT} characters; send it in parts.",
            field="content",
            maxCharacters=LONGEST_TEXT,
        )
    turn: dict[str, object] = {"role": "user", "from": name, "content": content}
    if not is_person(name):
        turn = {"role": "agent", "speakerId": name, "content": content}
    if body.to not in (None, "all"):
        turn["to"] = body.to
    if meta := _meta_from_post(run, body):
        turn["meta"] = meta
    if body.id is not UNSET:
        turn["messageId"] = body.id
    return turn


def _meta_from_post(run: Run, body: PostBridgeEvent) -> dict[str, object]:
    """Return the meta of the turn.

    A reply to an event of this thread is stored by sequence, because forks keep sequences.
    """
    meta = dict(body.meta or {})
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
    if body.type != "message":
        meta["kind"] = body.type
    else:
        meta.pop("kind", None)
    return meta


async def _answer_repeat(
    request: Request,
    run: Run,
    conversation: Conversation,
    body: PostBridgeEvent,
    name: str,
    sequence: int,
) -> Reply:
    """Return the first answer to a repeated event.

    Raise MessageIdConflict when another event uses the same id.
    """
    page = await ThreadLog(request.services.store, run, conversation).after(sequence - 1, 1)
    [row] = await request.services.store.read(run.tenant, run.run_id, sequence - 1, 1)
    payload = payload_fields(decode(row))
    if body.type in TURN_TYPES:
        same = _is_same_turn(
            conversation, payload.get("turn", {}), _turn_from_post(run, body, name)
        )
    else:
        same = payload.get("digest") == control_digest(name, _control_content(body))
    if not same or not page.events:
        raise MessageIdConflict("This id belongs to another event.", messageId=body.id)
    event = msgspec.json.decode(page.events[0], type=BridgeEvent)
    warning = _repeat_warning(conversation, body, name)
    return Reply(BridgePostResult(received=True, event=event, warning=warning))


def _repeat_warning(conversation: Conversation, body: PostBridgeEvent, name: str) -> str | None:
    if body.type in TURN_TYPES:
        return recipient_warning(conversation, body.to, body.content)
    if body.type != "control":
        return None
    refused = frozenset() if is_person(name) else control_checks.HUMAN_CONTROLS
    known = control_checks.ALL_CONTROLS
    return control_checks.control_warning(_control_content(body), known, refused)


def _is_same_turn(
    conversation: Conversation, recorded: Mapping[str, object], turn: Mapping[str, object]
) -> bool:
    expected = {"from": turn.get("speakerId"), **turn}
    same = ["content", "role", "from", "meta", "speakerId"]
    return all(recorded.get(key) == expected.get(key) for key in same) and _is_same_address(
        conversation, recorded, turn
    )


def _is_same_address(
    conversation: Conversation, recorded: Mapping[str, object], turn: Mapping[str, object]
) -> bool:
    """Return whether both turns address the same participant.

    The sender may use a nickname or a role; the log has the full name.
    """
    to = turn.get("to")
    if not isinstance(to, str) or "to" not in recorded:
        return ("to" in turn) == ("to" in recorded)
    could = resolve_address(to, participant_profiles(conversation))
    return recorded["to"] in (full_name(to), *could)


def _control_content(body: PostBridgeEvent) -> Any:
    """Return the content of a control as an object."""
    if body.type == "thread.renamed":
        return {"rename": None if body.content is UNSET else body.content}
    if body.type == "presence":
        return {"presence": _presence_state(body)}
    return {} if body.content is UNSET else parse_control(body.content)


def _presence_state(body: PostBridgeEvent) -> presence.PresenceState:
    """Return the state that a recorded presence event starts or ends.

    Raise BadRequest when there is none.
    """
    state = presence.parse_presence({} if body.content is UNSET else body.content)
    if state is None:
        raise BadRequest(
            f"A presence that is kept says what begins or ends: {', '.join(presence.STATES)},"
            " such as thinking.start.",
            field="content",
        )
    return state


async def _send_control(
    request: Request,
    run: Run,
    conversation: Conversation,
    body: PostBridgeEvent,
    who: Speaker,
    name: str,
) -> Reply:
    content = _control_content(body)
    own = None if body.id is UNSET else body.id
    command = await control_command(
        request, conversation, content, who=who, sender=name, lenient=body.type == "control",
        message_id=own,
    )  # fmt: skip
    head = await request.services.host.runs.head(run.tenant, run.run_id)
    wrong = ignored_control_reasons(head.run, head.flow, command)
    vain = target_warnings(head.run.conversations[conversation.node_id], content, command.at)
    event = await _send_command(request, run, conversation, command)
    await end_uninvited_streams(request, run, conversation, content)
    if body.type == "presence":
        place = (run.run_id, conversation.conversation_id)
        request.services.host.presence.set(place, name, _presence_state(body))
    warning = " ".join([*filter(None, [control_checks.problems_text(wrong)]), *vain]) or None
    return Reply(BridgePostResult(received=True, event=event, warning=warning))


async def _send_command(
    request: Request, run: Run, conversation: Conversation, command: Command
) -> BridgeEvent | None:
    """Send the command and return its event as the log has it."""
    host = request.services.host
    types = TURN_TYPES if isinstance(command, GateAnswer) else CONTROL_TYPES
    end, caused = 0, list[Published]()

    def record(after: Run, events: list[Published]) -> None:
        nonlocal end, caused
        end, caused = after.next_sequence, events

    await host.handle(run.tenant, run.run_id, command, record)
    event = _first_event(caused, run, conversation, types) or await _newest_event(
        request, run, conversation, end, types
    )
    if types is TURN_TYPES and event is not None:
        host.presence.spoke((run.run_id, conversation.conversation_id), full_name(event.sender))
    return event


def _first_event(
    events: list[Published], run: Run, conversation: Conversation, types: tuple[str, ...]
) -> BridgeEvent | None:
    """Return the first Agent Bridge event of these types among the caused events."""
    translator = event_translator(run, conversation)
    for event in events:
        for translated in translator.tell(decode(event.body)):
            if translated.type in types:
                return BridgeEvent(**asdict(translated))
    return None


async def _newest_event(
    request: Request, run: Run, conversation: Conversation, end: int, types: tuple[str, ...]
) -> BridgeEvent | None:
    """Return the newest earlier event of these types.

    A command that changed nothing is answered with it.
    """
    run = (await request.services.host.view(run.tenant, run.run_id)).run
    page = await ThreadLog(request.services.store, run, conversation).after(end - MOST_AT_ONCE)
    events = [msgspec.json.decode(row, type=BridgeEvent) for row in page.events]
    matching = [each for each in events if each.seq < end and each.type in types]
    return matching[-1] if matching else None
