"""Presence in a thread: report it and read it. It is never stored."""

from msgspec.structs import asdict

from moot.api.access import trust_local
from moot.api.access.trust_local import is_local
from moot.api.agent_bridge import posts
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.threads.lookup import find_thread, find_thread_to_write
from moot.core.conversations.participants import check_participant_name, not_invited_error
from moot.core.errors import BodyTooLarge, ConversationClosed, NotYourName
from moot.core.events import iso
from moot.core.speaker import Speaker
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.mutes import is_muted
from moot.core.state.participants import takes_part
from moot.core.text.names import handle_from_name, is_person
from moot.core.threads.presence import PresenceRecord
from moot.wire.agent_bridge import (
    BridgeParticipant,
    BridgePresence,
    BridgePresenceList,
    BridgePresenceResult,
    ReportedPresence,
    ReportPresence,
)

#: Largest body of a presence report in bytes.
MOST_DETAILS = 8192


async def read_presence(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    presence = request.host.presence
    now = presence.now()
    views = {
        handle_from_name(name): presence_view(here, now, presence.ttl_ms)
        for name, here in presence.snapshot(run.run_id, conversation).items()
    }
    present = sorted(views.items(), key=lambda each: (each[1].stale, each[0]))
    answer = BridgePresenceList(
        thread=thread_id(run, conversation),
        ttl_seconds=presence.ttl_ms // 1000,
        participants=[BridgeParticipant(**asdict(here), id=name) for name, here in present],
        presence=dict(present),
    )
    return Reply(answer, 200, {"Cache-Control": "no-store"})


def presence_view(here: PresenceRecord, now: int, ttl_ms: int) -> BridgePresence:
    return BridgePresence(
        state=here.shown(now, ttl_ms),
        updated_at=iso(here.at),
        details=here.details,
        stale=here.stale(now, ttl_ms),
    )


async def post_presence(request: Request) -> Reply:
    run, conversation = await find_thread_to_write(request)
    return await posts.with_bridge_conflicts(
        request, lambda: _set_presence(request, run.run_id, conversation)
    )


async def _set_presence(request: Request, run_id: str, conversation: Conversation) -> Reply:
    if not conversation.open:
        raise ConversationClosed("The conversation is closed.")
    body = await trust_local.read_lenient_body(request, ReportPresence)
    if len(await request.body()) > MOST_DETAILS:
        raise BodyTooLarge(f"A sign of life has at most {MOST_DETAILS} bytes.", field="details")
    who, name = posts.speaker_and_name(request, body.sender)
    check_takes_part(request, conversation, who, name)
    presence = request.host.presence
    # the details of a muted participant are dropped
    muted = is_muted(conversation.state, name, request.now())
    details = None if muted else body.details
    here = presence.set((run_id, conversation.conversation_id), name, body.state, details)
    view = presence_view(here, presence.now(), presence.ttl_ms)
    thread, participant = request.params["thread_id"], handle_from_name(name)
    reported = ReportedPresence(**asdict(view), thread=thread, participant=participant)
    return Reply(BridgePresenceResult(received=True, presence=reported))


def check_takes_part(request: Request, conversation: Conversation, who: Speaker, name: str) -> None:
    """Raise unless the name belongs to the caller and takes part.

    A trusted local program may listen before it takes part.
    """
    if not who.admin and name != who.person and name not in who.names:
        raise NotYourName(name, list(who.names))
    check_participant_name(name, "from")
    if is_person(name) or is_local(request.caller):
        return
    if not takes_part(conversation, name):
        raise not_invited_error(conversation, name)


PRESENCE_ENDPOINTS = (
    Endpoint("GET", "/threads/{thread_id}/presence", read_presence, scope="runs:read", local=True,
             joined=True, answer=BridgePresenceList),
    Endpoint("POST", "/threads/{thread_id}/presence", post_presence, scope="approvals:respond",
             local=True, joined=True, body=ReportPresence, answer=BridgePresenceResult),
)  # fmt: skip
