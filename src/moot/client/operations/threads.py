"""Councils and threads: every call there is."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from moot.client.http.operation import Again, Sent, given, operation, silent, sometimes
from moot.client.operations.runs import SSE
from moot.wire import threads
from moot.wire.runs import Data

Format = Literal["md", "html", "json", "bundle"]
CONTROLS = "POST /v1/host/moot/threads/{thread_id}/controls"


class Led(TypedDict, total=False):
    """How a council is led; with a moderator, a policy or a budget the host gives the floor."""

    title: str | None
    moderator: str | None
    policy: Mapping[str, Any] | None
    budget: Mapping[str, Any] | None
    open: bool


@operation("POST /v1/host/moot/councils", threads.Convened)
def convene(
    question: str,
    participants: Sequence[str | Mapping[str, Any]] = (),
    *,
    title: str | None = None,
    moderator: str | None = None,
    policy: Mapping[str, Any] | None = None,
    budget: Mapping[str, Any] | None = None,
    open: bool = False,
) -> Sent:
    """Convene a council. With a moderator, a policy or a budget the host gives the floor."""
    body = given(title=title, moderator=moderator, policy=policy, budget=budget)
    roster = {"participants": list(participants), "open": open}
    return Sent(body={"question": question, **roster, **body})


@operation("GET /v1/host/moot/threads", threads.ThreadPage)
def list_(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    prefix: str | None = None,
    archived: bool | None = None,
    about: bool | None = None,
    order: Literal["newest", "active"] | None = None,
) -> Sent:
    """Threads, newest first, or those that were used last; with ``archived`` those that were put
    away, with ``about`` also who takes part and what was said last."""
    query = {"limit": limit, "cursor": cursor, "prefix": prefix, "archived": archived}
    return Sent(query={**query, "about": about, "order": order})


@operation("POST /v1/host/moot/threads", threads.ThreadView)
def begin(
    title: str,
    participants: Sequence[str | Mapping[str, Any]] = (),
    *,
    opening: str | None = None,
    policy: Mapping[str, Any] | None = None,
) -> Sent:
    """Begin a thread; whoever is named may take part from the beginning."""
    body = {"title": title, "participants": list(participants)}
    return Sent(body={**body, **given(opening=opening, policy=policy)})


@operation("GET /v1/host/moot/threads/{thread_id}", threads.ThreadView)
def get(thread_id: str) -> Sent:
    """A thread: who takes part, and how it is steered."""
    return Sent(thread_id)


@operation(CONTROLS, threads.ThreadView)
def control(thread_id: str, content: Mapping[str, Any], *, sender: str | None = None) -> Sent:
    """Steer a thread, as docs/councils.md has it: mute, pause, prod, invite."""
    return Sent(thread_id, body={"content": dict(content), **given(**{"from": sender})})


@operation(CONTROLS, threads.ThreadView)
def mute(thread_id: str, *names: str, seconds: int | None = None) -> Sent:
    """Their turns are refused, for so long or until they are unmuted."""
    content: Any = list(names) if seconds is None else {"targets": list(names), "seconds": seconds}
    return Sent(thread_id, body={"content": {"mute": content}})


@operation(CONTROLS, threads.ThreadView)
def unmute(thread_id: str, *names: str) -> Sent:
    """They may speak again."""
    return Sent(thread_id, body={"content": {"unmute": list(names)}})


@operation(CONTROLS, threads.ThreadView)
def pause(thread_id: str) -> Sent:
    """Only people speak."""
    return Sent(thread_id, body={"content": {"pause": {"on": True}}})


@operation(CONTROLS, threads.ThreadView)
def resume(thread_id: str) -> Sent:
    """Agents speak again."""
    return Sent(thread_id, body={"content": {"pause": {"on": False}}})


@operation(CONTROLS, threads.ThreadView)
def prod(thread_id: str, *names: str) -> Sent:
    """Ask them to speak once."""
    return Sent(thread_id, body={"content": {"prod": list(names)}})


@operation(CONTROLS, threads.ThreadView)
def invite(thread_id: str, name: str, *, profile: Mapping[str, Any] | None = None) -> Sent:
    """Into an open roster only."""
    who = {"participant_id": name, **given(profile=profile)}
    return Sent(thread_id, body={"content": {"invite": who}})


@operation(CONTROLS, threads.ThreadView)
def uninvite(thread_id: str, name: str) -> Sent:
    """Out of an open roster."""
    return Sent(thread_id, body={"content": {"uninvite": {"participant_id": name}}})


@operation("POST /v1/host/moot/threads/{thread_id}:close", threads.ThreadView)
def close(
    thread_id: str,
    decision: str | Mapping[str, Any] | None = None,
    *,
    outcome: Any = None,
    turn: Mapping[str, Any] | None = None,
    vote: bool | None = None,
) -> Sent:
    """Close a thread, with a decision or without; ``turn`` is the last word. With ``vote`` the
    members vote on the decision first, and it is closed when they have."""
    return Sent(thread_id, body=given(decision=decision, outcome=outcome, turn=turn, vote=vote))


@operation("GET /v1/host/moot/threads/{thread_id}/events", threads.ThreadEvents)
def events(
    thread_id: str,
    *,
    after: int | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> Sent:
    """What was said and done, controls in sentences and how to take them back; from a sequence on,
    or the newest ``before`` one."""
    return Sent(thread_id, query={"after": after, "before": before, "limit": limit})


@operation("POST /v1/host/moot/threads/{thread_id}:rename", threads.ThreadView)
def rename(thread_id: str, title: str) -> Sent:
    """Give it another name."""
    return Sent(thread_id, body={"title": title})


@operation("POST /v1/host/moot/threads/{thread_id}/links", threads.Linked)
def link(thread_id: str, other: str) -> Sent:
    """Point to another thread that is there."""
    return Sent(thread_id, body={"thread": other})


@operation("POST /v1/host/moot/threads/{thread_id}/links", threads.Linked)
def side(
    thread_id: str,
    title: str,
    participants: Sequence[str | Mapping[str, Any]] = (),
    *,
    opening: str | None = None,
) -> Sent:
    """Begin a side thread; when it is closed, what came of it is told here."""
    body = {"title": title, "participants": list(participants)}
    return Sent(thread_id, body={**body, **given(opening=opening)})


@operation("POST /v1/host/moot/threads/{thread_id}:archive", threads.ThreadView)
def archive(thread_id: str) -> Sent:
    """Put it away: lists leave it out."""
    return Sent(thread_id)


@operation("POST /v1/host/moot/threads/{thread_id}:unarchive", threads.ThreadView)
def unarchive(thread_id: str) -> Sent:
    """Take it out again."""
    return Sent(thread_id)


@operation("POST /v1/host/moot/threads/{thread_id}:reopen", threads.ThreadView)
def reopen(thread_id: str, *, note: str | None = None) -> Sent:
    """Go on with a closed thread in a new one that has its history."""
    return Sent(thread_id, body=given(note=note))


@operation("POST /v1/host/moot/threads/{thread_id}/join", threads.JoinToken, Again.ONCE)
def join(
    thread_id: str,
    name: str,
    *,
    seconds: int | None = None,
    profile: Mapping[str, Any] | None = None,
    seat: str | None = None,
) -> Sent:
    """Make a key for one participant of one thread. It is shown once, and so is asked for once.
    ``seat``: only while that is his."""
    more = given(expiresInSeconds=seconds, profile=profile, seat=seat)
    return Sent(thread_id, body={"as": name, **more})


@operation("POST /v1/host/moot/threads/{thread_id}/seats", threads.Seat)
def take_seat(thread_id: str, name: str, seat: str, *, replace: bool | None = None) -> Sent:
    """Be the one program that has a name: ``seat`` is its own random word for that. Refused with
    ``seat_taken`` while another one is here, unless it takes its place."""
    return Sent(thread_id, body={"as": name, "seat": seat, **given(replace=replace)})


@silent("DELETE /v1/host/moot/threads/{thread_id}/seats/{seat}")
def leave_seat(thread_id: str, seat: str) -> Sent:
    """Have the name no longer."""
    return Sent(thread_id, seat)


@sometimes("GET /v1/host/moot/threads/{thread_id}/next", threads.Due)
def next_(
    thread_id: str, *, after: int | None = None, wait: int = 30, name: str | None = None
) -> Sent:
    """The next thing a participant is asked; None when nothing comes in time. Without ``after``
    what is not answered yet, with it what comes after that."""
    query = {"after": after, "wait": wait, "as": name}
    return Sent(thread_id, query=query, seconds=float(wait))


@operation("GET /v1/host/moot/threads/{thread_id}/export", bytes)
def export(thread_id: str, form: Format = "md") -> Sent:
    """The minutes of a thread, or with ``bundle`` all of it as one file."""
    return Sent(thread_id, query={"format": form}, accept="*/*", seconds=60.0)


@operation("GET /v1/host/moot/threads/{thread_id}/export", threads.Minutes)
def minutes(thread_id: str) -> Sent:
    """The minutes as data: question, roster, decision, and every turn."""
    return Sent(thread_id, query={"format": "json"})


@operation("POST /v1/host/moot/threads:import", threads.Imported)
def import_(bundle: bytes) -> Sent:
    """Take in a thread that was exported elsewhere."""
    return Sent(body=bundle, seconds=60.0)


@operation("GET /v1/host/moot/threads/{thread_id}/stream", bytes)
def stream(thread_id: str) -> Sent:
    """The thread as it happens, with the words being spoken."""
    return Sent(thread_id, accept=SSE)


@operation("POST /v1/host/moot/threads/{thread_id}/speech", threads.Begun, Again.ONCE)
def begin_speech(thread_id: str, *, speaker: str | None = None, to: str | None = None) -> Sent:
    """Begin to speak: listeners see who."""
    return Sent(thread_id, body=given(speakerId=speaker, to=to))


@silent("POST /v1/host/moot/threads/{thread_id}/speech/{speech_id}", Again.ONCE)
def say_words(thread_id: str, speech_id: str, words: str) -> Sent:
    """Words of a turn under way; they are not kept."""
    return Sent(thread_id, speech_id, body={"delta": words})


@silent("DELETE /v1/host/moot/threads/{thread_id}/speech/{speech_id}", Again.ONCE)
def stop_speech(thread_id: str, speech_id: str) -> Sent:
    """Stop speaking without taking a turn."""
    return Sent(thread_id, speech_id)


def turn(
    content: Any,
    to: str | None = None,
    speaker: str | None = None,
    speech_id: str | None = None,
) -> Data:
    """A turn as the conversation takes it; without a speaker, that of the person of the key."""
    who = {"role": "user"} if speaker is None else {"role": "agent", "speakerId": speaker}
    if speaker is not None and (speaker == "user" or speaker.startswith("user:")):
        who = {"role": "user", "from": speaker}
    meta = None if speech_id is None else {"speechId": speech_id}
    said = {**who, "content": content, **given(to=to, meta=meta)}
    return {"operation": "exchange", "turn": said}
