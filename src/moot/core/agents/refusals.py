"""When a model refuses: what may be told of it, and what a replay makes of one that comes where
there was none, or stays out where there was one.
"""

from typing import Any

from moot.core.events import Event, NewEvent
from moot.core.runs import finish
from moot.core.secrets import MASK
from moot.core.state.run import Run

#: why a model stopped, where it would not answer
REFUSED = frozenset({"safety", "refusal", "content_filter"})

CODE = "replay_diverged_at_refusal"

#: by what the model gave the replay
MESSAGES = {
    "refusal": "The model answered the source and refused to answer the replay.",
    "valid": "The model refused to answer the source and answered the replay.",
}

#: so many characters in a row that stand in the question, too, are an echo of it
ECHO = 12
LONGEST_TEXT = 2000


def kind_of(answer: dict[str, Any]) -> str:
    """What a model's answer is to a replay: ``refusal``, or else ``valid``."""
    refused = answer.get("stopReason") in REFUSED or answer.get("refusalText") is not None
    return "refusal" if refused else "valid"


def without_echo(text: str, questions: list[str]) -> str:
    """The words of a refusal without what it repeats of the questions."""
    text = text[:LONGEST_TEXT]
    asked = {
        question[at : at + ECHO] for question in questions for at in range(len(question) - ECHO + 1)
    }
    hidden: set[int] = set()
    for at in range(len(text) - ECHO + 1):
        if text[at : at + ECHO] in asked:
            hidden.update(range(at, at + ECHO))
    pieces = []
    for at, letter in enumerate(text):
        if at not in hidden:
            pieces.append(letter)
        elif at - 1 not in hidden:
            pieces.append(MASK)
    return "".join(pieces)


def diverged(run: Run, event: Event, again: dict[str, Any], at: int) -> list[NewEvent]:
    """The end of a replay whose model answered otherwise than the recorded event says; nothing
    when both are of one kind."""
    original, now = kind_of(event.payload.get("result") or {}), kind_of(again)
    if original == now:
        return []
    payload = {
        "sourceRunId": event.run_id,
        "atSequence": event.sequence,
        "originalEventId": event.event_id,
        "nodeId": str(event.node_id),
        "originalEnvelopeKind": original,
        "replayEnvelopeKind": now,
    }
    if now == "refusal" and again.get("refusalText"):
        payload["refusalReason"] = again["refusalText"]
    return end_of(run, payload, at)


def end_of(run: Run, payload: dict[str, Any], at: int) -> list[NewEvent]:
    """What is told of the difference, and the end it brings."""
    told = ("atSequence", "nodeId", "originalEnvelopeKind", "replayEnvelopeKind")
    error = {
        "code": CODE,
        "message": MESSAGES[payload["replayEnvelopeKind"]],
        "details": {name: payload[name] for name in told},
    }
    node_id = payload["nodeId"]
    end = {"error": error, "failedNodeId": node_id, "durationMs": max(0, at - run.started_at)}
    return [
        NewEvent("replay.divergedAtRefusal", payload, node_id),
        *finish.stop_active(run, CODE),
        NewEvent("run.failed", end),
    ]
