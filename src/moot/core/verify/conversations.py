"""What the log tells of conversations: turns, controls, and what members do with the floor.

A word that somebody said is a fact; who may say it, and what it leads to, is not.
"""

from typing import Any

from moot.core.commands import decide
from moot.core.conversations import turns
from moot.core.conversations.decide import closing, taken
from moot.core.councils import decide as participating
from moot.core.councils import timeouts
from moot.core.councils.decide import HOST, WakeEnded
from moot.core.events import Event, NewEvent, event_id
from moot.core.json.schema import problems
from moot.core.speaker import Speaker
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Wake
from moot.core.state.run import Run
from moot.core.state.seats import LEFT, TAKEN
from moot.core.text.names import full_name
from moot.core.threads.decide import Control
from moot.core.threads.seats import LeaveSeat, TakeSeat
from moot.core.threads.side_threads import LINKED, LinkedFrom, SideEnded
from moot.core.verify import council_steps
from moot.core.verify.controls import CONTROL, VOTE, rank_of, words_of
from moot.core.verify.nodes import Impossible, Seen

ANSWERED, HELD = "moot.participation.answered", "moot.turn.held"
SPOKEN = "conversation.exchanged"

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
    if schema is not None and (wrong := problems(schema, turn["content"])):
        raise Impossible("payload", wrong[0], turn["content"])
    return turn


def exchanged(seen: Seen) -> list[NewEvent]:
    """A turn from outside, after the wakes that it ends."""
    talk = talk_of(seen)
    spoken = next(event for event in seen.rest if event.type != ANSWERED)
    turn = _turn(spoken, talk, "turn")
    given = seen.by(turn.get("via"))
    said = taken(seen.run, seen.flow, seen.its, talk, turn, given)
    return [*participating.taken(seen.run, seen.its, said, seen.at), *said]


def closed(seen: Seen) -> list[NewEvent]:
    talk = talk_of(seen)
    turn = _turn(seen.event, talk, "finalTurn")
    end = turns.closed(talk, seen.its, turn, seen.event.payload.get("outcome"))
    given = seen.by(turn.get("via"))
    return closing(seen.run, seen.flow, seen.its, talk, end, given)


def linked(seen: Seen) -> list[NewEvent]:
    """Somebody has linked a thread, or one that was linked has ended; or another links this."""
    said = seen.event.payload
    if said.get("closed") is not True and said.get("back") is not True:
        return steered(seen)
    talk_of(seen)
    place: dict[str, Any] = {"node_id": seen.its.id, "thread": said["threadId"], "at": seen.at}
    given: SideEnded | LinkedFrom = LinkedFrom(title=str(said["title"]), **place)
    if said.get("back") is not True:
        given = SideEnded(summary=said["summary"], **place)
    found = decide(seen.run, seen.flow, given)
    spoken = next((event for event in seen.rest if event.type == SPOKEN), None)
    if len(found) > 1 and spoken is not None:  # the time it was told at is its own
        found[1].payload["turn"]["ts"] = spoken.payload["turn"]["ts"]
    return found


def seated(seen: Seen) -> list[NewEvent]:
    """A program has taken a seat, or left it."""
    talk_of(seen)
    said = seen.event.payload
    place: dict[str, Any] = {"node_id": seen.its.id, "name": said["participantId"]}
    place["seat"] = said["seat"]
    if seen.event.type == LEFT:
        return decide(seen.run, seen.flow, LeaveSeat(**place))
    about = {"seen": said.get("instead"), "via": said["via"]}
    return decide(seen.run, seen.flow, TakeSeat(at=seen.at, **about, **place))


# -- controls --------------------------------------------------------------------------------------


def steered(seen: Seen) -> list[NewEvent]:
    """Everything that one person said at once, as the control it was."""
    talk_of(seen)
    content: Any = {}
    sender = via = ""
    named: dict[str, Any] = {}
    for event in _at_once(seen):
        if event.type == CONTROL and not isinstance(event.payload["content"], dict):
            content = event.payload["content"]
        else:
            content |= words_of(event) or {}
        sender = str(event.payload.get("from", event.payload.get("by")))
        via = str(event.payload.get("via", via))
        named = named if named.get("messageId") else event.payload
    given = Control(
        node_id=seen.its.id, content=content, who=Speaker(via, admin=True), at=seen.at,
        sender=sender, lenient=True, message_id=named.get("messageId"),
        digest=str(named.get("digest", "")),
        ends=any(event.type == "conversation.closed" for event in seen.rest),
    )  # fmt: skip
    return decide(seen.run, seen.flow, given)


def _at_once(seen: Seen) -> list[Event]:
    """The events of one control: all have one cause, apart from answers to what was asked."""
    before = event_id(seen.run.run_id, talk_of(seen).last_seq)
    found: list[Event] = []
    until, last, admits = 1, -1, False
    for event in seen.rest:
        if event.type == CONTROL and not isinstance(event.payload["content"], dict):
            return found[:until] or [event]  # nothing is said with what is no control
        words = words_of(event)
        if event.type == ANSWERED and not found:
            continue  # a vote takes away what was asked before
        if admits and event.type in (SPOKEN, "channel.written"):
            continue  # what was admitted is said with it
        if event.type == ANSWERED and event.payload.get("outcome") == "superseded":
            continue  # a vote takes away what was asked before it
        if words is None or (rank := rank_of(event, words)) <= last:
            break
        found, last, admits = [*found, event], rank, admits or "admit" in words
        if event.type == "moot.tool.answered":
            continue
        if event.causation_id != before:
            break
        until = len(found)
    return found[:until]


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
    return council_steps.without_mutes(seen.run, talk, set())


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
    speaker = full_name(str(turn.get("from", "")))
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
        found = timeouts.passed_over(seen.its, talk, names[:count], seen.at)
        if seen.fits(found):
            return found
    return []


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
    TAKEN: seated,
    LEFT: seated,
    "moot.participation.continued": steered,
    "moot.participation.set": steered,
    VOTE: steered,
    "moot.turn.admitted": steered,
    "moot.turn.dropped": steered,
    "moot.tool.answered": steered,
    "moot.tool.reopened": reopened,
}
