"""Build controls and send commands to a conversation."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from moot.api.access.auth import (
    check_linked_thread,
    check_may_close,
    is_guest_key,
    speaker_from_request,
)
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.threads.inputs import agent_profiles
from moot.api.threads.lookup import find_thread, find_thread_by_id
from moot.api.threads.view import thread_view
from moot.core.commands import Command
from moot.core.errors import ConversationClosed, InterruptAlreadyResolved
from moot.core.speaker import Speaker
from moot.core.state.control_content import parse_control
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.run import Run
from moot.core.state.titles import current_title
from moot.core.text.names import full_name, is_participant_name
from moot.core.threads.decide import Control, control_warnings
from moot.wire.json import JsonObject
from moot.wire.threads import (
    ControlThread,
    ThreadView,
)


async def post_control(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    body = await request.read(ControlThread)
    sender = None if body.sender is UNSET else full_name(body.sender)
    content = parse_control(body.content)
    command = await control_command(request, conversation, content, sender=sender)
    warning_texts = control_warnings(conversation, content, command.at)
    reply = await send_command(request, run, conversation, command, warning_texts)
    await end_uninvited_streams(request, run, conversation, content)
    return reply


async def control_command(
    request: Request,
    conversation: Conversation,
    content: Any,
    *,
    who: Speaker | None = None,
    sender: str | None = None,
    lenient: bool = False,
    message_id: str | None = None,
) -> Control:
    """Return the control as a command, after checking that the key may give it."""
    check_may_close(request.caller, content)
    resolved, profile = await _resolve_names(request, content)
    return Control(
        node_id=conversation.node_id,
        content=resolved,
        known=profile,
        who=speaker_from_request(request) if who is None else who,
        at=request.services.clock.millis(),
        sender=sender,
        lenient=lenient,
        message_id=message_id,
        digest="" if message_id is None else control_digest(sender, content),
        ends=not is_guest_key(request.caller),
    )


def control_digest(sender: str | None, content: Any) -> str:
    """Return the digest that identifies a repeated control."""
    encoded = msgspec.json.encode([sender, content], order="sorted")
    return hashlib.sha256(encoded).hexdigest()


async def _resolve_names(request: Request, content: Any) -> tuple[Any, JsonObject]:
    """Complete the names in a control.

    Add the profile of an invited agent of this host. Check that a linked thread belongs to this
    tenant.
    """
    if not isinstance(content, dict):
        return content, {}
    if "link" in content:
        content = {**content, "link": await _resolve_link(request, content["link"])}
    invitation = content.get("invite")
    invitation = {"participant_id": invitation} if isinstance(invitation, str) else invitation
    if not isinstance(invitation, dict) or not is_participant_name(
        invitation.get("participant_id")
    ):
        return content, {}
    name = full_name(invitation["participant_id"])
    profiles = await agent_profiles(request, [name])
    invite = {**invitation, "outside": name not in profiles}
    return {**content, "invite": invite}, profiles.get(name, {})


async def _resolve_link(request: Request, link: Any) -> Any:
    """Return the linked thread with its title.

    The caller must be allowed to read it, because the link shows its title and later its outcome.
    """
    name = link.get("thread") if isinstance(link, dict) else link
    if not isinstance(name, str):
        return link
    check_linked_thread(request.caller, name)
    run, conversation = await find_thread_by_id(request, name)
    return {"thread": thread_id(run, conversation), "title": current_title(run, conversation)}


async def end_uninvited_streams(
    request: Request, run: Run, conversation: Conversation, content: Any
) -> None:
    """End the streams of keys whose participant was uninvited."""
    uninvited = content.get("uninvite") if isinstance(content, dict) else None
    name = uninvited.get("participant_id") if isinstance(uninvited, dict) else uninvited
    if not isinstance(name, str):
        return
    place, services = f"{run.run_id}/{conversation.node_id}", request.services
    for key in await services.store.keys(run.tenant):
        if key.thread == place and full_name(name) in key.speaks_as:
            services.host.hub.dismiss(key.id)


async def send_command(
    request: Request,
    run: Run,
    conversation: Conversation,
    command: Command,
    warnings: Sequence[str] = (),
    answer: Callable[[Run], Reply] | None = None,
) -> Reply:
    """Send a command and answer with the thread, or with ``answer``.

    Raise ConversationClosed when it is closed.
    """

    def thread_reply(after: Run) -> Reply:
        view = thread_view(after, after.conversations[conversation.node_id])
        return Reply(replace(view, warnings=list(warnings)))

    host = request.services.host
    try:
        await host.handle(
            run.tenant, run.run_id, command, request.record_reply(answer or thread_reply)
        )
    except InterruptAlreadyResolved as late:
        raise ConversationClosed(
            "The conversation is closed.",
            **{**late.details, "threadId": thread_id(run, conversation)},
        ) from None
    return request.reply


CONTROL_ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}/controls", call=post_control,
        scope="approvals:respond", body=ControlThread,
        summary="Steer a thread: mute, pause, prod, invite", errors=(404, 409), joined=True,
        tag="Threads", operation_id="controlThread", answer=ThreadView,
        description="Mutes, pauses, prods or invites, and more: each field of `content` is one "
        "control. The answer lists controls without an effect as warnings. Refuses unknown "
        "controls and closed threads.",
    ),
)  # fmt: skip
