"""A person lets a led conversation go on, or puts something to the vote: what counts anew."""

from typing import Any

import msgspec

from moot.core.state.floor import FAILED, NOBODY, RUNWAY, Floor, Spent


def continued(floor: Floor, said: dict[str, Any], at: int) -> None:
    """``moot.participation.continued``: a person lets it go on; what is spent counts anew."""
    once_more(floor)
    floor.stopped, floor.streak, floor.pairs, floor.since = None, 0, {}, at
    floor.spent, floor.by_agent = Spent(), {}
    floor.called = True
    floor.unsummed = False  # the moderator is asked once more
    more = said.get("rounds")
    if floor.phase == "over" or (isinstance(more, int) and more > 0):
        rounds = floor.policy.rounds + (more if isinstance(more, int) and more > 0 else 1)
        floor.policy = msgspec.structs.replace(floor.policy, rounds=min(rounds, 1000))
        floor.phase, floor.votes, floor.proposal, floor.closer = "talk", {}, None, None
        if floor.round < floor.policy.rounds:
            floor.round, floor.had, floor.hands = floor.round + 1, {}, None


def once_more(floor: Floor) -> None:
    """Who could not answer in this round is asked again."""
    failed = {name for name, came in floor.had.items() if came in FAILED}
    floor.had = {name: came for name, came in floor.had.items() if name not in failed}
    if floor.hands is not None:
        floor.hands = {name: want for name, want in floor.hands.items() if name not in failed}
    if floor.stopped == NOBODY:
        floor.choices = 0


def time_given(floor: Floor) -> None:
    """Agents have time to go on by themselves: where they had none left, they do."""
    if floor.stopped == RUNWAY:
        floor.stopped = None


def put_to_vote(floor: Floor, said: dict[str, Any], at: int) -> None:
    """``moot.vote.called``: a person's word, so what is spent counts anew; nobody else speaks."""
    decision = str(said.get("decision", ""))
    if decision != floor.proposal:
        floor.proposal, floor.proposed_in = decision, 0
    floor.phase, floor.votes, floor.asked, floor.later = "vote", {}, {}, {}
    floor.closer = str(said.get("by", "")) if said.get("close") is True else None
    floor.stopped, floor.streak, floor.pairs, floor.since = None, 0, {}, at
    floor.spent, floor.by_agent, floor.unsummed = Spent(), {}, False
