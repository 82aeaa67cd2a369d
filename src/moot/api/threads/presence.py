"""Who is here in a thread: signs of life in, a snapshot out. None of it is written down."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from moot.api.access import trust_local
from moot.api.access.trust_local import is_local
from moot.api.agent_bridge import posts
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.threads import councils
from moot.core.conversations import joining
from moot.core.errors import BodyTooLarge, ConversationClosed, NotYourName
from moot.core.events import iso
from moot.core.speaker import Speaker
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation, thread_id
from moot.core.text.names import is_person
from moot.core.threads.agent_bridge import handle
from moot.core.threads.presence import Here, State

#: bytes of what somebody tells of himself
MOST_DETAILS = 8192

Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Sign(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """A sign of life: who says no more listens. Without details those from before stay."""

    state: State = "listening"
    from_: Name | UnsetType = UNSET
    details: Any = None


async def read(request: Request) -> Reply:
    run, talk = await councils.place(request)
    desk = request.services.host.presence
    now = desk.now()
    found = {
        handle(name): shown(here, now, desk.ttl_ms)
        for name, here in desk.snapshot(run.run_id, talk).items()
    }
    present = sorted(found.items(), key=lambda each: (each[1]["stale"], each[0]))
    body = {
        "thread": thread_id(run, talk),
        "ttl_seconds": desk.ttl_ms // 1000,
        "participants": [{"id": name, **here} for name, here in present],
        "presence": dict(present),
    }
    return Reply(body, 200, {"Cache-Control": "no-store"})


def shown(here: Here, now: int, ttl_ms: int) -> dict[str, Any]:
    return {
        "state": here.shown(now, ttl_ms),
        "updated_at": iso(here.at),
        "details": here.details,
        "stale": here.stale(now, ttl_ms),
    }


async def sign(request: Request) -> Reply:
    run, talk = await councils.place_to_act(request)
    return await posts.nested(request, lambda: _signed(request, run.run_id, talk))


async def _signed(request: Request, run_id: str, talk: Conversation) -> Reply:
    if not talk.open:
        raise ConversationClosed("The conversation is closed.")
    asked = await trust_local.read(request, Sign)
    if len(await request.body()) > MOST_DETAILS:
        raise BodyTooLarge(f"A sign of life has at most {MOST_DETAILS} bytes.", field="details")
    who, name = posts.speaks(request, asked.from_)
    check_here(request, talk, who, name)
    desk = request.services.host.presence
    # who is muted is here, and tells nothing
    muted = thread_controls.is_muted(talk.state, name, request.services.clock.millis())
    details = None if muted else asked.details
    here = desk.set((run_id, talk.conversation_id), name, asked.state, details)
    told = shown(here, desk.now(), desk.ttl_ms)
    about = {"thread": request.params["thread_id"], "participant": handle(name), **told}
    return Reply({"received": True, "presence": about})


def check_here(request: Request, talk: Conversation, who: Speaker, name: str) -> None:
    """Only who takes part is here; a program that the host trusts may listen before it does."""
    if not who.admin and name != who.person and name not in who.names:
        raise NotYourName(name, list(who.names))
    joining.check(name, "from")
    if is_person(name) or is_local(request.caller):
        return
    if (talk.roster is not None and name not in talk.roster) or joining.needs_seat(talk, name):
        raise joining.not_invited(talk, name)


ENDPOINTS = (
    Endpoint(
        method="GET", path="/threads/{thread_id}/presence", call=read, scope="runs:read",
        local=True, joined=True, errors=(404,), summary="Who is here in a thread just now",
    ),
    Endpoint(
        method="POST", path="/threads/{thread_id}/presence", call=sign,
        scope="approvals:respond", body=Sign, local=True, joined=True,
        errors=(404, 409, 422), summary="Say that you are here, and what you are doing",
    ),
)  # fmt: skip
