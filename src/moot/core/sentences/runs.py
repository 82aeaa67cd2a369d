"""Sentences about runs: nodes, values, questions, workers, deliveries and effects."""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from moot.core.payloads.deployments import (
    CanaryAdjusted,
    DeploymentPromoted,
    DeploymentRolledBack,
    DeploymentStateChanged,
)
from moot.core.payloads.interrupts import (
    ApprovalGranted,
    ApprovalOverridden,
    ApprovalRejected,
    InterruptRequested,
    InterruptResolved,
)
from moot.core.payloads.memory import (
    EffectAbandoned,
    EffectFinished,
    EffectStarted,
    MemoryRead,
    MemoryWritten,
)
from moot.core.payloads.nodes import (
    ArtifactCreated,
    CapabilityInsufficient,
    ChannelWritten,
    LogAppended,
    LoopbackLimit,
    NodeCancelled,
    NodeCompleted,
    NodeDispatched,
    NodeFailed,
    NodeRetried,
    NodeSkipped,
    NodeStarted,
    OutputChunk,
    VariableChanged,
)
from moot.core.payloads.runs import (
    CapBreached,
    DeliveryAttempted,
    PauseBegan,
    PauseRequested,
    RefusalDiverged,
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
    PeerAsked,
    PeerAskedAnew,
    RemoteChildStopped,
    SupervisorDecided,
    WorkersJoined,
)
from moot.core.sentences.forks import describe_origin
from moot.core.sentences.sentence import (
    LONGEST_FIELD,
    Names,
    Sentence,
    after_colon,
    brief,
    error_text,
    in_brackets,
)

#: start of the provider key of a model call; the events of the invocation report such a call
MODEL_EFFECT = "model:"
#: fields of a question that name it
QUESTION_FIELDS = ("title", "customKind", "eventType")


def _run_started(payload: RunStarted, names: Names) -> str:
    origin = f", {describe_origin(payload.forked_from)}" if payload.forked_from else ""
    inputs = f" with {brief(payload.inputs)}" if payload.inputs else ""
    return f"run started{origin}{inputs}"


def _node_started(payload: NodeStarted, names: Names) -> str:
    again = f" again (attempt {payload.attempt})" if payload.attempt != 1 else ""
    return f"started{again}"


def _node_completed(payload: NodeCompleted, names: Names) -> Sentence:
    outputs = brief(payload.outputs, LONGEST_FIELD) if payload.outputs else ""
    return Sentence(outputs, "completed", "completed")


def _node_retried(payload: NodeRetried, names: Names) -> Sentence:
    text = f"{error_text(payload.last_error)}; again in {payload.delay_ms / 1000:g} s"
    return Sentence(f"{text} (attempt {payload.attempt})", "retried", "failed")


def _child_dispatched(payload: NodeDispatched, names: Names) -> str:
    if payload.child_status == "running":
        return f"handed work to {payload.child_run_id}"
    return f"child {payload.child_run_id} {payload.child_status}"


def _variable_changed(payload: VariableChanged, names: Names) -> str:
    value = "(sealed)" if payload.next is UNSET else brief(payload.next, LONGEST_FIELD)
    return f"{payload.name} = {value}"


def _effect(payload: EffectStarted | EffectFinished | EffectAbandoned, names: Names) -> str | None:
    error = payload.error if isinstance(payload, EffectFinished) else None
    if payload.provider_key.startswith(MODEL_EFFECT) and not error:
        return None
    verb = payload.event_type.rpartition(".")[2]
    return f"effect {payload.provider_key} {verb}{after_colon(error_text(error))}"


def _question(payload: InterruptRequested, names: Names) -> Sentence | None:
    """Return None for a conversation, which reports itself with its first turn."""
    if payload.kind.startswith("conversation."):
        return None
    questions = payload.data.get("questions")
    texts = [str(one.get("question", "")) for one in questions or () if isinstance(one, dict)]
    titles = [payload.data[name] for name in QUESTION_FIELDS if payload.data.get(name)]
    text = " ".join(texts) or str(titles[0] if titles else "")
    return Sentence(brief(text), "question", f"asks ({payload.kind})")


def _answer(payload: InterruptResolved, names: Names) -> str:
    if payload.reason == "timeout":
        return "nobody answered in time"
    value = payload.resume_value
    text = "" if value is UNSET or value is None else brief(value, LONGEST_FIELD)
    name = names(payload.resolved_by) if payload.resolved_by else "somebody"
    return f"answered by {name}{after_colon(text)}"


def _approval_granted(payload: ApprovalGranted, names: Names) -> str:
    progress = payload.quorum_progress
    count = f"{progress.get('granted')} of {progress.get('required')}" if progress else ""
    return f"granted by {names(payload.principal)}{in_brackets(count)}"


def _supervisor_decided(payload: SupervisorDecided, names: Names) -> str:
    decision = payload.decision
    workers = ", ".join(map(str, decision.get("nextWorkerIds") or ()))
    confidence = f" (confidence {decision['confidence']})" if "confidence" in decision else ""
    kind = f"{decision.get('kind')}{f' [{workers}]' if workers else ''}"
    return f"decided {kind}{confidence}{in_brackets(decision.get('reason'))}"


def _handoff_stepped(payload: HandoffStepped, names: Names) -> str:
    keys = in_brackets(", ".join(payload.harvested_keys or ()))
    return f"{payload.worker_id} {payload.phase}{keys}{after_colon(error_text(payload.error))}"


def _workers_joined(payload: WorkersJoined, names: Names) -> str:
    counts = {
        "completed": payload.completed_count,
        "failed": payload.failed_count,
        "cancelled": payload.cancelled_count,
    }
    parts = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"workers are back ({payload.join_outcome}): {parts}"


def _replay_diverged(payload: ReplayDiverged, names: Names) -> str:
    place = f"at #{payload.at_sequence} ({payload.divergence_kind})"
    return f"went another way than its source {place}"


def _deployment_promoted(payload: DeploymentPromoted, names: Names) -> str:
    share = "" if payload.canary_percent is None else f" for {payload.canary_percent} % of runs"
    return f"{payload.agent_id} {payload.to_version} is {payload.to_state} now{share}"


RUN_SENTENCES: dict[type, Callable[[Any, Names], Sentence | str | None]] = {
    RunStarted: _run_started,
    RunInitiated: lambda p, names: f"started by {p.persona} ({p.roster_id}) · {p.trigger_source}",
    DeliveryAttempted: lambda p, names: f"delivery of {p.subscription_id}, attempt {p.attempt}",
    RunCompleted: lambda p, names: "run completed",
    RunFailed: lambda p, names: f"run failed{after_colon(error_text(p.error))}",
    RunDeadLettered: lambda p, names: f"given up after {p.attempts} attempts",
    RunCancelled: lambda p, names: f"run cancelled{in_brackets(p.reason)}",
    PauseBegan: lambda p, names: f"run paused{in_brackets(p.reason)}",
    RunResumed: lambda p, names: f"run resumed{in_brackets(p.reason)}",
    PauseRequested: lambda p, names: (
        f"run will pause once its running nodes are done{in_brackets(p.reason)}"
    ),
    CapBreached: lambda p, names: f"limit {p.kind} is reached: {p.observed} of {p.limit}",
    ReplayDiverged: _replay_diverged,
    RefusalDiverged: lambda p, names: (
        f"a model refused in the replay or in its source alone at #{p.at_sequence}"
    ),
    NodeStarted: _node_started,
    NodeCompleted: _node_completed,
    NodeFailed: lambda p, names: Sentence(error_text(p.error), "failed", "failed"),
    NodeSkipped: lambda p, names: Sentence(p.reason, "skipped", "skipped"),
    NodeCancelled: lambda p, names: Sentence(p.reason, "cancelled", "cancelled"),
    NodeRetried: _node_retried,
    NodeDispatched: _child_dispatched,
    VariableChanged: _variable_changed,
    ChannelWritten: lambda p, names: f"{p.channel} ← {brief(p.value, LONGEST_FIELD)}",
    ArtifactCreated: lambda p, names: f"left artifact {p.artifact_id} ({p.artifact_type})",
    OutputChunk: lambda p, names: brief(p.chunk),
    LogAppended: lambda p, names: f"{p.level}: {brief(p.message)}",
    LoopbackLimit: lambda p, names: f"the loop is at its bound of {p.limit}",
    CapabilityInsufficient: lambda p, names: (
        f"model {p.model} lacks {', '.join(p.missing_capabilities)}"
    ),
    MemoryWritten: lambda p, names: f"{'forgot' if p.deleted else 'remembered'} {p.memory_id}",
    MemoryRead: lambda p, names: f"read the memory {p.memory_ref}",
    EffectStarted: _effect,
    EffectFinished: _effect,
    EffectAbandoned: _effect,
    InterruptRequested: _question,
    InterruptResolved: _answer,
    ApprovalOverridden: lambda p, names: (
        f"{names(p.principal)} set the approvers aside{in_brackets(p.reason)}"
    ),
    ApprovalGranted: _approval_granted,
    ApprovalRejected: lambda p, names: f"rejected by {names(p.principal)}{in_brackets(p.reason)}",
    SupervisorDecided: _supervisor_decided,
    HandoffStepped: _handoff_stepped,
    ConfidenceEscalated: lambda p, names: (
        f"confidence {p.confidence} is below {p.floor}: a person must look"
    ),
    FannedOut: lambda p, names: f"{p.child_count} workers begin at once",
    WorkersJoined: _workers_joined,
    ChildForked: lambda p, names: f"child {p.child_run_id} goes on as {p.fork_run_id}",
    PeerAsked: lambda p, names: f"asks {p.peer} for a run of {p.workflow_id}",
    PeerAskedAnew: lambda p, names: f"asks {p.peer} for a run of {p.workflow_id} of its own",
    RemoteChildStopped: lambda p, names: f"the child run on {p.peer} is stopped: {p.outcome}",
    DeploymentPromoted: _deployment_promoted,
    DeploymentRolledBack: lambda p, names: (
        f"{p.agent_id} is back from {p.from_version} to {p.to_version}{in_brackets(p.reason)}"
    ),
    CanaryAdjusted: lambda p, names: f"{p.agent_id} {p.version} gets {p.to_percent} % of runs",
    DeploymentStateChanged: lambda p, names: f"{p.agent_id} {p.version} is {p.to_state} now",
}
