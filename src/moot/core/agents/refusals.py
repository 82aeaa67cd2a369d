"""Handle a model's refusal, and a replay that diverges from it."""

from collections.abc import Mapping

from moot.core.events import Event, NewEvent, new_event
from moot.core.payloads.memory import EffectFinished
from moot.core.payloads.runs import RefusalDiverged, RunFailed
from moot.core.runs import finish
from moot.core.secrets import MASK
from moot.core.state.run import Run

#: the stop reasons that mean a refusal
REFUSAL_REASONS = frozenset({"safety", "refusal", "content_filter"})

DIVERGED_CODE = "replay_diverged_at_refusal"

#: the message by the kind of answer that the replay got
MESSAGES = {
    "refusal": "The model answered the source and refused to answer the replay.",
    "valid": "The model refused to answer the source and answered the replay.",
}

#: a run of this many characters that is also in the question counts as an echo
ECHO_LENGTH = 12
LONGEST_TEXT = 2000


def answer_kind(answer: Mapping[str, object]) -> str:
    """Return ``refusal`` or ``valid``."""
    refused = answer.get("stopReason") in REFUSAL_REASONS or answer.get("refusalText") is not None
    return "refusal" if refused else "valid"


def remove_echo(text: str, questions: list[str]) -> str:
    """Mask the parts of a refusal that repeat the questions."""
    text = text[:LONGEST_TEXT]
    echoes = {
        question[at : at + ECHO_LENGTH]
        for question in questions
        for at in range(len(question) - ECHO_LENGTH + 1)
    }
    hidden: set[int] = set()
    for at in range(len(text) - ECHO_LENGTH + 1):
        if text[at : at + ECHO_LENGTH] in echoes:
            hidden.update(range(at, at + ECHO_LENGTH))
    pieces = []
    for at, letter in enumerate(text):
        if at not in hidden:
            pieces.append(letter)
        elif at - 1 not in hidden:
            pieces.append(MASK)
    return "".join(pieces)


def end_diverged_replay(
    run: Run, event: Event, answer: Mapping[str, object], at: int
) -> list[NewEvent]:
    """End a replay whose model refused where the source's did not, or the reverse.

    Return nothing when both answers are of one kind.
    """
    finished = event.payload.result if isinstance(event.payload, EffectFinished) else None
    original, replayed = answer_kind(finished or {}), answer_kind(answer)
    if original == replayed:
        return []
    refusal = str(answer.get("refusalText") or "") if replayed == "refusal" else None
    diverged = RefusalDiverged(
        source_run_id=event.run_id,
        at_sequence=event.sequence,
        original_event_id=event.event_id,
        node_id=str(event.node_id),
        original_envelope_kind=original,
        replay_envelope_kind=replayed,
        refusal_reason=refusal or None,
    )
    return divergence_events(run, diverged, at)


def divergence_events(run: Run, diverged: RefusalDiverged, at: int) -> list[NewEvent]:
    """Record the divergence and fail the run."""
    node_id = diverged.node_id
    details = {
        "atSequence": diverged.at_sequence,
        "nodeId": node_id,
        "originalEnvelopeKind": diverged.original_envelope_kind,
        "replayEnvelopeKind": diverged.replay_envelope_kind,
    }
    message = MESSAGES[diverged.replay_envelope_kind]
    error = {"code": DIVERGED_CODE, "message": message, "details": details}
    end = {"error": error, "failedNodeId": node_id, "durationMs": max(0, at - run.started_at)}
    return [
        NewEvent(diverged, node_id),
        *finish.cancel_active_nodes(run, DIVERGED_CODE),
        new_event(RunFailed.event_type, end),
    ]
