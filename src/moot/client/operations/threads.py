"""Operations on threads and councils."""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, Literal, TypedDict

from msgspec import UNSET

from moot.client.http.operation import (
    RequestParts,
    Retry,
    operation,
    operation_with_optional_answer,
    without_none,
)
from moot.client.operations.runs import SSE
from moot.wire import threads
from moot.wire.councils import ConvenedCouncil
from moot.wire.minutes import MinutesView

ExportFormat = Literal["md", "html", "json", "bundle"]
CONTROLS = "POST /v1/host/moot/threads/{thread_id}/controls"


class CouncilOptions(TypedDict, total=False):
    """Options of a council. With a moderator, policy or budget the host leads it."""

    title: str | None
    moderator: str | None
    policy: Mapping[str, Any] | None
    budget: Mapping[str, Any] | None
    open: bool


@operation("POST /v1/host/moot/councils", ConvenedCouncil)
def convene_council(
    question: str,
    participants: Sequence[str | Mapping[str, Any]] = (),
    *,
    title: str | None = None,
    moderator: str | None = None,
    policy: Mapping[str, Any] | None = None,
    budget: Mapping[str, Any] | None = None,
    open: bool = False,
) -> RequestParts:
    """Convene a council. With a moderator, policy or budget the host leads it."""
    body = without_none(title=title, moderator=moderator, policy=policy, budget=budget)
    roster = {"participants": list(participants), "open": open}
    return RequestParts(body={"question": question, **roster, **body})


@operation("GET /v1/host/moot/threads", threads.ThreadList)
def list_threads(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    prefix: str | None = None,
    archived: bool | None = None,
    about: bool | None = None,
    order: Literal["newest", "active"] | None = None,
) -> RequestParts:
    """List threads, newest or most recently used first.

    ``archived`` lists archived threads; ``about`` adds participants and the last turn.
    """
    query = {"limit": limit, "cursor": cursor, "prefix": prefix, "archived": archived}
    return RequestParts(query={**query, "about": about, "order": order})


@operation("POST /v1/host/moot/threads", threads.ThreadView)
def begin_thread(
    title: str,
    participants: Sequence[str | Mapping[str, Any]] = (),
    *,
    opening: str | None = None,
    policy: Mapping[str, Any] | None = None,
) -> RequestParts:
    """Begin a thread with these participants."""
    body = {"title": title, "participants": list(participants)}
    return RequestParts(body={**body, **without_none(opening=opening, policy=policy)})


@operation("GET /v1/host/moot/threads/{thread_id}", threads.ThreadView)
def get_thread(thread_id: str) -> RequestParts:
    """Get a thread with its participants and controls."""
    return RequestParts(thread_id)


@operation(CONTROLS, threads.ThreadView)
def control_thread(
    thread_id: str, content: Mapping[str, Any], *, sender: str | None = None
) -> RequestParts:
    """Send a control: mute, pause, prod or invite (docs/councils.md)."""
    speaker = UNSET if sender is None else sender
    return RequestParts(
        thread_id, body=threads.ControlThread(content=dict(content), sender=speaker)
    )


def _control(thread_id: str, **content: object) -> RequestParts:
    return RequestParts(thread_id, body=threads.ControlThread(content=content))


@operation(CONTROLS, threads.ThreadView)
def mute_participants(thread_id: str, *names: str, seconds: int | None = None) -> RequestParts:
    """Mute participants, for ``seconds`` or until they are unmuted."""
    content: Any = list(names) if seconds is None else {"targets": list(names), "seconds": seconds}
    return _control(thread_id, mute=content)


@operation(CONTROLS, threads.ThreadView)
def unmute_participants(thread_id: str, *names: str) -> RequestParts:
    """Let muted participants speak again."""
    return _control(thread_id, unmute=list(names))


@operation(CONTROLS, threads.ThreadView)
def pause_thread(thread_id: str) -> RequestParts:
    """Pause the thread, so that only people speak."""
    return _control(thread_id, pause={"on": True})


@operation(CONTROLS, threads.ThreadView)
def resume_thread(thread_id: str) -> RequestParts:
    """Resume the thread, so that agents speak again."""
    return _control(thread_id, pause={"on": False})


@operation(CONTROLS, threads.ThreadView)
def prod_participants(thread_id: str, *names: str) -> RequestParts:
    """Ask participants to speak once."""
    return _control(thread_id, prod=list(names))


@operation(CONTROLS, threads.ThreadView)
def invite_participant(
    thread_id: str, name: str, *, profile: Mapping[str, Any] | None = None
) -> RequestParts:
    """Invite a participant. The roster must be open."""
    return _control(thread_id, invite={"participant_id": name, **without_none(profile=profile)})


@operation(CONTROLS, threads.ThreadView)
def uninvite_participant(thread_id: str, name: str) -> RequestParts:
    """Remove a participant from an open roster."""
    return _control(thread_id, uninvite={"participant_id": name})


@operation("POST /v1/host/moot/threads/{thread_id}:close", threads.ThreadView)
def close_thread(
    thread_id: str,
    decision: str | Mapping[str, Any] | None = None,
    *,
    outcome: Any = None,
    turn: Mapping[str, Any] | None = None,
    vote: bool | None = None,
) -> RequestParts:
    """Close a thread, with or without a decision; ``turn`` is its last turn.

    With ``vote`` the members vote on the decision first, and the thread closes after the vote.
    """
    body = threads.CloseThread(
        decision=dict(decision) if isinstance(decision, Mapping) else decision,
        outcome=outcome,
        turn=None if turn is None else dict(turn),
        vote=bool(vote),
    )
    return RequestParts(thread_id, body=body)


@operation("GET /v1/host/moot/threads/{thread_id}/events", threads.ThreadEventList)
def list_thread_events(
    thread_id: str, *, after: int | None = None, before: int | None = None, limit: int | None = None
) -> RequestParts:
    """List events after a sequence, or the newest ones ``before`` a sequence.

    Controls come as sentences, together with the controls that undo them.
    """
    return RequestParts(thread_id, query={"after": after, "before": before, "limit": limit})


@operation("POST /v1/host/moot/threads/{thread_id}:rename", threads.ThreadView)
def rename_thread(thread_id: str, title: str) -> RequestParts:
    """Rename a thread."""
    return RequestParts(thread_id, body=threads.RenameThread(title=title))


@operation("POST /v1/host/moot/threads/{thread_id}/links", threads.LinkedThread)
def link_thread(thread_id: str, other: str) -> RequestParts:
    """Link another thread."""
    return RequestParts(thread_id, body=threads.LinkThread(thread=other))


@operation("POST /v1/host/moot/threads/{thread_id}/links", threads.LinkedThread)
def begin_side_thread(
    thread_id: str,
    title: str,
    participants: Sequence[str | Mapping[str, Any]] = (),
    *,
    opening: str | None = None,
) -> RequestParts:
    """Begin a side thread. When it closes, the host posts its result here."""
    names = [each if isinstance(each, str) else dict(each) for each in participants]
    body = threads.LinkThread(title=title, participants=names, opening=opening)
    return RequestParts(thread_id, body=body)


@operation("POST /v1/host/moot/threads/{thread_id}:archive", threads.ThreadView)
def archive_thread(thread_id: str) -> RequestParts:
    """Archive a thread, so that lists leave it out."""
    return RequestParts(thread_id)


@operation("POST /v1/host/moot/threads/{thread_id}:unarchive", threads.ThreadView)
def unarchive_thread(thread_id: str) -> RequestParts:
    """Take a thread out of the archive."""
    return RequestParts(thread_id)


@operation("POST /v1/host/moot/threads/{thread_id}:reopen", threads.ThreadView)
def reopen_thread(thread_id: str, *, note: str | None = None) -> RequestParts:
    """Continue a closed thread in a new one with the same history."""
    return RequestParts(thread_id, body=threads.ReopenThread(note=note))


@operation("POST /v1/host/moot/threads/{thread_id}/join", threads.JoinToken, Retry.ONCE)
def create_join_key(
    thread_id: str,
    name: str,
    *,
    seconds: int | None = None,
    profile: Mapping[str, Any] | None = None,
    seat: str | None = None,
) -> RequestParts:
    """Create a key for one participant of one thread. Only this answer contains it.

    With ``seat``, the server creates the key only if that seat holds the name.
    """
    body = threads.JoinThread(
        speaks_as=name,
        expires_in_seconds=threads.JOIN_SECONDS if seconds is None else seconds,
        profile=dict(profile or {}),
        seat=UNSET if seat is None else seat,
    )
    return RequestParts(thread_id, body=body)


@operation("POST /v1/host/moot/threads/{thread_id}/seats", threads.SeatView)
def take_seat(thread_id: str, name: str, seat: str, *, replace: bool | None = None) -> RequestParts:
    """Claim a participant's name for this program; ``seat`` is the program's random token.

    The server refuses with ``seat_taken`` while another program holds the name, unless
    ``replace`` is set.
    """
    body = threads.ClaimSeat(speaks_as=name, seat=seat, replace=bool(replace))
    return RequestParts(thread_id, body=body)


@operation("DELETE /v1/host/moot/threads/{thread_id}/seats/{seat}", NoneType)
def leave_seat(thread_id: str, seat: str) -> RequestParts:
    """Give up the claim to a name."""
    return RequestParts(thread_id, seat)


@operation_with_optional_answer("GET /v1/host/moot/threads/{thread_id}/next", threads.DueRequest)
def next_request(
    thread_id: str, *, after: int | None = None, wait: int = 30, name: str | None = None
) -> RequestParts:
    """Get the next request to a participant; None when none comes in time.

    Without ``after``, get the first unanswered one, else the first one after that sequence.
    """
    query = {"after": after, "wait": wait, "as": name}
    return RequestParts(thread_id, query=query, seconds=float(wait))


@operation("GET /v1/host/moot/threads/{thread_id}/export", bytes)
def export_thread(thread_id: str, form: ExportFormat = "md") -> RequestParts:
    """Export the minutes of a thread, or with ``bundle`` the whole thread as one file."""
    return RequestParts(thread_id, query={"format": form}, accept="*/*", seconds=60.0)


@operation("GET /v1/host/moot/threads/{thread_id}/export", MinutesView)
def get_minutes(thread_id: str) -> RequestParts:
    """Get the minutes as data: question, roster, decision and all turns."""
    return RequestParts(thread_id, query={"format": "json"})


@operation("POST /v1/host/moot/threads:import", threads.ImportedThread)
def import_thread(bundle: bytes) -> RequestParts:
    """Import a thread that was exported as a bundle."""
    return RequestParts(body=bundle, seconds=60.0)


@operation("GET /v1/host/moot/threads/{thread_id}/stream", bytes)
def stream_thread(thread_id: str) -> RequestParts:
    """Stream a thread, including the words of speech in progress."""
    return RequestParts(thread_id, accept=SSE)


@operation("POST /v1/host/moot/threads/{thread_id}/speech", threads.StartedSpeech, Retry.ONCE)
def begin_speech(
    thread_id: str, *, speaker: str | None = None, to: str | None = None
) -> RequestParts:
    """Announce a speech; listeners see the speaker."""
    return RequestParts(thread_id, body=threads.BeginSpeech(speaker_id=speaker, to=to))


@operation("POST /v1/host/moot/threads/{thread_id}/speech/{speech_id}", NoneType, Retry.ONCE)
def say_words(thread_id: str, speech_id: str, words: str) -> RequestParts:
    """Send words of a speech; the log does not keep them."""
    return RequestParts(thread_id, speech_id, body=threads.SpeechDelta(delta=words))


@operation("DELETE /v1/host/moot/threads/{thread_id}/speech/{speech_id}", NoneType, Retry.ONCE)
def stop_speech(thread_id: str, speech_id: str) -> RequestParts:
    """Stop speaking without taking a turn."""
    return RequestParts(thread_id, speech_id)


def exchange_value(
    content: Any, to: str | None = None, speaker: str | None = None, speech_id: str | None = None
) -> dict[str, object]:
    """Return the value that adds a turn; without a speaker it is the person of the key."""
    author = {"role": "user"} if speaker is None else {"role": "agent", "speakerId": speaker}
    if speaker is not None and (speaker == "user" or speaker.startswith("user:")):
        author = {"role": "user", "from": speaker}
    meta = None if speech_id is None else {"speechId": speech_id}
    turn = {**author, "content": content, **without_none(to=to, meta=meta)}
    return {"operation": "exchange", "turn": turn}
