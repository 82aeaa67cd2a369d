"""An event as a line for people: what happened, how long it took, what comes next."""

from collections.abc import Callable
from typing import Any

import click

from moot.cli.replay.lineage import descent
from moot.cli.runs import agent_lines
from moot.cli.shared import output

Started = dict[str, str]
Said = Callable[[dict[str, Any], Started], str | None]


def line_of(event: dict[str, Any], started: Started) -> str | None:
    """None for events that say nothing to a person. ``started`` remembers when nodes began."""
    said = LINES.get(event["type"])
    return said(event, started) if said else _other(event)


def summary(event: dict[str, Any]) -> str:
    """What happened in a few plain words, also where a follower is told by the event beside it."""
    return output.one_line(click.unstyle(line_of(event, {}) or "") or _in_words(event))


def _in_words(event: dict[str, Any]) -> str:
    action = event["payload"].get("action")
    return f"{event['type']}: {action}" if action else str(event["type"])


def _run_started(event: dict[str, Any], _: Started) -> str:
    inputs, fork = event["payload"].get("inputs"), event["payload"].get("forkedFrom")
    origin = f", {descent(fork)}" if isinstance(fork, dict) else ""
    return "run started" + origin + (f" with {output.brief(inputs)}" if inputs else "")


def _whose(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    return (
        f"started by {said.get('persona')} ({said.get('rosterId')}) · {said.get('triggerSource')}"
    )


def _delivered(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    return f"delivery {event['eventId']} of {said.get('subscriptionId')}, attempt {said['attempt']}"


def _run_ended(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    return f"run {event['type'].removeprefix('run.')}{_error(said)}{_reason(said)}"


def _run_paused(event: dict[str, Any], _: Started) -> str:
    return f"run {event['type'].removeprefix('run.')}{_reason(event['payload'])}"


def _pause_requested(event: dict[str, Any], _: Started) -> str:
    return f"run will pause once its running nodes are done{_reason(event['payload'])}"


def _node_started(event: dict[str, Any], started: Started) -> str:
    said = event["payload"]
    started[str(event.get("nodeId"))] = event["timestamp"]
    attempt = said.get("attempt", 1)
    text = "started" if attempt == 1 else f"started again (attempt {attempt})"
    if said.get("dueAt"):
        text += f", waits {output.span(output.between(event['timestamp'], said['dueAt']))}"
    return text


def _node_ended(event: dict[str, Any], started: Started) -> str:
    word = event["type"].removeprefix("node.")
    mark, colour = output.MARKS.get(word, ("·", None))
    text = click.style(f"{mark} {word}", fg=colour)
    began = started.pop(str(event.get("nodeId")), None)
    if began is not None:
        text += f" in {output.span(output.between(began, event['timestamp']))}"
    said = event["payload"]
    if outputs := said.get("outputs"):
        text += f"  {output.brief(outputs, 100)}"
    return text + _error(said) + _reason(said)


def _node_retried(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    pause = output.span(said.get("delayMs", 0) / 1000)
    attempt = said.get("nextAttempt") or said.get("attempt")
    which = f" (attempt {attempt})" if attempt else ""
    failed = click.style("failed", fg="yellow")
    return f"{failed}{_error({'error': said.get('lastError')})}; again in {pause}{which}"


def _dispatched(event: dict[str, Any], started: Started) -> str:
    """A child runs when it begins, and again after each wait: the first time it is news."""
    said = event["payload"]
    child = str(said.get("childRunId", ""))
    status, key = said.get("childStatus", "running"), f"child {child}"
    begins = status == "running" and key not in started
    started[key] = str(event.get("timestamp", ""))
    return output.line(f"handed work to {child}" if begins else f"child {child} {status}")


def _child_forked(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    return output.one_line(f"child {said.get('childRunId')} goes on as {said.get('forkRunId')}")


def _variable(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    value = output.brief(said["next"], 100) if "next" in said else "(sealed)"
    return f"{output.line(said.get('name'))} = {value}"


def _channel(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    return f"{output.line(said.get('channel'))} ← {output.brief(said.get('value'), 100)}"


def _chunk(event: dict[str, Any], _: Started) -> str:
    return output.brief(str(event["payload"].get("chunk", "")))


def _logged(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    return f"{output.line(said.get('level', 'info'))}: {output.brief(str(said.get('message', '')))}"


def _effect(event: dict[str, Any], _: Started) -> str | None:
    said = event["payload"]
    if str(said.get("providerKey", "")).startswith(agent_lines.MODEL) and not said.get("error"):
        return None
    word = event["type"].removeprefix("moot.effect.")
    return output.line(f"effect {said.get('providerKey', '')} {word}{_error(said)}")


def _artifact(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    what = f"{said.get('artifactId', '')} ({said.get('artifactType', '')})"
    return f"left artifact {output.line(what)}"


def _asked(event: dict[str, Any], _: Started) -> str | None:
    """A conversation says so itself, with its first turn."""
    said = event["payload"]
    kind, data = str(said.get("kind", "")), said.get("data", {})
    if kind.startswith("conversation."):
        return None
    questions = [str(one.get("question", "")) for one in data.get("questions", [])]
    named = next(
        (data[name] for name in ("title", "customKind", "eventType") if data.get(name)), ""
    )
    text = " ".join(questions) or str(named)
    asks = f"⏸ asks ({output.line(kind)}): "
    return click.style(asks, fg="magenta") + output.brief(text)


def _answered(event: dict[str, Any], _: Started) -> str | None:
    said = event["payload"]
    if said.get("reason") == "timeout":
        return "nobody answered in time"
    value = said.get("resumeValue")
    text = f": {output.brief(value, 100)}" if value is not None else ""
    return f"answered by {output.one_line(str(said.get('resolvedBy', 'somebody')))}{text}"


def _voted(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    progress = said.get("quorumProgress", {})
    count = f" ({progress['granted']} of {progress['required']})" if progress else ""
    word = event["type"].rpartition(".")[2]
    return f"{word} by {output.one_line(str(said.get('principal', '')))}{count}{_reason(said)}"


def _turn(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    turn = said.get("turn") or said.get("initialTurn") or said.get("finalTurn") or {}
    to = f" → {turn['to']}" if turn.get("to") else ""
    speaker = click.style(output.one_line(f"{turn.get('from', '')}{to}"), bold=True)
    closed = "closed: " if event["type"] == "conversation.closed" else ""
    return f"{closed}{speaker}  {output.brief(turn.get('content', ''))}"


def _decided(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    decision = said.get("decision", {})
    workers = ", ".join(map(str, decision.get("nextWorkerIds", [])))
    sure = f" (confidence {decision['confidence']})" if "confidence" in decision else ""
    words = f"decided {decision.get('kind')}{f' [{workers}]' if workers else ''}"
    return output.one_line(words) + sure + _reason(decision)


def _handed(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    keys = ", ".join(map(str, said.get("harvestedKeys", [])))
    words = f"{said.get('workerId')} {said.get('phase')}{f' ({keys})' if keys else ''}"
    return output.one_line(words) + _error(said)


def _given_up(event: dict[str, Any], _: Started) -> str:
    return f"given up after {event['payload'].get('attempts')} attempts"


def _too_weak(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    return f"confidence {said.get('confidence')} is below {said.get('floor')}: a person must look"


def _fanned_out(event: dict[str, Any], _: Started) -> str:
    return f"{event['payload'].get('childCount')} workers begin at once"


def _joined(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    counts = (f"{said.get(f'{word}Count')} {word}" for word in ("completed", "failed", "cancelled")
              if said.get(f"{word}Count"))  # fmt: skip
    return output.one_line(f"workers are back ({said.get('joinOutcome')}): {', '.join(counts)}")


def _took_part(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    word = event["type"].rpartition(".")[2]
    word = "has another profile" if said.get("changed") is True else word
    return output.one_line(f"{said.get('participantId')} {word}")


def _steered(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    return f"{output.one_line(str(said.get('from')))} steers: {output.brief(said.get('content'))}"


def _went_astray(event: dict[str, Any], _: Started) -> str:
    said = event["payload"]
    kind = said.get("divergenceKind", "difference")
    return f"went another way than its source at #{said.get('atSequence')} ({kind})"


def _nothing(event: dict[str, Any], _: Started) -> None:
    """Said already by the event it goes with."""


def _other(event: dict[str, Any]) -> str:
    return f"{output.line(event['type'])} {output.brief(event['payload'], 100)}"


def _error(said: dict[str, Any]) -> str:
    error = said.get("error")
    if not isinstance(error, dict):
        return ""
    code = output.line(error.get("code", "error"))
    return f": {code}: {output.brief(str(error.get('message', '')))}"


def _reason(said: dict[str, Any]) -> str:
    return f" ({output.one_line(str(said['reason']))})" if said.get("reason") else ""


SAID_BY_OTHERS = (
    "node.suspended", "node.resumed", "approval.requested", "approval.received",
    "clarification.requested", "clarification.resolved",
)  # fmt: skip

LINES: dict[str, Said] = {
    "run.started": _run_started,
    "run.completed": _run_ended,
    "run.failed": _run_ended,
    "run.dead_lettered": _given_up,
    "run.cancelled": _run_ended,
    "run.paused": _run_paused,
    "run.resumed": _run_paused,
    "node.started": _node_started,
    "node.completed": _node_ended,
    "node.failed": _node_ended,
    "node.skipped": _node_ended,
    "node.cancelled": _node_ended,
    "node.retried": _node_retried,
    "node.dispatched": _dispatched,
    "moot.child.forked": _child_forked,
    "variable.changed": _variable,
    "channel.written": _channel,
    "output.chunk": _chunk,
    "log.appended": _logged,
    "artifact.created": _artifact,
    "interrupt.requested": _asked,
    "interrupt.resolved": _answered,
    "moot.approval.granted": _voted,
    "moot.approval.rejected": _voted,
    "conversation.opened": _turn,
    "conversation.exchanged": _turn,
    "conversation.closed": _turn,
    "moot.thread.control": _steered,
    "moot.participant.joined": _took_part,
    "moot.participant.left": _took_part,
    "runOrchestrator.decided": _decided,
    "core.workflowChain.event": _handed,
    "core.workflowChain.confidence-escalated": _too_weak,
    "core.dispatch.fanOut": _fanned_out,
    "core.dispatch.join": _joined,
    "replay.diverged": _went_astray,
    "moot.pause.requested": _pause_requested,
    "roster.run.initiated": _whose,
    "trigger.delivery.attempted": _delivered,
    "moot.effect.started": _effect,
    "moot.effect.finished": _effect,
    **agent_lines.LINES,
    **dict.fromkeys(SAID_BY_OTHERS, _nothing),
}
