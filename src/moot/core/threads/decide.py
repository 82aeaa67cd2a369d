"""Controls of a conversation: who may steer it, who joins, who leaves."""

from typing import Any

from msgspec import Struct

from moot.core.conversations import addressing, joining, turns
from moot.core.conversations.turns import HOST
from moot.core.errors import BadRequest, Forbidden, NotFound, NotYourName
from moot.core.events import NewEvent
from moot.core.interrupts import decide
from moot.core.runs.start import Beginning
from moot.core.speaker import Speaker
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation
from moot.core.state.run import Run
from moot.core.text.names import is_person
from moot.core.threads import agent_control_checks, auto_close, control_checks
from moot.core.threads.control_actions import LEADING
from moot.core.workflows.graph import Flow

#: controls that only a person may use; the others are open to every participant
HUMAN_ONLY = frozenset(
    thread_controls.OF_PEOPLE
    | {"continue", "admit", "drop", "allow", "deny", "participation", "vote"}
)
KNOWN = HUMAN_ONLY | {
    "done", "invite", "uninvite", "rename", "link", "presence"
}  # fmt: skip

#: what a vote ends before it begins
ANSWERED = "moot.participation.answered"


def warnings(talk: Conversation, content: dict[str, Any], at: int) -> list[str]:
    """What a control says in vain; it is recorded as it was said."""
    return [*control_checks.problems(content, KNOWN).values(), *in_vain(talk, content, at)]


def in_vain(talk: Conversation, content: Any, at: int) -> list[str]:
    """Of a control that is well said: names of who is not there, or not muted."""
    if not isinstance(content, dict):
        return []
    found, people = [], turns.people(talk)
    led = talk.floor is not None and talk.floor.threaded
    for word in ("mute", "prod", "uninvite"):
        strange = [name for name in _about(word, content) if name not in people]
        strange = [name for name in strange if not is_person(name)]
        if strange and (people or led):
            them = ", ".join(name.removeprefix("host:") for name in strange[:5])
            found.append(f"'{word}': {them} takes no part here; {addressing.there(people)}.")
    free = [
        name
        for name in _about("unmute", content)
        if not thread_controls.is_muted(talk.state, name, at)
    ]
    if free:
        them = ", ".join(name.removeprefix("host:") for name in free[:5])
        found.append(f"'unmute': {them} is not muted.")
    return found


def _about(word: str, content: dict[str, Any]) -> list[str]:
    value = content.get(word)
    if word == "uninvite":
        value = [value.get("participant_id") if isinstance(value, dict) else value]
    return thread_controls.targets(value)


class Control(Struct, frozen=True, kw_only=True):
    """Somebody steers a conversation. ``sender`` is checked against the key."""

    node_id: str
    content: Any
    who: Speaker
    at: int
    sender: str | None = None
    #: what is not said correctly is kept and changes nothing; else it is refused
    lenient: bool = False
    #: what the host knows of who is invited: only a person says otherwise
    known: dict[str, Any] = {}
    #: the sender's own name for it, by which the same is known again, and what it is of
    message_id: str | None = None
    digest: str = ""
    #: the thread may come to its end by it
    ends: bool = True
    #: the thread that a link names, where it begins with the link
    begins: Beginning | None = None


def control(run: Run, flow: Flow, given: Control) -> list[NewEvent]:
    events = _told(run, flow, given)
    first = next((event for event in events if event.type != ANSWERED), None)
    if first is not None and given.message_id is not None:
        first.payload |= {"messageId": given.message_id, "digest": given.digest}
    return [*events, *_ending(run, flow, given)]


def _ending(run: Run, flow: Flow, given: Control) -> list[NewEvent]:
    """Whoever is the last to be done has ended the thread."""
    content, sender = given.content, _sender(given)
    if not given.ends or not isinstance(content, dict) or content.get("done") is not True:
        return []
    talk = run.conversations[given.node_id]
    if not auto_close.all_done(run, talk, sender):
        return []
    return auto_close.closed(run, flow, talk, given.who, given.at)


def _told(run: Run, flow: Flow, given: Control) -> list[NewEvent]:
    talk = turns.must_be_open(run.conversations.get(given.node_id), run, given.node_id)
    decide.refuse_paused(run)
    sender = _sender(given)
    content = given.content if isinstance(given.content, dict) else {}
    words = [word for word in content if word in KNOWN]
    if not words and not given.lenient:
        raise BadRequest(f"A control is one of {', '.join(sorted(KNOWN))}.", field="content")
    _check_may(talk, given, sender, words)
    agent_control_checks.check(talk, given, sender)
    if not given.lenient:
        _check_targets(content)
    led, idle = _led(run, flow, talk, given, sender)
    events = _comes_in(talk, given, sender, content)
    if "invite" in content and "invite" not in idle:
        events += _join(talk, given, sender)
    if "uninvite" in content and "uninvite" not in idle:
        left = _leave(talk, given, sender)
        events += left
        idle |= {} if left or not given.lenient else {"uninvite": "nobody leaves"}
    return [*events, *led, *_kept(talk, given, sender, idle)]


def unheeded(run: Run, flow: Flow, given: Control) -> list[str]:
    """What is wrong with a control that is taken all the same."""
    talk = run.conversations.get(given.node_id)
    if talk is None or not given.lenient:
        return []
    return list(_led(run, flow, talk, given, _sender(given))[1].values())


def _led(
    run: Run, flow: Flow, talk: Conversation, given: Control, sender: str
) -> tuple[list[NewEvent], dict[str, str]]:
    """What the words lead to that are more than the state of a thread; and which words are kept
    and change nothing, each with what is wrong with it."""
    idle = control_checks.problems(given.content, KNOWN, not_for(given)) if given.lenient else {}
    content = given.content if isinstance(given.content, dict) else {}
    leads: dict[Any, list[str]] = {}
    for word, lead in LEADING.items():
        if word in content and word not in idle:
            leads.setdefault(lead, []).append(word)
    events: list[NewEvent] = []
    for lead, words in leads.items():
        try:
            events += lead(run, flow, talk, given, sender)
        except (BadRequest, NotFound) as wrong:
            if not given.lenient:
                raise
            idle |= dict.fromkeys(words, wrong.message)
    return events, idle


def _comes_in(
    talk: Conversation, given: Control, sender: str, content: dict[str, Any]
) -> list[NewEvent]:
    """Who may come in by speaking may do so by steering; who invites another may stay outside."""
    joins, agent = given.who.joins, not is_person(sender)
    if not agent or "invite" in content or not joining.comes_in(talk, sender, joins):
        return []
    return [joining.welcome(talk, joining.named(sender, "from"), {}, sender, joins == "outside")]


def _kept(talk: Conversation, given: Control, sender: str, idle: dict[str, str]) -> list[NewEvent]:
    """What the fold is told, and what nobody understands; of what is no object, all of it."""
    rest = given.content
    if isinstance(rest, dict):
        apart = [word for word in ("invite", "uninvite", *LEADING) if word not in idle]
        rest = {key: value for key, value in rest.items() if key not in apart}
        if not rest and (given.content or not given.lenient):
            return []
    payload = {"conversationId": talk.conversation_id, "from": sender, "content": rest}
    payload["via"] = given.who.principal
    return [_event("moot.thread.control", payload, given, talk)]


def _check_may(talk: Conversation, given: Control, sender: str, words: list[str]) -> None:
    if _by_host(given):
        return
    if not given.lenient and HUMAN_ONLY.intersection(words) and not is_person(sender):
        raise Forbidden("Only a person may do that here.", participant=sender)
    welcome = joining.comes_in(talk, sender, given.who.joins)
    if not (given.who.admin or is_person(sender) or welcome or _takes_part(talk, sender)):
        raise joining.not_invited(talk, sender)


def not_for(given: Control) -> frozenset[str]:
    """Words that are not for who says them."""
    person = is_person(given.sender or given.who.person) or _by_host(given)
    return frozenset() if person else HUMAN_ONLY


def _check_targets(content: dict[str, Any]) -> None:
    for value in content.values():
        about = value.get("targets") if isinstance(value, dict) else value
        if isinstance(about, list) and len(about) > thread_controls.MOST_TARGETS:
            raise BadRequest(f"A control is about {thread_controls.MOST_TARGETS} names at most.")


def _takes_part(talk: Conversation, name: str) -> bool:
    if talk.roster is not None:
        return name in talk.roster
    return not talk.state.by_invitation or name in talk.state.members


def _sender(given: Control) -> str:
    sender = given.sender or given.who.person
    if sender != given.who.person and not given.who.admin and sender not in given.who.names:
        raise NotYourName(sender, list(given.who.names))
    if not _by_host(given):
        joining.check(sender, "from")
    return sender


def _by_host(given: Control) -> bool:
    """The host says one thing by itself: that a mute is over, where somebody waits for that."""
    only = isinstance(given.content, dict) and list(given.content) == ["unmute"]
    return only and given.who.principal == HOST and given.sender == "system"


def _join(talk: Conversation, given: Control, sender: str) -> list[NewEvent]:
    asked = given.content["invite"]
    name = joining.named(asked, "invite")
    if agent_control_checks.invites_in_vain(talk, name, sender):
        return []
    said = asked if isinstance(asked, dict) else {}
    outside = said.get("outside") is True
    profile = said.get("profile")
    profile = profile if isinstance(profile, dict) else {}
    both = {**given.known, **profile} if is_person(sender) else {**profile, **given.known}
    return [joining.welcome(talk, name, both, sender, outside)]


def _leave(talk: Conversation, given: Control, sender: str) -> list[NewEvent]:
    name = joining.named(given.content["uninvite"], "uninvite")
    if name not in talk.state.members:
        return []
    payload = {
        "conversationId": talk.conversation_id,
        "participantId": name,
        "by": sender,
        "afterTurn": talk.turns,
    }
    return [_event("moot.participant.left", payload, given, talk)]


def _event(type_: str, payload: dict[str, Any], given: Control, talk: Conversation) -> NewEvent:
    return NewEvent(type_, payload, given.node_id, cause=talk.last_seq)
