"""Apply the answers of invited members to the floor."""

from typing import Any

from moot.core.payloads.councils import InvitationAnswered
from moot.core.state.floor import FAILED_OUTCOMES, Floor, FloorRequest, Invitation, TurnSummary


def end_invitation(floor: Floor, payload: InvitationAnswered) -> None:
    """Remove an invitation and apply the member's answer to it."""
    invitation_id = payload.wake_id
    invitation = floor.wakes.pop(invitation_id, None)
    floor.asks = {
        request_id: request
        for request_id, request in floor.asks.items()
        if request.wake != invitation_id
    }
    if invitation is None:
        return
    outcome = payload.outcome
    if outcome == "superseded" and invitation.task != "speak":
        return  # the host no longer wants this answer
    answer = payload.answer or {}
    match invitation.task:
        case "speak":
            floor.had[invitation.agent] = outcome
            if outcome == "superseded":
                floor.had.pop(invitation.agent, None)
                request = FloorRequest(
                    "was interrupted", seq=invitation.reply or 0, task=invitation.result
                )
                floor.asked.setdefault(invitation.agent, request)
        case "hand":
            _apply_raised_hand(floor, invitation.agent, answer, outcome)
        case "choose":
            floor.choices += 1
            _apply_choice(floor, answer)
        case "synthesise":
            _apply_synthesis(floor, answer, outcome)
        case "summarise":
            _apply_summary(floor, invitation, outcome)
        case "vote":
            floor.votes[invitation.agent] = answer if outcome == "answered" else {"vote": "abstain"}


def _apply_raised_hand(floor: Floor, name: str, answer: dict[str, Any], outcome: str) -> None:
    floor.hands = floor.hands or {}
    wants = answer.get("urgency") if answer.get("raised") is True else 0
    floor.hands[name] = float(wants) if isinstance(wants, int | float) else 0.0
    if outcome in FAILED_OUTCOMES:
        floor.had[name] = outcome


def _apply_synthesis(floor: Floor, answer: dict[str, Any], outcome: str) -> None:
    floor.unsummed = outcome in FAILED_OUTCOMES
    if not floor.unsummed:
        floor.proposal = str(answer.get("decision") or "") or None
        floor.proposed_in = -1 if outcome == "spoke" else 0  # the turn is the next event
        floor.phase = "vote" if floor.policy.vote and floor.proposal else "over"


def _apply_summary(floor: Floor, invitation: Invitation, outcome: str) -> None:
    first, until = invitation.of or (0, 0)
    floor.summed_up = until
    if outcome == "spoke":  # the turn is the next event
        floor.summary = TurnSummary(-1, first, until)


def _apply_choice(floor: Floor, answer: dict[str, Any]) -> None:
    """Apply the moderator's choice; an invalid choice falls back to the declared order."""
    if answer.get("stop") is True:
        floor.had = dict.fromkeys(floor.speakers, "moderator")
        floor.round = floor.policy.rounds + 1
        return
    wanted = answer.get("next")
    floor.chosen = wanted if wanted in floor.speakers else next_in_order(floor)


def next_in_order(floor: Floor) -> str | None:
    """Return the next member in the declared order; begin again after the last one."""
    waiting = [name for name in floor.speakers if name not in floor.had]
    if not waiting:
        floor.had = {}
    return next(iter(waiting or floor.speakers), None)
