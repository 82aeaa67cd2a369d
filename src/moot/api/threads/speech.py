"""Speech: words of a turn while they are spoken, and their stream.

Spoken words travel beside the log and are not stored.
"""

from typing import Annotated

from msgspec import Meta, Struct

from moot.api.access.auth import speaker_from_request
from moot.api.http.request import SSE, Endpoint, Reply, Request, Stream
from moot.api.runs.event_stream import RunEventStream
from moot.api.runs.events import parse_cursor
from moot.api.threads.lookup import find_thread
from moot.core.conversations import turns
from moot.core.errors import ConversationClosed, MootError, NotFound
from moot.core.state.conversation import Conversation, thread_id
from moot.core.text.names import full_name
from moot.engine.streams.speech import OpenSpeech

UPDATES = frozenset({"updates"})

Name = Annotated[str, Meta(min_length=1, max_length=256)]


class BeginSpeechBody(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The coming speaker; by default the person behind the key."""

    speaker_id: Name | None = None
    to: Name | None = None


class SpeechDelta(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    delta: Annotated[str, Meta(min_length=1, max_length=65_536)]


async def begin_speech(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    body = await request.read(BeginSpeechBody)
    turn = {"role": "user"}
    if body.speaker_id is not None:
        turn = {"role": "agent", "speakerId": body.speaker_id}
    role, speaker = _check_may_speak(request, conversation, turn)
    fields = {"role": role, "from": speaker}
    if body.speaker_id is not None:
        fields["speakerId"] = speaker
    if body.to not in (None, "all"):
        fields["to"] = full_name(body.to)
    speeches = request.services.host.speeches
    speech = speeches.begin(run.run_id, conversation.conversation_id, request.caller.id, fields)
    answer = {"speechId": speech.speech_id, "threadId": thread_id(run, conversation), **fields}
    return Reply(answer, 201)


def _check_may_speak(
    request: Request, conversation: Conversation, turn: dict[str, str]
) -> tuple[str, str]:
    if not conversation.open:
        name = request.params["thread_id"]
        raise ConversationClosed("The conversation is closed.", threadId=name)
    at = request.services.clock.millis()
    return turns.check_speaker(conversation, turn, speaker_from_request(request), at)


async def _own_speech(request: Request) -> tuple[OpenSpeech, Conversation]:
    """Return the caller's own speech in this conversation."""
    run, conversation = await find_thread(request)
    name = request.params["speech_id"]
    speech = request.services.host.speeches.mine(run.run_id, name, request.caller.id)
    if speech.conversation_id != conversation.conversation_id:
        raise NotFound("No such speech is under way; begin one.", speechId=name)
    return speech, conversation


async def add_words(request: Request) -> Reply:
    """Pass words on to listeners.

    When the speaker may not speak any more, end the speech and raise.
    """
    speech, conversation = await _own_speech(request)
    body = await request.read(SpeechDelta)
    speeches = request.services.host.speeches
    try:
        _check_may_speak(request, conversation, speech.who)
    except MootError:
        speeches.over(speech.run_id, speech.speech_id, speech.principal)
        raise
    speeches.say(speech.run_id, speech.speech_id, speech.principal, body.delta)
    return Reply(None, 204)


async def stop_speech(request: Request) -> Reply:
    speech, _ = await _own_speech(request)
    request.services.host.speeches.end(speech.run_id, speech.speech_id, speech.principal)
    return Reply(None, 204)


async def stream_thread(request: Request) -> Stream:
    """Stream logged events with ids and spoken words without."""
    run, _ = await find_thread(request)
    head = await request.services.host.view(run.tenant, run.run_id)
    after = parse_cursor(request.header("last-event-id"))
    return Stream(RunEventStream(request, head, UPDATES, 0, after, spoken=True).write)


SPEECH_ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}/speech", call=begin_speech,
        scope="approvals:respond", body=BeginSpeechBody, status=201,
        summary="Begin to speak: listeners see who", errors=(404, 409, 422), joined=True,
    ),
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}/speech/{speech_id}", call=add_words,
        scope="approvals:respond", body=SpeechDelta, status=204,
        summary="Words of a turn under way; they are not kept", errors=(404, 409),
        joined=True,
    ),
    Endpoint(
        method="DELETE", path="/v1/host/moot/threads/{thread_id}/speech/{speech_id}",
        call=stop_speech,
        scope="approvals:respond", status=204, summary="Stop speaking without taking a turn",
        errors=(404,), joined=True,
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}/stream", call=stream_thread,
        scope="runs:read", media=SSE, errors=(404,), joined=True,
        summary="The thread as it happens, with the words being spoken",
    ),
)  # fmt: skip
