"""Decide the controls that do more than change the state of a thread.

People continue a council, set its policy, call votes and admit held turns. Participants rename and
link threads.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from moot.core.conversations import closing_decision, turns
from moot.core.councils.invitations import withdraw_other_tasks
from moot.core.councils.limits import chain_limit
from moot.core.errors import BadRequest, NotFound, ThreadPaused
from moot.core.errors.threads import TooManyLinks
from moot.core.events import NewEvent
from moot.core.payloads.base import Payload
from moot.core.payloads.conversations import PresenceChanged, ThreadLinked, ThreadRenamed
from moot.core.payloads.councils import (
    CouncilContinued,
    CouncilMember,
    PolicySet,
    ToolAnswered,
    TurnAdmitted,
    TurnDropped,
    VoteCalled,
    WithheldTurn,
)
from moot.core.state.conversation import Conversation, current_title, thread_id
from moot.core.state.council_policy import Policy, describe_unused_settings
from moot.core.state.participants import find_participant, invitable_members
from moot.core.state.run import Run
from moot.core.text.names import full_name, is_person
from moot.core.text.titles import LONGEST_TITLE, TITLE_RULE, parse_title
from moot.core.threads.presence import STATES
from moot.core.threads.side_threads import MOST_LINKS
from moot.core.workflows.flow import Flow

if TYPE_CHECKING:
    from moot.core.threads.decide import Control

MOST_ROUNDS = 100


class SentControl(Struct, frozen=True):
    """A control, its sender, and the conversation that it steers."""

    run: Run
    flow: Flow
    conversation: Conversation
    control: "Control"
    sender: str

    def value(self, word: str) -> Any:
        return self.control.content[word]

    @property
    def origin(self) -> dict[str, str]:
        """The fields of an event that name the conversation, the sender and its key."""
        name, via = self.conversation.conversation_id, self.control.who.principal
        return {"conversation_id": name, "by": self.sender, "via": via}

    def event(self, payload: Payload) -> NewEvent:
        return NewEvent(payload, self.conversation.node_id, cause=self.conversation.last_seq)


def continue_council(sent: SentControl) -> list[NewEvent]:
    """Continue a stopped council. The value is ``true`` or ``{"rounds": n}``."""
    conversation, value = sent.conversation, sent.value("continue")
    if conversation.floor is None and chain_limit(conversation.chain) is None:
        raise BadRequest("Nobody leads this conversation; set participation first.")
    if value is not True and not isinstance(value, dict):
        raise BadRequest('To go on, say true or {"rounds": n}.', field="continue")
    rounds = value.get("rounds") if isinstance(value, dict) else None
    if rounds is not None and (type(rounds) is not int or not 1 <= rounds <= MOST_ROUNDS):
        raise BadRequest(f"rounds is 1 to {MOST_ROUNDS}.", field="continue.rounds")
    return [sent.event(CouncilContinued(**sent.origin, rounds=rounds))]


def set_policy(sent: SentControl) -> list[NewEvent]:
    """Set the policy of the council. Its members are the agents that may speak now."""
    conversation, policy = sent.conversation, sent.value("participation")
    try:
        msgspec.convert(policy, Policy)
    except msgspec.ValidationError as error:
        raise BadRequest(f"participation does not fit: {error}", field="participation") from None
    if problem := describe_unused_settings(policy):
        raise BadRequest(problem, field="participation")
    moderator = policy.get("moderator")
    names = [name for name in invitable_members(conversation) if not is_person(name)]
    if moderator is not None and moderator not in names:
        text, field = "The moderator must be among the participants.", "participation.moderator"
        raise BadRequest(text, field=field, roster=names)
    members = []
    for name in names:
        each = find_participant(conversation, name)
        outside, profile = each.joined and each.outside, dict(each.profile)
        members.append(
            CouncilMember(agent_id=name, profile=profile, driven=each.driven, outside=outside)
        )
    payload = PolicySet(
        conversation_id=conversation.conversation_id,
        policy=policy,
        members=members,
        by=sent.sender,
        via=sent.control.who.principal,
    )
    return [sent.event(payload)]


def call_vote(sent: SentControl) -> list[NewEvent]:
    """Put ``{"decision": TEXT, "close": true}`` to the vote.

    Without a text, the members vote on the moderator's proposal.
    """
    conversation, value = sent.conversation, sent.value("vote")
    if conversation.floor is None:
        raise BadRequest("Nobody leads this conversation; set participation first.")
    if conversation.state.paused:
        raise ThreadPaused(
            "The conversation is paused; nobody votes before it goes on.",
            thread=conversation.conversation_id,
            participant=sent.sender,
        )
    value = value if isinstance(value, dict) else {}
    text = value.get("decision", conversation.floor.proposal)
    if not isinstance(text, str) or not 1 <= len(text.strip()) <= closing_decision.LONGEST_TEXT:
        raise BadRequest(
            f"Say what is put to the vote, in 1 to {closing_decision.LONGEST_TEXT} characters.",
            field="vote.decision",
        )
    called = VoteCalled(**sent.origin, decision=text, close=value.get("close") is True)
    return [*withdraw_other_tasks(conversation, sent.control.at), sent.event(called)]


def _find_held_turn(sent: SentControl, word: str) -> tuple[str, WithheldTurn]:
    name, floor = str(sent.value(word)), sent.conversation.floor
    turn = floor.held.get(name) if floor is not None else None
    if turn is None:
        raise NotFound("No such turn is held back here.", held=name[:64])
    return name, turn


def admit_turn(sent: SentControl) -> list[NewEvent]:
    """Record a held turn under its speaker's name, because a person admits it."""
    conversation, at = sent.conversation, sent.control.at
    held_id, held = _find_held_turn(sent, "admit")
    talk, group, index = conversation.conversation_id, conversation.group_id, conversation.turns + 1
    turn = replace(
        turns.new_turn(talk, index, "agent", held.speaker_id, held.content, at, group),
        to=held.to,
        meta=UNSET if held.meta is None else held.meta,
        agent=UNSET if held.agent is None else held.agent,
        via=turns.HOST,
    )
    exchanged = turns.exchanged_event(conversation, turn)
    turns.order_turn(exchanged, ("to", "meta", "agent", "via"))
    node = sent.flow.nodes[conversation.node_id]
    echoes = turns.echo_turn(sent.run, sent.flow, node, turn, at)
    return [sent.event(TurnAdmitted(**sent.origin, held=held_id)), exchanged, *echoes]


def drop_turn(sent: SentControl) -> list[NewEvent]:
    held_id, _ = _find_held_turn(sent, "drop")
    return [sent.event(TurnDropped(**sent.origin, held=held_id))]


def answer_tool_request(sent: SentControl) -> list[NewEvent]:
    """Record a person's ``allow`` and ``deny`` of tool requests."""
    events, floor = [], sent.conversation.floor
    for word in ("allow", "deny"):
        if word not in sent.control.content:
            continue
        ask_id = str(sent.value(word))
        request = floor.asks.get(ask_id) if floor is not None else None
        if request is None or request.allowed is not None:
            raise NotFound("Nobody asks that here any more.", askId=ask_id[:64])
        answered = ToolAnswered(**sent.origin, ask_id=ask_id, allowed=word == "allow")
        events.append(NewEvent(answered, sent.conversation.node_id, cause=request.seq))
    return events


def rename_thread(sent: SentControl) -> list[NewEvent]:
    """Rename the thread to ``TITLE``, one readable line."""
    title = parse_title(sent.value("rename"))
    if title is None:
        raise BadRequest(TITLE_RULE, field="rename")
    if title == current_title(sent.run, sent.conversation):
        return []
    return [sent.event(ThreadRenamed(**sent.origin, title=title))]


def set_presence(sent: SentControl) -> list[NewEvent]:
    """Record the sender's presence if it has changed."""
    conversation, state = sent.conversation, sent.value("presence")
    if state not in STATES:
        raise BadRequest(f"presence is one of {', '.join(STATES)}.", field="presence")
    if conversation.state.presence.get(full_name(sent.sender)) == state:
        return []
    payload = PresenceChanged(
        conversation_id=conversation.conversation_id,
        from_=sent.sender,
        state=state,
        via=sent.control.who.principal,
    )
    return [sent.event(payload)]


def link_thread(sent: SentControl) -> list[NewEvent]:
    """Link ``{"thread": ID, "title": TITLE}``. The caller has checked that the thread exists."""
    conversation, value = sent.conversation, sent.value("link")
    value = value if isinstance(value, dict) else {"thread": value}
    thread, title = value.get("thread"), value.get("title", "")
    if not isinstance(thread, str) or not 1 <= len(thread) <= 512 or not isinstance(title, str):
        raise BadRequest("A link names a thread.", field="link.thread")
    if thread == thread_id(sent.run, conversation):
        raise BadRequest("A thread is not linked to itself.", field="link.thread")
    if thread in conversation.links:
        return []
    if len(conversation.links) >= MOST_LINKS:
        raise TooManyLinks(f"A thread has at most {MOST_LINKS} links.")
    payload = ThreadLinked(
        conversation_id=conversation.conversation_id,
        thread_id=thread,
        title=title[:LONGEST_TITLE],
        by=sent.sender,
        via=sent.control.who.principal,
    )
    linked = sent.event(payload)
    linked.begins = sent.control.begins
    return [linked]


CONTROL_ACTIONS: dict[str, Callable[[SentControl], list[NewEvent]]] = {
    "presence": set_presence,
    "link": link_thread,
    "rename": rename_thread,
    "continue": continue_council,
    "participation": set_policy,
    "vote": call_vote,
    "admit": admit_turn,
    "drop": drop_turn,
    "allow": answer_tool_request,
    "deny": answer_tool_request,
}
