"""What the log tells of conversations: turns, controls, and what members do with the floor.

A word that somebody said is a fact; who may say it, and what it leads to, is not.
"""

from collections.abc import Callable
from typing import Any

from moot.core import (
    agency,
    charging,
    conversation,
    handles,
    led,
    participating,
    patience,
    schemas,
    talking,
    thread,
)
from moot.core.commands import decide
from moot.core.conversation import Speaker
from moot.core.events import Event, NewEvent, event_id
from moot.core.ids import logical_invocation_id
from moot.core.leading import LEADING
from moot.core.participating import HOST, WakeEnded
from moot.core.participation import Wake
from moot.core.run import HANDLERS, Run
from moot.core.sides import LINKED, SideEnded
from moot.core.threads import Control
from moot.core.told import Impossible, Seen
from moot.core.waiting import Conversation

ANSWERED, HELD = "moot.participation.answered", "moot.turn.held"
SPOKEN, CONTROL, VOTE = "conversation.exchanged", "moot.thread.control", "moot.vote.called"

ORDER = ("invite", "uninvite", *LEADING)

#: what a member may have done with the floor by itself
OUTCOMES = ("spoke", "answered", "passed", "failed", "refused")


def talk_of(seen: Seen) -> Conversation:
    talk = seen.run.conversations.get(seen.its.id)
    said = seen.event.payload
    if talk is None or not talk.open:
        raise Impossible("impossible", "an open conversation", seen.event.type)
    if said.get("conversationId", talk.conversation_id) != talk.conversation_id:
        raise Impossible("payload", {"conversationId": talk.conversation_id}, said)
    return talk


def _turn(event: Event, talk: Conversation, key: str) -> dict[str, Any]:
    """A turn that could be said: the next one, in a name that has a seat."""
    said = event.payload
    turn: dict[str, Any] = said[key]
    if not said["turnIndex"] == turn["turnIndex"] == talk.turns + 1:
        raise Impossible("payload", {"turnIndex": talk.turns + 1}, said)
    speaker = turn.get("speakerId")
    if turn["role"] == "agent" and (
        turn["from"] != speaker or (talk.roster is not None and speaker not in talk.roster)
    ):
        raise Impossible("payload", {"roster": talk.roster}, turn)
    schema = talk.schema if turn["role"] != "system" else None
    if schema is not None and (wrong := schemas.problems(schema, turn["content"])):
        raise Impossible("payload", wrong[0], turn["content"])
    return turn


def exchanged(seen: Seen) -> list[NewEvent]:
    """A turn from outside, after the wakes that it ends."""
    talk = talk_of(seen)
    spoken = next(event for event in seen.rest if event.type != ANSWERED)
    turn = _turn(spoken, talk, "turn")
    given = seen.by(turn.get("via"))
    said = talking.taken(seen.run, seen.flow, seen.its, talk, turn, given)
    return [*participating.taken(seen.run, seen.its, said, seen.at), *said]


def closed(seen: Seen) -> list[NewEvent]:
    talk = talk_of(seen)
    turn = _turn(seen.event, talk, "finalTurn")
    end = conversation.closed(talk, seen.its, turn, seen.event.payload.get("outcome"))
    given = seen.by(turn.get("via"))
    return talking.closing(seen.run, seen.flow, seen.its, talk, end, given)


def linked(seen: Seen) -> list[NewEvent]:
    """Somebody has linked a thread, or one that was linked has ended."""
    said = seen.event.payload
    if said.get("closed") is not True:
        return steered(seen)
    talk_of(seen)
    given = SideEnded(
        node_id=seen.its.id, thread=said["threadId"], summary=said["summary"], at=seen.at
    )
    found = decide(seen.run, seen.flow, given)
    spoken = next((event for event in seen.rest if event.type == SPOKEN), None)
    if len(found) > 1 and spoken is not None:  # the time it was told at is its own
        found[1].payload["turn"]["ts"] = spoken.payload["turn"]["ts"]
    return found


# -- controls --------------------------------------------------------------------------------------


def steered(seen: Seen) -> list[NewEvent]:
    """Everything that one person said at once, as the control it was."""
    talk_of(seen)
    content: Any = {}
    sender = via = ""
    for event in _at_once(seen):
        if event.type == CONTROL and not isinstance(event.payload["content"], dict):
            content = event.payload["content"]
        else:
            content |= _words(event) or {}
        sender = str(event.payload.get("from", event.payload.get("by")))
        via = str(event.payload.get("via", via))
    who = Speaker(via, admin=True)
    given = Control(
        node_id=seen.its.id, content=content, who=who, at=seen.at, sender=sender, lenient=True
    )
    return decide(seen.run, seen.flow, given)


def _at_once(seen: Seen) -> list[Event]:
    """The events of one control: all have one cause, apart from answers to what was asked."""
    before = event_id(seen.run.run_id, talk_of(seen).last_seq)
    found: list[Event] = []
    until, last, admits = 1, -1, False
    for event in seen.rest:
        if event.type == CONTROL and not isinstance(event.payload["content"], dict):
            return found[:until] or [event]  # nothing is said with what is no control
        words = _words(event)
        if event.type == ANSWERED and not found:
            continue  # a vote takes away what was asked before
        if admits and event.type in (SPOKEN, "channel.written"):
            continue  # what was admitted is said with it
        if event.type == ANSWERED and event.payload.get("outcome") == "superseded":
            continue  # a vote takes away what was asked before it
        if words is None or (rank := _rank(event, words)) <= last:
            break
        found, last, admits = [*found, event], rank, admits or "admit" in words
        if event.type == "moot.tool.answered":
            continue
        if event.causation_id != before:
            break
        until = len(found)
    return found[:until]


def _rank(event: Event, words: dict[str, Any]) -> int:
    """In which order the words of one control are told."""
    return len(ORDER) if event.type == CONTROL else ORDER.index(next(iter(words)))


def _words(event: Event) -> dict[str, Any] | None:
    """The words of a control that an event tells of."""
    words = WORDS.get(event.type)
    return None if words is None else words(event.payload)


def _invited(said: dict[str, Any]) -> dict[str, Any]:
    asked = {"participant_id": said["participantId"], "profile": said["profile"]}
    return {"invite": {**asked, "outside": said.get("outside") is True}}


WORDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "moot.participant.joined": _invited,
    "moot.participant.left": lambda said: {"uninvite": said["participantId"]},
    "moot.thread.renamed": lambda said: {"rename": said["title"]},
    LINKED: lambda said: {"link": {"thread": said["threadId"], "title": said["title"]}},
    "moot.presence.changed": lambda said: {"presence": said["state"]},
    "moot.participation.continued": lambda said: {
        "continue": {"rounds": said["rounds"]} if "rounds" in said else True
    },
    VOTE: lambda said: {"vote": {"decision": said["decision"], "close": said["close"]}},
    "moot.participation.set": lambda said: {"participation": said["policy"]},
    "moot.turn.admitted": lambda said: {"admit": said["held"]},
    "moot.turn.dropped": lambda said: {"drop": said["held"]},
    "moot.tool.answered": lambda said: {"allow" if said["allowed"] else "deny": said["askId"]},
    CONTROL: lambda said: dict(said["content"]),
}


def reopened(seen: Seen) -> list[NewEvent]:
    """What was brought along from elsewhere is asked again here."""
    floor = talk_of(seen).floor
    allowed = [name for name, ask in (floor.asks if floor else {}).items() if ask.allowed is True]
    if seen.event.payload.get("askIds") != allowed or not allowed:
        raise Impossible("payload", {"askIds": allowed}, seen.event.payload)
    return [seen.as_told()]


# -- members that have the floor -------------------------------------------------------------------


def answered(seen: Seen) -> list[NewEvent]:
    """What a member did with the floor; or somebody else's turn took it away."""
    said = seen.event.payload
    wake = _open(seen, str(said["wakeId"]))
    turn = _spoken_then(seen)
    if said["outcome"] == "superseded" and _after_ends(seen) == VOTE:
        return steered(seen)
    outside = said["outcome"] == "spoke" and "usage" not in said and _is_own(turn, wake)
    if said["outcome"] == "superseded" or outside:
        return exchanged(seen)
    if said["outcome"] not in OUTCOMES:
        raise Impossible("payload", f"one of {', '.join(OUTCOMES)}", said["outcome"])
    if said.get("agentId") != wake.agent:
        raise Impossible("payload", {"agentId": wake.agent}, said)
    spoken = turn if said["outcome"] == "spoke" else None
    return _done(seen, said, said["outcome"], spoken or {})


def held(seen: Seen) -> list[NewEvent]:
    """A turn that came when its speaker might not speak any more."""
    said = seen.event.payload
    _open(seen, str(said["wakeId"]))
    end = next(event for event in seen.rest if event.type == ANSWERED)
    found = _done(seen, {**end.payload, "wakeId": said["wakeId"]}, "spoke", said["turn"])
    if seen.timeless and found and found[0].type == HELD:
        found[0].payload["held"] = str(said["held"])  # it was named after its place in the source
    return found


def _done(seen: Seen, said: dict[str, Any], outcome: str, turn: dict[str, Any]) -> list[NewEvent]:
    given = WakeEnded(
        node_id=seen.its.id,
        wake_id=str(said["wakeId"]),
        at=seen.at,
        outcome=outcome,
        content=turn.get("content"),
        to=turn.get("to"),
        answer=said.get("answer"),
        usage=said.get("usage"),
        error=said.get("error"),
        meta=turn.get("meta"),
        agent=turn.get("agent"),
    )
    found = decide(seen.run, seen.flow, given)
    told = seen.event.payload.get("reason")
    if seen.fits(found) and found[0].payload.get("reason") == told:
        return found
    return decide(_some_time(seen), seen.flow, given)


def _some_time(seen: Seen) -> Run:
    """A mute may have ended just when the turn was taken, or in a time that is not told."""
    talk = talk_of(seen)
    return led.without_mutes(seen.run, talk, set())


def _open(seen: Seen, wake_id: str) -> Wake:
    talk = talk_of(seen)
    wake = talk.floor.wakes.get(wake_id) if talk.floor is not None else None
    if wake is None:
        raise Impossible("impossible", "a member that has the floor", seen.event.payload)
    return wake


def _after_ends(seen: Seen) -> str:
    """What follows the ends of wakes."""
    return next((event.type for event in seen.rest if event.type != ANSWERED), "")


def _spoken_then(seen: Seen) -> dict[str, Any]:
    """The turn that follows the ends of wakes."""
    after = next((event for event in seen.rest if event.type != ANSWERED), None)
    if after is None or after.type != SPOKEN:
        return {}
    turn = after.payload.get("turn")
    return turn if isinstance(turn, dict) else {}


def _is_own(turn: dict[str, Any], wake: Wake) -> bool:
    """Whether the member has spoken by itself, not through the host."""
    speaker = thread.full_name(str(turn.get("from", "")))
    return speaker == wake.agent and "editedBy" not in turn and turn.get("via") != HOST


def silent(seen: Seen) -> list[NewEvent]:
    """Members that were passed over, where the time it took is not told."""
    talk = talk_of(seen)
    names: list[str] = []
    for event in seen.rest:
        if event.type == ANSWERED and event.payload.get("outcome") == "silent":
            names.append(str(event.payload["wakeId"]))
        elif event.type != SPOKEN or len(names) == 0:
            break
    for name in names:
        _open(seen, name)
    for count in range(len(names), 0, -1):
        found = patience.passed_over(seen.its, talk, names[:count], seen.at)
        if seen.fits(found):
            return found
    return []


def report(seen: Seen) -> list[NewEvent]:
    """What is recorded while a member works on its answer."""
    event, said = seen.event, seen.event.payload
    talk = talk_of(seen)
    if event.type in HANDLERS and event.type not in _REPORTS and event.type not in agency.HANDLERS:
        raise Impossible("impossible", "what a member at work tells", event.type)
    wakes: dict[str, Any] = {}
    if talk.floor is not None:
        gone = event.type == charging.ABANDONED
        wakes = dict(talk.floor.unpaid if gone else talk.floor.wakes)
    found = [
        (name, wake)
        for name, wake in wakes.items()
        if event.causation_id == event_id(seen.run.run_id, _cause(event, wake))
        and said.get("agentId", wake.agent) == wake.agent
        and said.get(charging.CHARGED) in (None, *handles.payers(seen.run, wake.agent))
    ]
    check = _REPORTS.get(event.type, _tells if event.type in agency.HANDLERS else None)
    for name, wake in found:
        if check is None or check(seen, talk, name, wake):
            cause = _cause(event, wake)
            return [NewEvent(event.type, said, seen.its.id, cause=cause, hints=seen.hints)]
    raise Impossible("impossible", "a member that has the floor", said)


def _cause(event: Event, wake: Wake) -> int:
    """What a tool gives is caused by its call."""
    if event.type == agency.RETURNED:
        return wake.calls.get(str(event.payload.get("callId")), -1)
    return wake.seq


def _tells(seen: Seen, talk: Conversation, name: str, wake: Wake) -> bool:
    return seen.hints == {"wake": name}


def _begins(seen: Seen, talk: Conversation, name: str, wake: Wake) -> bool:
    """Once, for the wake it names."""
    place = f":{seen.its.id}:{name}"
    named = str(seen.event.payload.get("invocationId")).endswith(place)
    begun = agency.INVOKED in wake.said
    return not begun and _tells(seen, talk, name, wake) and named


def _asks(seen: Seen, talk: Conversation, name: str, wake: Wake) -> bool:
    said, floor = seen.event.payload, talk.floor
    fresh = floor is not None and said.get("askId") not in floor.asks
    return fresh and said.get("wakeId") == name and str(said["askId"]).startswith(f"{name}.")


def _calls(seen: Seen, talk: Conversation, name: str, wake: Wake) -> bool:
    """Its name follows from the wake; its end follows its beginning."""
    said, run, event = seen.event.payload, seen.run, seen.event
    if charging.wake_of(said) != name or said.get("attempt") != 1:
        return False
    if event.type != charging.STARTED and (
        seen.its.id, said["ordinal"]
    ) not in seen.kept.begun:  # fmt: skip
        return False
    if event.sequence < run.inherited:
        return True
    key = (run.tenant, run.run_id, seen.its.id, said["ordinal"], said["providerKey"])
    return bool(said["invocationId"] == logical_invocation_id(*key))


def _named(seen: Seen, talk: Conversation, name: str, wake: Wake) -> bool:
    """It says which wake it is of."""
    said = seen.event.payload
    given = said.get("wakeId", str(said.get("invocationId", "")).rpartition(":")[2])
    return bool(given == name and type(said.get("silentMs", 0)) is int)


_REPORTS = {
    "agent.invocation.started": _begins,
    "moot.tool.asked": _asks,
    charging.STARTED: _calls,
    charging.FINISHED: _calls,
    charging.ABANDONED: _calls,
    charging.HEARD: _named,
    agency.RETRIED: _named,
}

TALKS = {
    SPOKEN: exchanged,
    "conversation.closed": closed,
    HELD: held,
    CONTROL: steered,
    "moot.participant.joined": steered,
    "moot.participant.left": steered,
    "moot.thread.renamed": steered,
    "moot.presence.changed": steered,
    LINKED: linked,
    "moot.participation.continued": steered,
    "moot.participation.set": steered,
    VOTE: steered,
    "moot.turn.admitted": steered,
    "moot.turn.dropped": steered,
    "moot.tool.answered": steered,
    "moot.tool.reopened": reopened,
}
