"""Controls on their way to a conversation: whichever route they came by, they are made here."""

import hashlib
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.api.access.auth import is_guests, keep_here, keep_open
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.interrupts import routes
from moot.api.threads import councils
from moot.core.conversations import joining
from moot.core.speaker import Speaker
from moot.core.state.conversation import Conversation, thread_id, title_of
from moot.core.state.thread_controls import meant
from moot.core.text.names import full_name
from moot.core.threads.decide import Control, warnings

Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Steer(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}
):
    content: dict[str, Any]
    from_: Name | UnsetType = UNSET


async def steer(request: Request) -> Reply:
    run, talk = await councils.place(request)
    asked = await request.read(Steer)
    sender = None if asked.from_ is UNSET else full_name(asked.from_)
    content = meant(asked.content)
    command = await control(request, talk, content, sender=sender)
    said = warnings(talk, content, command.at)
    reply = await councils.act(request, run, talk, command, said)
    await councils.dismiss(request, run, talk, content)
    return reply


async def control(
    request: Request,
    talk: Conversation,
    content: Any,
    *,
    who: Speaker | None = None,
    sender: str | None = None,
    lenient: bool = False,
    message_id: str | None = None,
) -> Control:
    """What somebody asks of a conversation, once it is certain that his key is good for it."""
    keep_open(request.caller, content)
    told, known = await _introduced(request, content)
    return Control(
        node_id=talk.node_id,
        content=told,
        known=known,
        who=routes.speaker(request) if who is None else who,
        at=request.services.clock.millis(),
        sender=sender,
        lenient=lenient,
        message_id=message_id,
        digest="" if message_id is None else digest(sender, content),
        ends=not is_guests(request.caller),
    )


def digest(sender: str | None, content: Any) -> str:
    """By which the same control is known again."""
    said = msgspec.json.encode([sender, content], order="sorted")
    return hashlib.sha256(said).hexdigest()


async def _introduced(request: Request, content: Any) -> tuple[Any, dict[str, Any]]:
    """Who is invited is known by name, role and model when it is an agent of this host; a thread
    that is linked is one of this tenant's."""
    if not isinstance(content, dict):
        return content, {}
    if "link" in content:
        content = {**content, "link": await _linked(request, content["link"])}
    asked = content.get("invite")
    asked = {"participant_id": asked} if isinstance(asked, str) else asked
    if not isinstance(asked, dict) or not joining.is_guest(asked.get("participant_id")):
        return content, {}
    name = full_name(asked["participant_id"])
    known = await councils.profiles_of(request, [name])
    return {**content, "invite": {**asked, "outside": name not in known}}, known.get(name, {})


async def _linked(request: Request, asked: Any) -> Any:
    """A link tells how the other thread is called and, one day, what came of it: whoever may not
    read that one does not link it."""
    name = asked.get("thread") if isinstance(asked, dict) else asked
    if not isinstance(name, str):
        return asked
    keep_here(request.caller, name)
    run, talk = await councils.place_of(request, name)
    return {"thread": thread_id(run, talk), "title": title_of(run, talk)}


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}/controls", call=steer,
        scope="approvals:respond", body=Steer,
        summary="Steer a thread: mute, pause, prod, invite", errors=(404, 409), joined=True,
    ),
)  # fmt: skip
