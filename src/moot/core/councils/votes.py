"""Count the votes of a council and close it with the decision."""

from typing import Any

from moot.core.conversations.decide import answer_conversation
from moot.core.conversations.turns import HOST as HOST
from moot.core.councils.host_messages import host_turn_event
from moot.core.errors import MootError
from moot.core.events import NewEvent
from moot.core.payloads.base import RecordedError
from moot.core.payloads.councils import CouncilStopped
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Floor
from moot.core.state.run import Run
from moot.core.workflows.flow import Flow, FlowNode


def is_carried(votes: list[dict[str, str]]) -> bool:
    """Return whether there are more votes for yes than for no. Abstentions count for neither."""
    return sum({"yes": 1, "no": -1}.get(vote["vote"], 0) for vote in votes) > 0


def close_with_votes(
    run: Run, flow: Flow, node: FlowNode, conversation: Conversation, floor: Floor, at: int
) -> list[NewEvent]:
    """Close the council by its moderator, or in the name of the person who called the vote.

    The decision records every vote and the dissent. If the close is refused, the council stops.
    """
    votes = [
        {"by": name, "vote": str(vote.get("vote", "abstain")), "reason": str(vote["reason"])}
        if vote.get("reason")
        else {"by": name, "vote": str(vote.get("vote", "abstain"))}
        for name, vote in floor.votes.items()
    ]
    # a person may decide against the votes
    rejected = floor.closer is None and floor.policy.vote and not is_carried(votes)
    text = f"Not adopted: {floor.proposal}" if rejected else floor.proposal
    decision: dict[str, Any] = {"text": text, "votes": votes}
    if rejected:
        decision["adopted"] = False
    decision["dissent"] = [
        {"by": vote["by"], "text": vote.get("reason", "votes no")}
        for vote in votes
        if vote["vote"] == "no"
    ]
    if floor.proposed_in:
        decision["citedTurns"] = [floor.proposed_in]
    value: dict[str, Any] = {"operation": "close", "decision": decision}
    if floor.closer is not None:
        speaker = Speaker(HOST, (floor.closer, *floor.votes), admin=True)
    else:
        moderator = str(floor.policy.moderator)
        content = text if rejected else f"Decided: {text}"
        value["turn"] = {"role": "agent", "speakerId": moderator, "content": content}
        speaker = Speaker(HOST, (moderator, *floor.votes), admin=True)
    try:
        return answer_conversation(
            run, flow, node, GateAnswer(node_id=node.id, value=value, who=speaker, at=at)
        )
    except MootError as refusal:  # the moderator is muted, or the outcome does not fit its schema
        return _close_refused(node, conversation, refusal, at)


def _close_refused(
    node: FlowNode, conversation: Conversation, refusal: MootError, at: int
) -> list[NewEvent]:
    """Stop the council until a person closes it or lets it continue."""
    error = RecordedError(code=refusal.code, message=refusal.message)
    payload = CouncilStopped(
        conversation_id=conversation.conversation_id, reason="close", error=error
    )
    text = f"It could not be closed: {refusal.message} A person can close it, or /continue."
    return [
        NewEvent(payload, node.id, cause=conversation.turn_seq),
        host_turn_event(node, conversation, text, at),
    ]
