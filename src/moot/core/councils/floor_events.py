"""The floor is given, as the log tells it; and what a turn is that comes of it."""

from typing import Any

from moot.core.councils.steps import Give, Step
from moot.core.events import NewEvent
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Wake
from moot.core.state.run import Run


def decided(run: Run, node_id: str, talk: Conversation, found: Step) -> NewEvent:
    payload: dict[str, Any] = {
        "conversationId": talk.conversation_id,
        "phase": found.phase,
        "round": found.round,
        "wakes": [
            _wake(f"{run.next_sequence}.{index}", give, talk)
            for index, give in enumerate(found.wakes)
        ],
    }
    for word, others in (("skipped", found.skipped), ("called", found.called)):
        if others:
            payload[word] = [{"agentId": name, "reason": why} for name, why in others.items()]
    if found.unclear:
        payload["unclear"] = found.unclear
    return NewEvent("moot.participation.decided", payload, node_id, cause=talk.turn_seq)


def _wake(name: str, give: Give, talk: Conversation) -> dict[str, Any]:
    told: dict[str, Any] = {
        "wakeId": name,
        "agentId": give.agent,
        "task": give.task,
        "reason": give.why,
        "turn": talk.turns,
    }
    if give.blind is not None:
        told["blind"] = give.blind
    if give.of is not None:
        told["of"] = list(give.of)
    if give.reply is not None:
        told["replyTo"] = give.reply
    if give.result:
        told["result"] = True
    return told


def about(talk: Conversation, wake: Wake) -> dict[str, Any]:
    """What a turn is: a summary, a reply, the result of a task that is still open."""
    more: dict[str, Any] = {}
    if wake.of is not None:
        more["summary"] = {"of": list(wake.of)}
    if wake.reply is not None:
        more["replyTo"] = wake.reply
    if wake.result and wake.reply in talk.tasks:
        more["kind"] = "result"
    return more
