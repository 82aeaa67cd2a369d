"""What people tell a conversation beside their turns: its name; and of one that the host leads, to
go on, to take turns another way, to let a held turn in."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from moot.core.conversations import decisions, turns
from moot.core.councils import decide
from moot.core.councils.answer_loops import chain_limit
from moot.core.errors import BadRequest, NotFound, ThreadPaused
from moot.core.events import NewEvent
from moot.core.speaker import Speaker
from moot.core.state.conversation import TITLE, Conversation, as_title, title_of
from moot.core.state.council_policy import Policy, meaningless
from moot.core.state.run import Run
from moot.core.text.names import full_name, is_person
from moot.core.threads import side_threads
from moot.core.threads.presence import STATES
from moot.core.workflows.graph import Flow

if TYPE_CHECKING:
    from moot.core.threads.decide import Control

MOST_ROUNDS = 100


def _event(type_: str, payload: dict[str, Any], given: "Control", talk: Conversation) -> NewEvent:
    payload = {"conversationId": talk.conversation_id, **payload}
    return NewEvent(type_, payload, given.node_id, cause=talk.last_seq)


def go_on(
    run: Run, flow: Flow, talk: Conversation, given: "Control", sender: str
) -> list[NewEvent]:
    """``true`` or ``{"rounds": n}``."""
    if talk.floor is None and chain_limit(talk.chain) is None:
        raise BadRequest("Nobody leads this conversation; set participation first.")
    said = given.content["continue"]
    if said is not True and not isinstance(said, dict):
        raise BadRequest('To go on, say true or {"rounds": n}.', field="continue")
    rounds = said.get("rounds") if isinstance(said, dict) else None
    if rounds is not None and (type(rounds) is not int or not 1 <= rounds <= MOST_ROUNDS):
        raise BadRequest(f"rounds is 1 to {MOST_ROUNDS}.", field="continue.rounds")
    payload: dict[str, Any] = {"by": sender, "via": given.who.principal}
    if rounds is not None:
        payload["rounds"] = rounds
    return [_event("moot.participation.continued", payload, given, talk)]


def lead(run: Run, flow: Flow, talk: Conversation, given: "Control", sender: str) -> list[NewEvent]:
    """A policy. The members are those who may speak now."""
    try:
        msgspec.convert(given.content["participation"], Policy)
    except msgspec.ValidationError as error:
        raise BadRequest(f"participation does not fit: {error}", field="participation") from None
    if problem := meaningless(given.content["participation"]):
        raise BadRequest(problem, field="participation")
    moderator = given.content["participation"].get("moderator")
    known = talk.floor.members if talk.floor is not None else {}
    names = list(talk.roster if talk.roster is not None else talk.state.members)
    names = [name for name in names if not is_person(name)]
    if moderator is not None and moderator not in names:
        raise BadRequest(
            "The moderator must be among the participants.", field="participation.moderator",
            roster=names,
        )  # fmt: skip
    members = []
    for name in names:
        found = talk.state.members.get(name)
        if name in known:
            profile, driven = known[name].profile, known[name].driven
        else:
            profile, driven = (found.profile if found else {}), True
        member = {"agentId": name, "profile": profile, "driven": driven}
        members.append({**member, "outside": True} if found and found.outside else member)
    payload = {
        "policy": given.content["participation"],
        "members": members,
        "by": sender,
        "via": given.who.principal,
    }
    return [_event("moot.participation.set", payload, given, talk)]


def put_to_vote(
    run: Run, flow: Flow, talk: Conversation, given: "Control", sender: str
) -> list[NewEvent]:
    """``{"decision": TEXT, "close": true}``; without a text what the moderator has proposed."""
    if talk.floor is None:
        raise BadRequest("Nobody leads this conversation; set participation first.")
    if talk.state.paused:
        raise ThreadPaused(
            "The conversation is paused; nobody votes before it goes on.",
            thread=talk.conversation_id,
            participant=sender,
        )
    said = given.content["vote"]
    said = said if isinstance(said, dict) else {}
    text = said.get("decision", talk.floor.proposal)
    if not isinstance(text, str) or not 1 <= len(text.strip()) <= decisions.LONGEST_TEXT:
        raise BadRequest(
            f"Say what is put to the vote, in 1 to {decisions.LONGEST_TEXT} characters.",
            field="vote.decision",
        )
    payload: dict[str, Any] = {"decision": text, "close": said.get("close") is True}
    payload |= {"by": sender, "via": given.who.principal}
    return [
        *decide.unasked(flow.nodes[given.node_id], talk, given.at),
        _event("moot.vote.called", payload, given, talk),
    ]


def _held(talk: Conversation, given: "Control", word: str) -> tuple[str, dict[str, Any]]:
    name = str(given.content[word])
    found = talk.floor.held.get(name) if talk.floor is not None else None
    if found is None:
        raise NotFound("No such turn is held back here.", held=name[:64])
    return name, found


def admit(
    run: Run, flow: Flow, talk: Conversation, given: "Control", sender: str
) -> list[NewEvent]:
    """The turn is said now, by whoever would have said it, because a person let it in."""
    name, said = _held(talk, given, "admit")
    who = Speaker("moot", (str(said.get("speakerId", "")),), admin=True)
    node = flow.nodes[given.node_id]
    index = talk.turns + 1
    turn = turns.new_turn(
        talk.conversation_id, index, "agent", str(said["speakerId"]), said["content"], given.at,
        talk.group_id,
    )  # fmt: skip
    turn |= {key: said[key] for key in ("to", "meta", "agent") if key in said}
    turn["via"] = who.principal
    admitted = {"held": name, "by": sender, "via": given.who.principal}
    return [
        _event("moot.turn.admitted", admitted, given, talk),
        *turns.exchanged(run, flow, node, talk, turn, given.at),
    ]


def drop(run: Run, flow: Flow, talk: Conversation, given: "Control", sender: str) -> list[NewEvent]:
    name, _ = _held(talk, given, "drop")
    dropped = {"held": name, "by": sender, "via": given.who.principal}
    return [_event("moot.turn.dropped", dropped, given, talk)]


def agree(
    run: Run, flow: Flow, talk: Conversation, given: "Control", sender: str
) -> list[NewEvent]:
    """``allow`` and ``deny`` name what was asked."""
    events = []
    for word in ("allow", "deny"):
        if word not in given.content:
            continue
        name = str(given.content[word])
        found = talk.floor.asks.get(name) if talk.floor is not None else None
        if found is None or found.allowed is not None:
            raise NotFound("Nobody asks that here any more.", askId=name[:64])
        payload = {
            "askId": name,
            "allowed": word == "allow",
            "by": sender,
            "via": given.who.principal,
        }
        events.append(
            NewEvent(
                "moot.tool.answered",
                {"conversationId": talk.conversation_id, **payload},
                given.node_id,
                cause=found.seq,
            )
        )
    return events


def rename(
    run: Run, flow: Flow, talk: Conversation, given: "Control", sender: str
) -> list[NewEvent]:
    """``TITLE``: one line that can be read."""
    title = as_title(given.content["rename"])
    if title is None:
        raise BadRequest(TITLE, field="rename")
    if title == title_of(run, talk):
        return []
    payload = {"title": title, "by": sender, "via": given.who.principal}
    return [_event("moot.thread.renamed", payload, given, talk)]


def present(
    run: Run, flow: Flow, talk: Conversation, given: "Control", sender: str
) -> list[NewEvent]:
    """``STATE``: written down when it is another one."""
    state = given.content["presence"]
    if state not in STATES:
        raise BadRequest(f"presence is one of {', '.join(STATES)}.", field="presence")
    if talk.state.presence.get(full_name(sender)) == state:
        return []
    payload = {"from": sender, "state": state, "via": given.who.principal}
    return [_event("moot.presence.changed", payload, given, talk)]


LEADING: dict[str, Callable[..., list[NewEvent]]] = {
    "presence": present,
    "link": side_threads.link,
    "rename": rename,
    "continue": go_on,
    "participation": lead,
    "vote": put_to_vote,
    "admit": admit,
    "drop": drop,
    "allow": agree,
    "deny": agree,
}
