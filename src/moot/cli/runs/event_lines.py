"""Render events of a run as lines for people."""

from collections.abc import Callable
from typing import Any

import click

from moot.cli.replay.lineage import describe_origin
from moot.cli.runs import agent_lines
from moot.cli.shared import output
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
    ParticipantJoined,
    ParticipantLeft,
    ThreadControlled,
)
from moot.core.payloads.interrupts import (
    ApprovalGranted,
    ApprovalReceived,
    ApprovalRejected,
    ApprovalRequested,
    ClarificationRequested,
    ClarificationResolved,
    InterruptRequested,
    InterruptResolved,
)
from moot.core.payloads.memory import EffectFinished, EffectStarted
from moot.core.payloads.nodes import (
    ArtifactCreated,
    ChannelWritten,
    LogAppended,
    NodeCancelled,
    NodeCompleted,
    NodeDispatched,
    NodeFailed,
    NodeResumed,
    NodeRetried,
    NodeSkipped,
    NodeStarted,
    NodeSuspended,
    OutputChunk,
    VariableChanged,
)
from moot.core.payloads.runs import (
    DeliveryAttempted,
    PauseBegan,
    PauseRequested,
    ReplayDiverged,
    RunCancelled,
    RunCompleted,
    RunDeadLettered,
    RunFailed,
    RunInitiated,
    RunResumed,
    RunStarted,
)
from moot.core.payloads.supervisors import (
    ChildForked,
    ConfidenceEscalated,
    FannedOut,
    HandoffStepped,
    SupervisorDecided,
    WorkersJoined,
)

StartTimes = dict[str, str]
EventRenderer = Callable[[dict[str, Any], StartTimes], str | None]


def event_line(event: dict[str, Any], started: StartTimes) -> str | None:
    """Return None for an event without meaning for a person. Record node starts in ``started``."""
    render = RENDERERS.get(event["type"])
    return render(event, started) if render else _unknown_event(event)


def summarize_event(event: dict[str, Any]) -> str:
    """Return the event in a few plain words, also where :func:`event_line` leaves it out."""
    return output.one_line(click.unstyle(event_line(event, {}) or "") or _event_name(event))


def _event_name(event: dict[str, Any]) -> str:
    action = event["payload"].get("action")
    return f"{event['type']}: {action}" if action else str(event["type"])


def _run_started(event: dict[str, Any], _: StartTimes) -> str:
    inputs, fork = event["payload"].get("inputs"), event["payload"].get("forkedFrom")
    origin = f", {describe_origin(fork)}" if isinstance(fork, dict) else ""
    return "run started" + origin + (f" with {output.shorten(inputs)}" if inputs else "")


def _roster_run_initiated(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    member = f"{payload.get('persona')} ({payload.get('rosterId')})"
    return f"started by {member} · {payload.get('triggerSource')}"


def _delivery_attempted(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    delivery = f"delivery {event['eventId']} of {payload.get('subscriptionId')}"
    return f"{delivery}, attempt {payload['attempt']}"


def _run_ended(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    return (
        f"run {event['type'].removeprefix('run.')}{_error_suffix(payload)}{_reason_suffix(payload)}"
    )


def _run_paused(event: dict[str, Any], _: StartTimes) -> str:
    return f"run {event['type'].removeprefix('run.')}{_reason_suffix(event['payload'])}"


def _pause_requested(event: dict[str, Any], _: StartTimes) -> str:
    return f"run will pause once its running nodes are done{_reason_suffix(event['payload'])}"


def _node_started(event: dict[str, Any], started: StartTimes) -> str:
    payload = event["payload"]
    started[str(event.get("nodeId"))] = event["timestamp"]
    attempt = payload.get("attempt", 1)
    text = "started" if attempt == 1 else f"started again (attempt {attempt})"
    if payload.get("dueAt"):
        seconds = output.seconds_between(event["timestamp"], payload["dueAt"])
        text += f", waits {output.format_span(seconds)}"
    return text


def _node_ended(event: dict[str, Any], started: StartTimes) -> str:
    word = event["type"].removeprefix("node.")
    mark, colour = output.MARKS.get(word, ("·", None))
    text = click.style(f"{mark} {word}", fg=colour)
    began = started.pop(str(event.get("nodeId")), None)
    if began is not None:
        text += f" in {output.format_span(output.seconds_between(began, event['timestamp']))}"
    payload = event["payload"]
    if outputs := payload.get("outputs"):
        text += f"  {output.shorten(outputs, 100)}"
    return text + _error_suffix(payload) + _reason_suffix(payload)


def _node_retried(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    pause = output.format_span(payload.get("delayMs", 0) / 1000)
    attempt = payload.get("nextAttempt") or payload.get("attempt")
    which = f" (attempt {attempt})" if attempt else ""
    failed = click.style("failed", fg="yellow")
    return f"{failed}{_error_suffix({'error': payload.get('lastError')})}; again in {pause}{which}"


def _child_dispatched(event: dict[str, Any], started: StartTimes) -> str:
    """Report the start of a child only once, though it runs again after each wait."""
    payload = event["payload"]
    child = str(payload.get("childRunId", ""))
    status, key = payload.get("childStatus", "running"), f"child {child}"
    begins = status == "running" and key not in started
    started[key] = str(event.get("timestamp", ""))
    return output.safe_line(f"handed work to {child}" if begins else f"child {child} {status}")


def _child_forked(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    return output.one_line(
        f"child {payload.get('childRunId')} goes on as {payload.get('forkRunId')}"
    )


def _variable_changed(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    value = output.shorten(payload["next"], 100) if "next" in payload else "(sealed)"
    return f"{output.safe_line(payload.get('name'))} = {value}"


def _channel_written(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    return (
        f"{output.safe_line(payload.get('channel'))} ← {output.shorten(payload.get('value'), 100)}"
    )


def _output_chunk(event: dict[str, Any], _: StartTimes) -> str:
    return output.shorten(str(event["payload"].get("chunk", "")))


def _log_appended(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    level = output.safe_line(payload.get("level", "info"))
    return f"{level}: {output.shorten(str(payload.get('message', '')))}"


def _effect_line(event: dict[str, Any], _: StartTimes) -> str | None:
    payload = event["payload"]
    if str(payload.get("providerKey", "")).startswith(agent_lines.MODEL_EFFECT) and not payload.get(
        "error"
    ):
        return None
    verb = event["type"].removeprefix("moot.effect.")
    return output.safe_line(
        f"effect {payload.get('providerKey', '')} {verb}{_error_suffix(payload)}"
    )


def _artifact_created(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    artifact = f"{payload.get('artifactId', '')} ({payload.get('artifactType', '')})"
    return f"left artifact {output.safe_line(artifact)}"


def _interrupt_requested(event: dict[str, Any], _: StartTimes) -> str | None:
    """Return None for a conversation, which reports itself with its first turn."""
    payload = event["payload"]
    kind, data = str(payload.get("kind", "")), payload.get("data", {})
    if kind.startswith("conversation."):
        return None
    questions = [str(one.get("question", "")) for one in data.get("questions", [])]
    title = next(
        (data[name] for name in ("title", "customKind", "eventType") if data.get(name)), ""
    )
    text = " ".join(questions) or str(title)
    head = f"⏸ asks ({output.safe_line(kind)}): "
    return click.style(head, fg="magenta") + output.shorten(text)


def _interrupt_resolved(event: dict[str, Any], _: StartTimes) -> str | None:
    payload = event["payload"]
    if payload.get("reason") == "timeout":
        return "nobody answered in time"
    value = payload.get("resumeValue")
    text = f": {output.shorten(value, 100)}" if value is not None else ""
    return f"answered by {output.one_line(str(payload.get('resolvedBy', 'somebody')))}{text}"


def _approval_vote(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    progress = payload.get("quorumProgress", {})
    count = f" ({progress['granted']} of {progress['required']})" if progress else ""
    word = event["type"].rpartition(".")[2]
    principal = output.one_line(str(payload.get("principal", "")))
    return f"{word} by {principal}{count}{_reason_suffix(payload)}"


def _turn_line(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    turn = payload.get("turn") or payload.get("initialTurn") or payload.get("finalTurn") or {}
    to = f" → {turn['to']}" if turn.get("to") else ""
    speaker = click.style(output.one_line(f"{turn.get('from', '')}{to}"), bold=True)
    closed = "closed: " if event["type"] == ConversationEnded.event_type else ""
    return f"{closed}{speaker}  {output.shorten(turn.get('content', ''))}"


def _supervisor_decided(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    decision = payload.get("decision", {})
    workers = ", ".join(map(str, decision.get("nextWorkerIds", [])))
    confidence = f" (confidence {decision['confidence']})" if "confidence" in decision else ""
    words = f"decided {decision.get('kind')}{f' [{workers}]' if workers else ''}"
    return output.one_line(words) + confidence + _reason_suffix(decision)


def _worker_event(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    keys = ", ".join(map(str, payload.get("harvestedKeys", [])))
    words = f"{payload.get('workerId')} {payload.get('phase')}{f' ({keys})' if keys else ''}"
    return output.one_line(words) + _error_suffix(payload)


def _run_dead_lettered(event: dict[str, Any], _: StartTimes) -> str:
    return f"given up after {event['payload'].get('attempts')} attempts"


def _confidence_escalated(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    confidence, floor = payload.get("confidence"), payload.get("floor")
    return f"confidence {confidence} is below {floor}: a person must look"


def _workers_dispatched(event: dict[str, Any], _: StartTimes) -> str:
    return f"{event['payload'].get('childCount')} workers begin at once"


def _workers_joined(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    words = ("completed", "failed", "cancelled")
    counts = (
        f"{payload.get(f'{word}Count')} {word}" for word in words if payload.get(f"{word}Count")
    )
    return output.one_line(f"workers are back ({payload.get('joinOutcome')}): {', '.join(counts)}")


def _participant_changed(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    word = event["type"].rpartition(".")[2]
    word = "has another profile" if payload.get("changed") is True else word
    return output.one_line(f"{payload.get('participantId')} {word}")


def _thread_control(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    sender = output.one_line(str(payload.get("from")))
    return f"{sender} steers: {output.shorten(payload.get('content'))}"


def _replay_diverged(event: dict[str, Any], _: StartTimes) -> str:
    payload = event["payload"]
    kind = payload.get("divergenceKind", "difference")
    return f"went another way than its source at #{payload.get('atSequence')} ({kind})"


def _no_line(event: dict[str, Any], _: StartTimes) -> None:
    """Return None, because another event reports it."""


def _unknown_event(event: dict[str, Any]) -> str:
    return f"{output.safe_line(event['type'])} {output.shorten(event['payload'], 100)}"


def _error_suffix(payload: dict[str, Any]) -> str:
    error = payload.get("error")
    if not isinstance(error, dict):
        return ""
    code = output.safe_line(error.get("code", "error"))
    return f": {code}: {output.shorten(str(error.get('message', '')))}"


def _reason_suffix(payload: dict[str, Any]) -> str:
    return f" ({output.one_line(str(payload['reason']))})" if payload.get("reason") else ""


REPORTED_BY_OTHERS = (
    NodeSuspended.event_type, NodeResumed.event_type, ApprovalRequested.event_type,
    ApprovalReceived.event_type,
    ClarificationRequested.event_type, ClarificationResolved.event_type,
)  # fmt: skip

RENDERERS: dict[str, EventRenderer] = {
    RunStarted.event_type: _run_started,
    RunCompleted.event_type: _run_ended,
    RunFailed.event_type: _run_ended,
    RunDeadLettered.event_type: _run_dead_lettered,
    RunCancelled.event_type: _run_ended,
    PauseBegan.event_type: _run_paused,
    RunResumed.event_type: _run_paused,
    NodeStarted.event_type: _node_started,
    NodeCompleted.event_type: _node_ended,
    NodeFailed.event_type: _node_ended,
    NodeSkipped.event_type: _node_ended,
    NodeCancelled.event_type: _node_ended,
    NodeRetried.event_type: _node_retried,
    NodeDispatched.event_type: _child_dispatched,
    ChildForked.event_type: _child_forked,
    VariableChanged.event_type: _variable_changed,
    ChannelWritten.event_type: _channel_written,
    OutputChunk.event_type: _output_chunk,
    LogAppended.event_type: _log_appended,
    ArtifactCreated.event_type: _artifact_created,
    InterruptRequested.event_type: _interrupt_requested,
    InterruptResolved.event_type: _interrupt_resolved,
    ApprovalGranted.event_type: _approval_vote,
    ApprovalRejected.event_type: _approval_vote,
    ConversationOpened.event_type: _turn_line,
    ConversationExchanged.event_type: _turn_line,
    ConversationEnded.event_type: _turn_line,
    ThreadControlled.event_type: _thread_control,
    ParticipantJoined.event_type: _participant_changed,
    ParticipantLeft.event_type: _participant_changed,
    SupervisorDecided.event_type: _supervisor_decided,
    HandoffStepped.event_type: _worker_event,
    ConfidenceEscalated.event_type: _confidence_escalated,
    FannedOut.event_type: _workers_dispatched,
    WorkersJoined.event_type: _workers_joined,
    ReplayDiverged.event_type: _replay_diverged,
    PauseRequested.event_type: _pause_requested,
    RunInitiated.event_type: _roster_run_initiated,
    DeliveryAttempted.event_type: _delivery_attempted,
    EffectStarted.event_type: _effect_line,
    EffectFinished.event_type: _effect_line,
    **agent_lines.AGENT_RENDERERS,
    **dict.fromkeys(REPORTED_BY_OTHERS, _no_line),
}
