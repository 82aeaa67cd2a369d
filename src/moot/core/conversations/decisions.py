"""What a council decided: the text, who voted how, who dissents, the turns it rests on, what is
to be done.

A decision is kept as it was sent. ``read`` understands it in each of its spellings; ``check`` says
what is wrong with it before it is recorded.
"""

from typing import Any

from msgspec import Struct

from moot.core.errors import BadRequest
from moot.core.state.conversation import Conversation
from moot.core.text.names import full_name, is_person

LONGEST_TEXT = 20_000
MOST_ENTRIES = 1000


class Vote(Struct, frozen=True, omit_defaults=True):
    by: str
    vote: str
    reason: str | None = None


class Dissent(Struct, frozen=True):
    by: str
    text: str


class Action(Struct, frozen=True, omit_defaults=True):
    text: str
    owner: str | None = None
    due: str | None = None


class Decision(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    text: str
    votes: list[Vote] = []
    dissent: list[Dissent] = []
    cited_turns: list[int] = []
    action_items: list[Action] = []
    #: a proposal that the vote did not carry is kept, too
    adopted: bool = True


def carried(votes: list[dict[str, str]]) -> bool:
    """More ayes than noes, so at least one of them: silence adopts nothing."""
    return sum({"yes": 1, "no": -1}.get(vote["vote"], 0) for vote in votes) > 0


def read(outcome: Any) -> Decision | None:
    """The decision in an outcome, if there is one that can be read."""
    try:
        return _decision(outcome)
    except BadRequest:
        return None


def check(
    outcome: Any, talk: Conversation, called: bool = False, names: tuple[str, ...] = ()
) -> None:
    """Raises BadRequest when an outcome is a decision and something about it is wrong.

    ``names``: who records it speaks for these only; empty for a person, who records for all.
    """
    found = _decision({"decision": outcome} if called else outcome, called)
    if found is None:
        return
    beyond = [index for index in found.cited_turns if not 0 <= index <= talk.turns]
    if beyond:
        raise BadRequest(
            f"There is no turn {beyond[0]} to cite; the newest is {talk.turns}.",
            field="decision.citedTurns",
            cited=beyond,
        )
    voters = [vote.by for vote in found.votes]
    if len(set(voters)) < len(voters):
        raise BadRequest("Everybody has one vote.", field="decision.votes")
    for name in [*voters, *(each.by for each in found.dissent)]:
        if names and name not in names:
            raise BadRequest(f"You cannot vote or dissent for '{name}'.", field="decision")
        if talk.roster is not None and not is_person(name) and name not in talk.roster:
            raise BadRequest(
                f"'{name}' is not on the roster of this conversation.",
                field="decision",
                roster=talk.roster,
            )


def _decision(outcome: Any, called: bool = False) -> Decision | None:
    """``called``: it was said to be a decision, so it must be one."""
    if not isinstance(outcome, dict):
        return None
    inner = outcome.get("decision")
    if isinstance(inner, dict):
        return _decision({**inner, "decision": inner.get("text")}, called=True)
    text = outcome.get("decision", outcome.get("text"))
    if not called and not isinstance(text, str):
        return None  # any other outcome is as good
    if not isinstance(text, str) or not 1 <= len(text.strip()) <= LONGEST_TEXT:
        raise BadRequest(
            f"A decision has a text of 1 to {LONGEST_TEXT} characters.", field="decision.text"
        )
    return Decision(
        text=text,
        votes=[_vote(item) for item in _named(outcome, "votes", "vote")],
        dissent=[_dissent(item) for item in _named(outcome, "dissent", "text")],
        cited_turns=_indexes(outcome.get("citedTurns", outcome.get("cites", []))),
        action_items=[_action(item) for item in _entries(outcome, "actionItems")],
        adopted=outcome.get("adopted") is not False,
    )


def _entries(outcome: dict[str, Any], field: str) -> list[Any]:
    found = outcome.get(field, [])
    if not isinstance(found, list) or len(found) > MOST_ENTRIES:
        raise BadRequest(
            f"{field} must be a list of at most {MOST_ENTRIES}.", field=f"decision.{field}"
        )
    return found


def _named(outcome: dict[str, Any], field: str, word: str) -> list[Any]:
    """``{name: what}`` is taken as well as a list."""
    found = outcome.get(field, [])
    if isinstance(found, dict):
        return [{"by": name, word: said} for name, said in found.items()]
    return _entries(outcome, field)


def _vote(item: Any) -> Vote:
    if not isinstance(item, dict) or not isinstance(item.get("vote"), str):
        raise BadRequest("A vote is {by, vote, reason?}.", field="decision.votes")
    return Vote(_name(item, "votes"), item["vote"], _optional(item, "reason", "votes"))


def _dissent(item: Any) -> Dissent:
    said = item.get("text", item.get("reason")) if isinstance(item, dict) else None
    if not isinstance(said, str):
        raise BadRequest("A dissent is {by, text}.", field="decision.dissent")
    return Dissent(_name(item, "dissent"), said)


def _action(item: Any) -> Action:
    if isinstance(item, str) and item:
        return Action(item)
    if not isinstance(item, dict) or not isinstance(item.get("text"), str) or not item["text"]:
        raise BadRequest("An action item is {text, owner?, due?}.", field="decision.actionItems")
    owner = _optional(item, "owner", "actionItems")
    return Action(item["text"], owner, _optional(item, "due", "actionItems"))


def _name(item: dict[str, Any], field: str) -> str:
    name = item.get("by")
    if not isinstance(name, str) or not 1 <= len(name) <= 256:
        raise BadRequest("Say who: by.", field=f"decision.{field}.by")
    return full_name(name)


def _optional(item: dict[str, Any], key: str, field: str) -> str | None:
    found = item.get(key)
    if found is not None and not isinstance(found, str):
        raise BadRequest(f"{key} must be a text.", field=f"decision.{field}.{key}")
    return found


def _indexes(found: Any) -> list[int]:
    if not isinstance(found, list) or not all(type(index) is int for index in found):
        raise BadRequest("citedTurns is a list of turn indexes.", field="decision.citedTurns")
    return found
