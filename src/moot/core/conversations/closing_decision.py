"""Parse and check the decision of a council.

A decision is stored as it was sent. ``read_decision`` understands each of its spellings.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from moot.core.errors import BadRequest
from moot.core.state import participants
from moot.core.state.conversation import Conversation
from moot.core.text.names import full_name, is_person

LONGEST_TEXT = 20_000
MOST_ENTRIES = 1000


class Vote(Struct, frozen=True, omit_defaults=True):
    """One participant's vote."""

    by: str
    vote: str
    reason: str | None = None


class Dissent(Struct, frozen=True):
    """One participant's objection to the decision."""

    by: str
    text: str


class Action(Struct, frozen=True, omit_defaults=True):
    """One task that follows from the decision."""

    text: str
    owner: str | None = None
    due: str | None = None


class CouncilDecision(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A council's decision, with its votes, dissent, cited turns and action items."""

    text: str
    votes: list[Vote] = []
    dissent: list[Dissent] = []
    cited_turns: list[int] = []
    action_items: list[Action] = []
    #: false when the vote did not carry the proposal
    adopted: bool = True


def read_decision(outcome: Any) -> CouncilDecision | None:
    """Return the decision in an outcome, or None when it has no readable one."""
    try:
        return _parse_decision(outcome)
    except BadRequest:
        return None


def check_decision(
    outcome: Any, conversation: Conversation, is_decision: bool = False, names: tuple[str, ...] = ()
) -> None:
    """Raise BadRequest when an outcome is a decision with a mistake.

    ``names`` lists the participants the sender may vote for. It is empty for a person, who may
    record all votes.
    """
    decision = _parse_decision({"decision": outcome} if is_decision else outcome, is_decision)
    if decision is None:
        return
    beyond = [index for index in decision.cited_turns if not 0 <= index <= conversation.turns]
    if beyond:
        raise BadRequest(
            f"There is no turn {beyond[0]} to cite; the newest is {conversation.turns}.",
            field="decision.citedTurns",
            cited=beyond,
        )
    voters = [vote.by for vote in decision.votes]
    if len(set(voters)) < len(voters):
        raise BadRequest("Everybody has one vote.", field="decision.votes")
    for name in [*voters, *(dissent.by for dissent in decision.dissent)]:
        if names and name not in names:
            raise BadRequest(f"You cannot vote or dissent for '{name}'.", field="decision")
        is_listed = participants.find_participant(conversation, name).listed
        if conversation.closed and not is_listed and not is_person(name):
            raise BadRequest(
                f"'{name}' is not on the roster of this conversation.",
                field="decision",
                roster=participants.roster_names(conversation),
            )


def _parse_decision(outcome: Any, is_decision: bool = False) -> CouncilDecision | None:
    """Return the decision in an outcome. ``is_decision`` refuses any other outcome."""
    if not isinstance(outcome, dict):
        return None
    inner = outcome.get("decision")
    if isinstance(inner, dict):
        return _parse_decision({**inner, "decision": inner.get("text")}, is_decision=True)
    text = outcome.get("decision", outcome.get("text"))
    if not is_decision and not isinstance(text, str):
        return None  # an outcome need not be a decision
    if not isinstance(text, str) or not 1 <= len(text.strip()) <= LONGEST_TEXT:
        raise BadRequest(
            f"A decision has a text of 1 to {LONGEST_TEXT} characters.", field="decision.text"
        )
    return CouncilDecision(
        text=text,
        votes=[_parse_vote(item) for item in _entries_by_name(outcome, "votes", "vote")],
        dissent=[_parse_dissent(item) for item in _entries_by_name(outcome, "dissent", "text")],
        cited_turns=_parse_indexes(outcome.get("citedTurns", outcome.get("cites", []))),
        action_items=[_parse_action(item) for item in _entries(outcome, "actionItems")],
        adopted=outcome.get("adopted") is not False,
    )


def _entries(outcome: Mapping[str, object], field: str) -> list[Any]:
    entries = outcome.get(field, [])
    if not isinstance(entries, list) or len(entries) > MOST_ENTRIES:
        raise BadRequest(
            f"{field} must be a list of at most {MOST_ENTRIES}.", field=f"decision.{field}"
        )
    return entries


def _entries_by_name(outcome: Mapping[str, object], field: str, word: str) -> list[Any]:
    """Return a list of entries. ``{name: value}`` is accepted as well."""
    entries = outcome.get(field, [])
    if isinstance(entries, dict):
        return [{"by": name, word: value} for name, value in entries.items()]
    return _entries(outcome, field)


def _parse_vote(item: Any) -> Vote:
    if not isinstance(item, dict) or not isinstance(item.get("vote"), str):
        raise BadRequest("A vote is {by, vote, reason?}.", field="decision.votes")
    return Vote(_parse_name(item, "votes"), item["vote"], _optional_text(item, "reason", "votes"))


def _parse_dissent(item: Any) -> Dissent:
    text = item.get("text", item.get("reason")) if isinstance(item, dict) else None
    if not isinstance(text, str):
        raise BadRequest("A dissent is {by, text}.", field="decision.dissent")
    return Dissent(_parse_name(item, "dissent"), text)


def _parse_action(item: Any) -> Action:
    if isinstance(item, str) and item:
        return Action(item)
    if not isinstance(item, dict) or not isinstance(item.get("text"), str) or not item["text"]:
        raise BadRequest("An action item is {text, owner?, due?}.", field="decision.actionItems")
    owner = _optional_text(item, "owner", "actionItems")
    return Action(item["text"], owner, _optional_text(item, "due", "actionItems"))


def _parse_name(item: Mapping[str, object], field: str) -> str:
    name = item.get("by")
    if not isinstance(name, str) or not 1 <= len(name) <= 256:
        raise BadRequest("Say who: by.", field=f"decision.{field}.by")
    return full_name(name)


def _optional_text(item: Mapping[str, object], key: str, field: str) -> str | None:
    value = item.get(key)
    if value is not None and not isinstance(value, str):
        raise BadRequest(f"{key} must be a text.", field=f"decision.{field}.{key}")
    return value


def _parse_indexes(indexes: Any) -> list[int]:
    if not isinstance(indexes, list) or not all(type(index) is int for index in indexes):
        raise BadRequest("citedTurns is a list of turn indexes.", field="decision.citedTurns")
    return indexes
