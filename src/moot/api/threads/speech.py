"""Words as they are spoken, and the stream that carries them beside the log."""

from typing import Annotated

from msgspec import Meta, Struct

from moot.api.http.request import SSE, Endpoint, Reply, Request, Stream
from moot.api.interrupts import routes
from moot.api.runs.event_stream import Reader
from moot.api.runs.events import cursor
from moot.api.threads import councils
from moot.core.conversations import turns
from moot.core.errors import ConversationClosed, MootError, NotFound
from moot.core.state.conversation import Conversation, thread_id
from moot.core.text.names import full_name
from moot.engine.streams.speech import Speech

UPDATES = frozenset({"updates"})

Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Begin(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Who is about to speak; without a speaker the person behind the key."""

    speaker_id: Name | None = None
    to: Name | None = None


class Words(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    delta: Annotated[str, Meta(min_length=1, max_length=65_536)]


async def begin(request: Request) -> Reply:
    run, talk = await councils.place(request)
    asked = await request.read(Begin)
    said = {"role": "user"}
    if asked.speaker_id is not None:
        said = {"role": "agent", "speakerId": asked.speaker_id}
    role, speaker = _floor(request, talk, said)
    told = {"role": role, "from": speaker}
    if asked.speaker_id is not None:
        told["speakerId"] = speaker
    if asked.to not in (None, "all"):
        told["to"] = full_name(asked.to)
    speeches = request.services.host.speeches
    speech = speeches.begin(run.run_id, talk.conversation_id, request.caller.id, told)
    body = {"speechId": speech.speech_id, "threadId": thread_id(run, talk), **told}
    return Reply(body, 201)


def _floor(request: Request, talk: Conversation, said: dict[str, str]) -> tuple[str, str]:
    if not talk.open:
        name = request.params["thread_id"]
        raise ConversationClosed("The conversation is closed.", threadId=name)
    at = request.services.clock.millis()
    return turns.floor(talk, said, routes.speaker(request), at)


async def _speech(request: Request) -> tuple[Speech, Conversation]:
    """The caller's own speech in this very conversation."""
    run, talk = await councils.place(request)
    name = request.params["speech_id"]
    speech = request.services.host.speeches.mine(run.run_id, name, request.caller.id)
    if speech.conversation_id != talk.conversation_id:
        raise NotFound("No such speech is under way; begin one.", speechId=name)
    return speech, talk


async def say(request: Request) -> Reply:
    """Who may not speak any more is heard no longer."""
    speech, talk = await _speech(request)
    asked = await request.read(Words)
    speeches = request.services.host.speeches
    try:
        _floor(request, talk, speech.who)
    except MootError:
        speeches.over(speech.run_id, speech.speech_id, speech.principal)
        raise
    speeches.say(speech.run_id, speech.speech_id, speech.principal, asked.delta)
    return Reply(None, 204)


async def stop(request: Request) -> Reply:
    speech, _ = await _speech(request)
    request.services.host.speeches.end(speech.run_id, speech.speech_id, speech.principal)
    return Reply(None, 204)


async def stream(request: Request) -> Stream:
    """What is logged, with ids to go on from, and what is being spoken, without."""
    run, _ = await councils.place(request)
    head = await request.services.host.view(run.tenant, run.run_id)
    after = cursor(request.header("last-event-id"))
    return Stream(Reader(request, head, UPDATES, 0, after, spoken=True).write)


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}/speech", call=begin,
        scope="approvals:respond", body=Begin, status=201,
        summary="Begin to speak: listeners see who", errors=(404, 409, 422), joined=True,
    ),
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}/speech/{speech_id}", call=say,
        scope="approvals:respond", body=Words, status=204,
        summary="Words of a turn under way; they are not kept", errors=(404, 409),
        joined=True,
    ),
    Endpoint(
        method="DELETE", path="/v1/host/moot/threads/{thread_id}/speech/{speech_id}", call=stop,
        scope="approvals:respond", status=204, summary="Stop speaking without taking a turn",
        errors=(404,), joined=True,
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}/stream", call=stream,
        scope="runs:read", media=SSE, errors=(404,), joined=True,
        summary="The thread as it happens, with the words being spoken",
    ),
)  # fmt: skip
