"""Sentences about runs: nodes, values, questions, workers, deliveries and effects."""

from msgspec import UNSET, to_builtins

from moot.core.payloads import deployments, interrupts, memory, nodes, runs, supervisors
from moot.core.sentences.forks import describe_origin
from moot.core.sentences.sentence import (
    LONGEST_FIELD,
    Names,
    Sentence,
    SentenceRow,
    after_colon,
    brief,
    error_text,
    in_brackets,
)

#: start of the provider key of a model call; the events of the invocation report such a call
MODEL_EFFECT = "model:"
#: fields of a question that name it
QUESTION_FIELDS = ("title", "customKind", "eventType")


def _run_started(payload: runs.RunStarted, names: Names) -> str:
    origin = f", {describe_origin(to_builtins(payload.forked_from))}" if payload.forked_from else ""
    inputs = f" with {brief(payload.inputs)}" if payload.inputs else ""
    return f"run started{origin}{inputs}"


def _node_started(payload: nodes.NodeStarted, names: Names) -> str:
    again = f" again (attempt {payload.attempt})" if payload.attempt != 1 else ""
    return f"started{again}"


def _node_completed(payload: nodes.NodeCompleted, names: Names) -> Sentence:
    outputs = brief(payload.outputs, LONGEST_FIELD) if payload.outputs else ""
    return Sentence(outputs, "completed", "completed")


def _node_retried(payload: nodes.NodeRetried, names: Names) -> Sentence:
    text = f"{error_text(payload.last_error)}; again in {payload.delay_ms / 1000:g} s"
    return Sentence(f"{text} (attempt {payload.attempt})", "retried", "failed")


def _child_dispatched(payload: nodes.NodeDispatched, names: Names) -> str:
    if payload.child_status == "running":
        return f"handed work to {payload.child_run_id}"
    return f"child {payload.child_run_id} {payload.child_status}"


def _variable_changed(payload: nodes.VariableChanged, names: Names) -> str:
    value = "(sealed)" if payload.next is UNSET else brief(payload.next, LONGEST_FIELD)
    return f"{payload.name} = {value}"


def _effect(
    payload: memory.EffectStarted | memory.EffectFinished | memory.EffectAbandoned, names: Names
) -> str | None:
    error = payload.error if isinstance(payload, memory.EffectFinished) else None
    if payload.provider_key.startswith(MODEL_EFFECT) and not error:
        return None
    verb = payload.event_type.rpartition(".")[2]
    return f"effect {payload.provider_key} {verb}{after_colon(error_text(error))}"


def _question(payload: interrupts.InterruptRequested, names: Names) -> Sentence | None:
    """Return None for a conversation, which reports itself with its first turn."""
    if payload.kind.startswith("conversation."):
        return None
    questions = payload.data.get("questions")
    texts = [str(one.get("question", "")) for one in questions or () if isinstance(one, dict)]
    titles = [payload.data[name] for name in QUESTION_FIELDS if payload.data.get(name)]
    text = " ".join(texts) or str(titles[0] if titles else "")
    return Sentence(brief(text), "question", f"asks ({payload.kind})")


def _answer(payload: interrupts.InterruptResolved, names: Names) -> str:
    if payload.reason == "timeout":
        return "nobody answered in time"
    value = payload.resume_value
    text = "" if value is UNSET or value is None else brief(value, LONGEST_FIELD)
    name = names(payload.resolved_by) if payload.resolved_by else "somebody"
    return f"answered by {name}{after_colon(text)}"


def _approval_granted(payload: interrupts.ApprovalGranted, names: Names) -> str:
    progress = payload.quorum_progress
    count = f"{progress.get('granted')} of {progress.get('required')}" if progress else ""
    return f"granted by {names(payload.principal)}{in_brackets(count)}"


def _supervisor_decided(payload: supervisors.SupervisorDecided, names: Names) -> str:
    decision = payload.decision
    workers = ", ".join(decision.next_worker_ids)
    confidence = "" if decision.confidence is None else f" (confidence {decision.confidence})"
    kind = f"{decision.kind}{f' [{workers}]' if workers else ''}"
    return f"decided {kind}{confidence}{in_brackets(decision.reason)}"


def _handoff_stepped(payload: supervisors.HandoffStepped, names: Names) -> str:
    keys = in_brackets(", ".join(payload.harvested_keys or ()))
    return f"{payload.worker_id} {payload.phase}{keys}{after_colon(error_text(payload.error))}"


def _workers_joined(payload: supervisors.WorkersJoined, names: Names) -> str:
    counts = {
        "completed": payload.completed_count,
        "failed": payload.failed_count,
        "cancelled": payload.cancelled_count,
    }
    parts = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"workers are back ({payload.join_outcome}): {parts}"


def _deployment_promoted(payload: deployments.DeploymentPromoted, names: Names) -> str:
    share = "" if payload.canary_percent is None else f" for {payload.canary_percent} % of runs"
    return f"{payload.agent_id} {payload.to_version} is {payload.to_state} now{share}"


RUN_SENTENCES: dict[type, SentenceRow] = {
    runs.RunStarted: _run_started,
    runs.RunInitiated: "started by {p.persona} ({p.roster_id}) · {p.trigger_source}",
    runs.DeliveryAttempted: "delivery of {p.subscription_id}, attempt {p.attempt}",
    runs.RunCompleted: "run completed",
    runs.RunFailed: lambda p, names: f"run failed{after_colon(error_text(p.error))}",
    runs.RunDeadLettered: "given up after {p.attempts} attempts",
    runs.RunCancelled: lambda p, names: f"run cancelled{in_brackets(p.reason)}",
    runs.PauseBegan: lambda p, names: f"run paused{in_brackets(p.reason)}",
    runs.RunResumed: lambda p, names: f"run resumed{in_brackets(p.reason)}",
    runs.PauseRequested: lambda p, names: (
        f"run will pause once its running nodes are done{in_brackets(p.reason)}"
    ),
    runs.CapBreached: "limit {p.kind} is reached: {p.observed} of {p.limit}",
    runs.ReplayDiverged: (
        "went another way than its source at #{p.at_sequence} ({p.divergence_kind})"
    ),
    runs.RefusalDiverged: "a model refused in the replay or its source alone at #{p.at_sequence}",
    nodes.NodeStarted: _node_started,
    nodes.NodeCompleted: _node_completed,
    nodes.NodeFailed: lambda p, names: Sentence(error_text(p.error), "failed", "failed"),
    nodes.NodeSkipped: lambda p, names: Sentence(p.reason, "skipped", "skipped"),
    nodes.NodeCancelled: lambda p, names: Sentence(p.reason, "cancelled", "cancelled"),
    nodes.NodeRetried: _node_retried,
    nodes.NodeDispatched: _child_dispatched,
    nodes.VariableChanged: _variable_changed,
    nodes.ChannelWritten: lambda p, names: f"{p.channel} ← {brief(p.value, LONGEST_FIELD)}",
    nodes.ArtifactCreated: "left artifact {p.artifact_id} ({p.artifact_type})",
    nodes.OutputChunk: lambda p, names: brief(p.chunk),
    nodes.LogAppended: lambda p, names: f"{p.level}: {brief(p.message)}",
    nodes.LoopbackLimit: "the loop is at its bound of {p.limit}",
    nodes.CapabilityInsufficient: lambda p, names: (
        f"model {p.model} lacks {', '.join(p.missing_capabilities)}"
    ),
    memory.MemoryWritten: lambda p, names: (
        f"{'forgot' if p.deleted else 'remembered'} {p.memory_id}"
    ),
    memory.MemoryRead: "read the memory {p.memory_ref}",
    memory.EffectStarted: _effect,
    memory.EffectFinished: _effect,
    memory.EffectAbandoned: _effect,
    interrupts.InterruptRequested: _question,
    interrupts.InterruptResolved: _answer,
    interrupts.ApprovalOverridden: lambda p, names: (
        f"{names(p.principal)} set the approvers aside{in_brackets(p.reason)}"
    ),
    interrupts.ApprovalGranted: _approval_granted,
    interrupts.ApprovalRejected: lambda p, names: (
        f"rejected by {names(p.principal)}{in_brackets(p.reason)}"
    ),
    supervisors.SupervisorDecided: _supervisor_decided,
    supervisors.HandoffStepped: _handoff_stepped,
    supervisors.ConfidenceEscalated: (
        "confidence {p.confidence} is below {p.floor}: a person must look"
    ),
    supervisors.FannedOut: "{p.child_count} workers begin at once",
    supervisors.WorkersJoined: _workers_joined,
    supervisors.ChildForked: "child {p.child_run_id} goes on as {p.fork_run_id}",
    supervisors.PeerAsked: "asks {p.peer} for a run of {p.workflow_id}",
    supervisors.PeerAskedAnew: "asks {p.peer} for a run of {p.workflow_id} of its own",
    supervisors.RemoteChildStopped: "the child run on {p.peer} is stopped: {p.outcome}",
    deployments.DeploymentPromoted: _deployment_promoted,
    deployments.DeploymentRolledBack: lambda p, names: (
        f"{p.agent_id} is back from {p.from_version} to {p.to_version}{in_brackets(p.reason)}"
    ),
    deployments.CanaryAdjusted: "{p.agent_id} {p.version} gets {p.to_percent} % of runs",
    deployments.DeploymentStateChanged: "{p.agent_id} {p.version} is {p.to_state} now",
}
