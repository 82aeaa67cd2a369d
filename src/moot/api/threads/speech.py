"""Speech: words of a turn while they are spoken, and their stream.

Spoken words travel beside the log and are not stored.
"""

from msgspec import convert

from moot.api.access.auth import speaker_from_request
from moot.api.http.request import SSE, Endpoint, Reply, Request, Stream
from moot.api.runs.event_stream import RunEventStream
from moot.api.runs.events import parse_cursor
from moot.api.threads.lookup import find_thread
from moot.core.conversations import turns
from moot.core.errors import ConversationClosed, MootError, NotFound
from moot.core.payloads.conversations import Turn
from moot.core.state.conversation import Conversation, thread_id
from moot.core.text.names import full_name
from moot.engine.streams.speech import OpenSpeech
from moot.wire.threads import BeginSpeech, SpeechDelta, StartedSpeech

UPDATES = frozenset({"updates"})


async def begin_speech(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    body = await request.read(BeginSpeech)
    turn = {"role": "user"}
    if body.speaker_id is not None:
        turn = {"role": "agent", "speakerId": body.speaker_id}
    role, speaker = _check_may_speak(request, conversation, turn)
    fields = {"role": role, "from": speaker}
    if body.speaker_id is not None:
        fields["speakerId"] = speaker
    if body.to not in (None, "all"):
        fields["to"] = full_name(body.to)
    speeches = request.host.speeches
    speech = speeches.begin(run.run_id, conversation.conversation_id, request.caller.id, fields)
    started = StartedSpeech(
        speech_id=speech.speech_id,
        thread_id=thread_id(run, conversation),
        role=role,
        speaker=speaker,
        speaker_id=fields.get("speakerId"),
        to=fields.get("to"),
    )
    return Reply(started, 201)


def _check_may_speak(
    request: Request, conversation: Conversation, turn: dict[str, str]
) -> tuple[str, str]:
    if not conversation.open:
        name = request.params["thread_id"]
        raise ConversationClosed("The conversation is closed.", threadId=name)
    speaker, at = speaker_from_request(request), request.now()
    return turns.check_speaker(conversation, convert(turn, Turn), speaker, at)


async def _own_speech(request: Request) -> tuple[OpenSpeech, Conversation]:
    """Return the caller's own speech in this conversation."""
    run, conversation = await find_thread(request)
    name = request.params["speech_id"]
    speech = request.host.speeches.mine(run.run_id, name, request.caller.id)
    if speech.conversation_id != conversation.conversation_id:
        raise NotFound("No such speech is under way; begin one.", speechId=name)
    return speech, conversation


async def add_words(request: Request) -> Reply:
    """Pass words on to listeners.

    When the speaker may not speak any more, end the speech and raise.
    """
    speech, conversation = await _own_speech(request)
    body = await request.read(SpeechDelta)
    speeches = request.host.speeches
    try:
        _check_may_speak(request, conversation, speech.who)
    except MootError:
        speeches.over(speech.run_id, speech.speech_id, speech.principal)
        raise
    speeches.say(speech.run_id, speech.speech_id, speech.principal, body.delta)
    return Reply(None, 204)


async def stop_speech(request: Request) -> Reply:
    speech, _ = await _own_speech(request)
    request.host.speeches.end(speech.run_id, speech.speech_id, speech.principal)
    return Reply(None, 204)


async def stream_thread(request: Request) -> Stream:
    """Stream logged events with ids and spoken words without."""
    run, _ = await find_thread(request)
    head = await request.host.view(run.tenant, run.run_id)
    after = parse_cursor(request.header("last-event-id"))
    return Stream(RunEventStream(request, head, UPDATES, 0, after, spoken=True).write)


SPEECH_ENDPOINTS = (
    Endpoint("POST", "/v1/host/moot/threads/{thread_id}/speech", begin_speech,
             scope="approvals:respond", joined=True, body=BeginSpeech, status=201,
             answer=StartedSpeech),
    Endpoint("POST", "/v1/host/moot/threads/{thread_id}/speech/{speech_id}", add_words,
             scope="approvals:respond", joined=True, body=SpeechDelta, status=204),
    Endpoint("DELETE", "/v1/host/moot/threads/{thread_id}/speech/{speech_id}", stop_speech,
             scope="approvals:respond", joined=True, status=204),
    Endpoint("GET", "/v1/host/moot/threads/{thread_id}/stream", stream_thread, scope="runs:read",
             joined=True, media=SSE),
)  # fmt: skip
