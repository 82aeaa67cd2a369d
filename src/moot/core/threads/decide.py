"""Decide the controls of a thread: who may send them, who joins and who leaves."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moot.core.conversations import addressing, joining, turns
from moot.core.conversations.decide import close_conversation
from moot.core.conversations.turns import HOST
from moot.core.errors import BadRequest, Forbidden, NotFound, NotYourName
from moot.core.events import NewEvent
from moot.core.interrupts import decide
from moot.core.payloads.base import Payload
from moot.core.payloads.conversations import ParticipantLeft, ThreadControlled
from moot.core.payloads.councils import InvitationAnswered
from moot.core.runs.answers import GateAnswer
from moot.core.runs.start import LinkedStart
from moot.core.speaker import Speaker
from moot.core.state.control_content import MOST_TARGETS, control_targets
from moot.core.state.conversation import THREAD, Conversation
from moot.core.state.mutes import is_muted
from moot.core.state.run import Run
from moot.core.text.names import full_name, is_person
from moot.core.threads import agent_restrictions, control_checks
from moot.core.threads.control_actions import CONTROL_ACTIONS
from moot.core.threads.control_checks import ALL_CONTROLS, HUMAN_CONTROLS
from moot.core.workflows.flow import Flow


def control_warnings(conversation: Conversation, content: dict[str, Any], at: int) -> list[str]:
    """Return warnings about a control that is recorded and has no effect, or only part of it."""
    return [
        *control_checks.control_problems(content, ALL_CONTROLS).values(),
        *target_warnings(conversation, content, at),
    ]


def target_warnings(conversation: Conversation, content: Any, at: int) -> list[str]:
    """Return warnings about targets that are not here, or are not muted."""
    if not isinstance(content, dict):
        return []
    warnings, agents = [], turns.agent_profiles(conversation)
    is_threaded = conversation.floor is not None and conversation.floor.threaded
    for word in ("mute", "prod", "uninvite"):
        unknown = [name for name in _targets(word, content) if name not in agents]
        unknown = [name for name in unknown if not is_person(name)]
        if unknown and (agents or is_threaded):
            names = ", ".join(name.removeprefix("host:") for name in unknown[:5])
            warnings.append(
                f"'{word}': {names} takes no part here; {addressing.participants_clause(agents)}."
            )
    unmuted = [
        name for name in _targets("unmute", content) if not is_muted(conversation.state, name, at)
    ]
    if unmuted:
        names = ", ".join(name.removeprefix("host:") for name in unmuted[:5])
        warnings.append(f"'unmute': {names} is not muted.")
    return warnings


def _targets(word: str, content: dict[str, Any]) -> list[str]:
    value = content.get(word)
    if word == "uninvite":
        value = [value.get("participant_id") if isinstance(value, dict) else value]
    return control_targets(value)


class Control(Struct, frozen=True, kw_only=True):
    """A command that steers a conversation. The sender is checked against the key."""

    node_id: str
    content: Any
    who: Speaker
    at: int
    sender: str | None = None
    #: store a control with mistakes instead of refusing it; it changes nothing
    lenient: bool = False
    #: the host's profile of the invited agent; only a person may override it
    known: dict[str, Any] = {}
    #: the sender's id for this control, to recognise a repeat, and a digest of the content
    message_id: str | None = None
    digest: str = ""
    #: whether this control may close the thread
    ends: bool = True
    #: the new thread that begins with the link
    begins: LinkedStart | None = None


def decide_control(run: Run, flow: Flow, control: Control) -> list[NewEvent]:
    events = _decide_control_events(run, flow, control)
    first = next(
        (event for event in events if not isinstance(event.payload, InvitationAnswered)), None
    )
    if first is not None and control.message_id is not None and isinstance(first.payload, Payload):
        first.payload = replace(first.payload, message_id=control.message_id, digest=control.digest)
    return [*events, *_end_if_done(run, flow, control)]


def _end_if_done(run: Run, flow: Flow, control: Control) -> list[NewEvent]:
    """Close the thread when its last participant is done."""
    content, sender = control.content, _sender(control)
    if not control.ends or not isinstance(content, dict) or content.get("done") is not True:
        return []
    conversation = run.conversations[control.node_id]
    if not is_thread_done(run, conversation, sender):
        return []
    return close_done_thread(run, flow, conversation, control.who, control.at)


def _decide_control_events(run: Run, flow: Flow, control: Control) -> list[NewEvent]:
    conversation = turns.require_open(run.conversations.get(control.node_id), run, control.node_id)
    decide.check_not_paused(run)
    sender = _sender(control)
    content = control.content if isinstance(control.content, dict) else {}
    words = [word for word in content if word in ALL_CONTROLS]
    if not words and not control.lenient:
        raise BadRequest(f"A control is one of {', '.join(sorted(ALL_CONTROLS))}.", field="content")
    _check_sender(conversation, control, sender, words)
    agent_restrictions.check_agent_control(conversation, control, sender)
    if not control.lenient:
        _check_targets(content)
    action_events, ignored = _run_actions(run, flow, conversation, control, sender)
    events = _join_by_control(conversation, control, sender, content)
    if "invite" in content and "invite" not in ignored:
        events += _invite(conversation, control, sender)
    if "uninvite" in content and "uninvite" not in ignored:
        left_events = _uninvite(conversation, control, sender)
        events += left_events
        ignored |= {} if left_events or not control.lenient else {"uninvite": "nobody leaves"}
    return [*events, *action_events, *_control_event(conversation, control, sender, ignored)]


def ignored_control_reasons(run: Run, flow: Flow, control: Control) -> list[str]:
    """Return the mistakes of a lenient control that is recorded all the same."""
    conversation = run.conversations.get(control.node_id)
    if conversation is None or not control.lenient:
        return []
    return list(_run_actions(run, flow, conversation, control, _sender(control))[1].values())


def _run_actions(
    run: Run, flow: Flow, conversation: Conversation, control: Control, sender: str
) -> tuple[list[NewEvent], dict[str, str]]:
    """Return the events of the control's actions, and the words that change nothing.

    Each of those words comes with its mistake.
    """
    ignored = (
        control_checks.control_problems(control.content, ALL_CONTROLS, forbidden_controls(control))
        if control.lenient
        else {}
    )
    content = control.content if isinstance(control.content, dict) else {}
    words_by_action: dict[Any, list[str]] = {}
    for word, action in CONTROL_ACTIONS.items():
        if word in content and word not in ignored:
            words_by_action.setdefault(action, []).append(word)
    events: list[NewEvent] = []
    for action, words in words_by_action.items():
        try:
            events += action(run, flow, conversation, control, sender)
        except (BadRequest, NotFound) as refusal:
            if not control.lenient:
                raise
            ignored |= dict.fromkeys(words, refusal.message)
    return events, ignored


def _join_by_control(
    conversation: Conversation, control: Control, sender: str, content: dict[str, Any]
) -> list[NewEvent]:
    """Add a sender that may join by speaking, unless it only invites another."""
    joins, is_agent = control.who.joins, not is_person(sender)
    if (
        not is_agent
        or "invite" in content
        or not joining.can_join_by_speaking(conversation, sender, joins)
    ):
        return []
    return [
        joining.joined_event(
            conversation,
            joining.parse_participant_name(sender, "from"),
            {},
            sender,
            joins == "outside",
        )
    ]


def _control_event(
    conversation: Conversation, control: Control, sender: str, ignored: dict[str, str]
) -> list[NewEvent]:
    """Record the words that the fold reads, and the words that change nothing."""
    rest = control.content
    if isinstance(rest, dict):
        handled = [word for word in ("invite", "uninvite", *CONTROL_ACTIONS) if word not in ignored]
        rest = {key: value for key, value in rest.items() if key not in handled}
        if not rest and (control.content or not control.lenient):
            return []
    payload = ThreadControlled(
        conversation_id=conversation.conversation_id,
        from_=sender,
        content=rest,
        via=control.who.principal,
    )
    return [_event(payload, control, conversation)]


def _check_sender(
    conversation: Conversation, control: Control, sender: str, words: list[str]
) -> None:
    if _is_host_unmute(control):
        return
    if not control.lenient and HUMAN_CONTROLS.intersection(words) and not is_person(sender):
        raise Forbidden("Only a person may do that here.", participant=sender)
    joins = joining.can_join_by_speaking(conversation, sender, control.who.joins)
    if not (control.who.admin or is_person(sender) or joins or _takes_part(conversation, sender)):
        raise joining.not_invited_error(conversation, sender)


def forbidden_controls(control: Control) -> frozenset[str]:
    """Return the controls that this sender may not use."""
    may_use_all = is_person(control.sender or control.who.person) or _is_host_unmute(control)
    return frozenset() if may_use_all else HUMAN_CONTROLS


def _check_targets(content: dict[str, Any]) -> None:
    for value in content.values():
        targets = value.get("targets") if isinstance(value, dict) else value
        if isinstance(targets, list) and len(targets) > MOST_TARGETS:
            raise BadRequest(f"A control is about {MOST_TARGETS} names at most.")


def _takes_part(conversation: Conversation, name: str) -> bool:
    if conversation.roster is not None:
        return name in conversation.roster
    return not conversation.state.by_invitation or name in conversation.state.members


def _sender(control: Control) -> str:
    sender = control.sender or control.who.person
    if sender != control.who.person and not control.who.admin and sender not in control.who.names:
        raise NotYourName(sender, list(control.who.names))
    if not _is_host_unmute(control):
        joining.check_participant_name(sender, "from")
    return sender


def _is_host_unmute(control: Control) -> bool:
    """Return whether the host itself ends a mute, which is its only control."""
    is_unmute = isinstance(control.content, dict) and list(control.content) == ["unmute"]
    return is_unmute and control.who.principal == HOST and control.sender == "system"


def _invite(conversation: Conversation, control: Control, sender: str) -> list[NewEvent]:
    value = control.content["invite"]
    name = joining.parse_participant_name(value, "invite")
    if agent_restrictions.is_redundant_invite(conversation, name, sender):
        return []
    fields = value if isinstance(value, dict) else {}
    outside = fields.get("outside") is True
    profile = fields.get("profile")
    profile = profile if isinstance(profile, dict) else {}
    merged = {**control.known, **profile} if is_person(sender) else {**profile, **control.known}
    return [joining.joined_event(conversation, name, merged, sender, outside)]


def _uninvite(conversation: Conversation, control: Control, sender: str) -> list[NewEvent]:
    name = joining.parse_participant_name(control.content["uninvite"], "uninvite")
    if name not in conversation.state.members:
        return []
    payload = ParticipantLeft(
        conversation_id=conversation.conversation_id,
        participant_id=name,
        by=sender,
        after_turn=conversation.turns,
    )
    return [_event(payload, control, conversation)]


def _event(payload: Payload, control: Control, conversation: Conversation) -> NewEvent:
    return NewEvent(payload, control.node_id, cause=conversation.last_seq)


ALL_DONE_TEXT = "Everybody is done; the thread is closed."


def is_thread_done(run: Run, conversation: Conversation, sender: str) -> bool:
    """Return whether every participant is done, once the sender is.

    That includes the person who began the thread. At least one person must be done, so agents never
    close a thread alone.
    """
    members = (
        conversation.roster if conversation.roster is not None else list(conversation.state.members)
    )
    participants = {full_name(name) for name in members}
    if run.workflow_id != THREAD or not participants:
        return False
    if is_person(run.person):
        participants.add(run.person)
    done = {*conversation.state.done, full_name(sender)}
    return participants <= done and any(map(is_person, done))


def close_done_thread(
    run: Run, flow: Flow, conversation: Conversation, who: Speaker, at: int
) -> list[NewEvent]:
    """Close the thread without a decision."""
    node = flow.nodes[conversation.node_id]
    final_turn = replace(turns.system_turn(conversation, ALL_DONE_TEXT, at), via=who.principal)
    answer = GateAnswer(node_id=node.id, value=None, who=who, at=at)
    return close_conversation(
        run,
        flow,
        node,
        conversation,
        turns.closed_event(conversation, node, final_turn, None),
        answer,
    )
