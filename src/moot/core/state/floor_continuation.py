"""Restart a council after a person continues it or calls a vote."""

import msgspec

from moot.core.payloads.councils import CouncilContinued, VoteCalled
from moot.core.state.floor import FAILED_OUTCOMES, NOBODY_ANSWERED, RUNWAY, Floor, FloorSpending


def apply_participation_continued(floor: Floor, payload: CouncilContinued, at: int) -> None:
    """Continue a stopped council, with new rounds if it was over."""
    ask_failed_members_again(floor)
    floor.stopped, floor.streak, floor.pairs, floor.since = None, 0, {}, at
    floor.spent, floor.by_agent = FloorSpending(), {}
    floor.called = True
    floor.unsummed = False  # the moderator is asked once more
    more = max(0, payload.rounds or 0)
    if floor.phase == "over" or more:
        rounds = floor.policy.rounds + (more or 1)
        floor.policy = msgspec.structs.replace(floor.policy, rounds=min(rounds, 1000))
        floor.phase, floor.votes, floor.proposal, floor.closer = "talk", {}, None, None
        if floor.round < floor.policy.rounds:
            floor.round, floor.had, floor.hands = floor.round + 1, {}, None


def ask_failed_members_again(floor: Floor) -> None:
    """Forget the outcomes of members that failed in this round."""
    failed = {name for name, outcome in floor.had.items() if outcome in FAILED_OUTCOMES}
    floor.had = {name: outcome for name, outcome in floor.had.items() if name not in failed}
    if floor.hands is not None:
        floor.hands = {name: urgency for name, urgency in floor.hands.items() if name not in failed}
    if floor.stopped == NOBODY_ANSWERED:
        floor.choices = 0


def lift_ttl_stop(floor: Floor) -> None:
    """Lift the stop of an expired time limit; the caller has checked that there is time left."""
    if floor.stopped == RUNWAY:
        floor.stopped = None


def apply_vote_called(floor: Floor, payload: VoteCalled, at: int) -> None:
    """Put a person's proposal to the vote. Pending requests to speak are dropped."""
    decision = payload.decision
    if decision != floor.proposal:
        floor.proposal, floor.proposed_in = decision, 0
    floor.phase, floor.votes, floor.asked, floor.later = "vote", {}, {}, {}
    floor.closer = payload.by if payload.close else None
    floor.stopped, floor.streak, floor.pairs, floor.since = None, 0, {}, at
    floor.spent, floor.by_agent, floor.unsummed = FloorSpending(), {}, False
