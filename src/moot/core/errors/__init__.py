"""All errors of the host. Each class has its code; the HTTP layer only copies it.

MootError
├── BadRequest                  400  validation_error
│   ├── UnsupportedStreamMode        unsupported_stream_mode
│   ├── UnsupportedMockProvider      unsupported_mock_provider
│   ├── UnsupportedEngineVersion     unsupported_force_engine_version
│   ├── CycleDetected                cycle_detected
│   ├── UnsupportedNodeType          unsupported_node_type
│   ├── CapabilityRequired           capability_required
│   ├── ChannelAccessDenied          channel_access_denied
│   └── BadRoot                      bad_request
├── Unauthenticated             401  unauthenticated
│   ├── KeyRevoked                   key_revoked
│   └── KeyExpired                   key_expired
├── Forbidden                   403  forbidden
│   ├── MockProviderForbidden        mock_provider_forbidden
│   ├── ForceEngineForbidden         force_engine_version_forbidden
│   └── NotYourName                  forbidden
├── NotFound                    404  not_found
│   ├── RunNotFound                  run_not_found
│   ├── WorkflowNotFound             workflow_not_found
│   ├── ArtifactNotFound             artifact_not_found
│   ├── AgentNotFound                agent_not_found
│   └── InterruptNotFound            interrupt_not_found
├── MethodNotAllowed            405  method_not_allowed
├── Conflict                    409  conflict
│   ├── RunTerminal                  run_terminal
│   ├── RunAlreadyActive             run_already_active
│   ├── KeyMismatch                  idempotency_key_mismatch
│   ├── EngineVersionMismatch        engine_version_mismatch
│   ├── InterruptAlreadyResolved     interrupt_already_resolved
│   ├── ConversationClosed           conversation_closed
│   ├── MessageIdConflict            message_id_conflict
│   ├── ParticipantMuted             participant_muted
│   ├── ThreadPaused                 thread_paused
│   ├── RunPaused                    conflict
│   ├── RosterClosed                 roster_closed
│   ├── RosterFull                   roster_full
│   └── SequenceConflict             sequence_conflict (the caller folds again and retries)
├── Gone                        410  gone
│   ├── InterruptExpired             interrupt_expired
│   └── InterruptGone                interrupt_gone
├── BodyTooLarge                413  payload_too_large
├── Unprocessable               422  validation_error
│   ├── UnknownChildWorkflow         unknown_child_workflow
│   ├── NoActiveDeployment           no_active_deployment
│   ├── MemorySnapshotUnavailable    replay_memory_snapshot_unavailable
│   ├── PeerUnknown                  peer_unknown
│   ├── InterruptCancelled           interrupt_cancelled
│   ├── SecretGone                   fork_secret_gone
│   ├── CorrelationMismatch          correlation_mismatch
│   ├── ReplayDivergedAtRefusal      replay_diverged_at_refusal
│   ├── SpeakerMissing               validation_error
│   └── CouncilRefusal               (finer codes of councils; see api/dialect.py)
│       ├── SpeakerNotParticipant    conversation_speaker_not_participant
│       ├── RosterExceeded           conversation_roster_exceeded
│       └── ParticipantNotInvited    participant_not_invited
├── RateLimited                 429  rate_limited
├── NotProvided                 501  capability_not_provided
└── Unavailable                 503  service_unavailable
    └── StorageFailed                service_unavailable (the disk refused; nothing was written)
"""

from typing import Any, ClassVar


class MootError(Exception):
    """A refusal with a code, a sentence and a way out. The host has changed nothing."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    #: the same request may succeed later
    passing: ClassVar[bool] = False

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    #: seconds for the Retry-After header, if waiting helps
    retry_after: int | None = None


class BadRequest(MootError):
    code, status = "validation_error", 400


class UnsupportedStreamMode(BadRequest):
    code = "unsupported_stream_mode"

    def __init__(self, mode: str, supported: list[str]) -> None:
        super().__init__(
            f"'{mode}' is not a stream mode; use one of {', '.join(supported)}, or a comma list"
            " without 'values'.",
            requested=mode,
            supported=supported,
        )


class UnsupportedMockProvider(BadRequest):
    code = "unsupported_mock_provider"


class UnsupportedEngineVersion(BadRequest):
    code = "unsupported_force_engine_version"


class CycleDetected(BadRequest):
    code = "cycle_detected"


class UnsupportedNodeType(BadRequest):
    code = "unsupported_node_type"


class CapabilityRequired(BadRequest):
    code = "capability_required"


class ChannelAccessDenied(BadRequest):
    code = "channel_access_denied"


class BadRoot(BadRequest):
    """A path outside every root the host serves."""

    code = "bad_request"


class Unauthenticated(MootError):
    code, status = "unauthenticated", 401


class KeyRevoked(Unauthenticated):
    code = "key_revoked"


class KeyExpired(Unauthenticated):
    code = "key_expired"


class Forbidden(MootError):
    code, status = "forbidden", 403


class MockProviderForbidden(Forbidden):
    code = "mock_provider_forbidden"


class ForceEngineForbidden(Forbidden):
    code = "force_engine_version_forbidden"


class NotYourName(Forbidden):
    """A key speaks only as the participants it is bound to."""

    def __init__(self, name: str, allowed: list[str]) -> None:
        super().__init__(f"This key may not speak as '{name}'.", speakerId=name, maySpeakAs=allowed)


class NotFound(MootError):
    code, status = "not_found", 404


class RunNotFound(NotFound):
    code = "run_not_found"

    def __init__(self, run_id: str) -> None:
        super().__init__("There is no run with this id.", runId=run_id)


class WorkflowNotFound(NotFound):
    code = "workflow_not_found"

    def __init__(self, workflow_id: str, nearest: str | None = None) -> None:
        hint = f" Did you mean '{nearest}'?" if nearest else ""
        super().__init__(f"There is no workflow with this id.{hint}", workflowId=workflow_id[:128])


class ArtifactNotFound(NotFound):
    code = "artifact_not_found"


class InterruptNotFound(NotFound):
    code = "interrupt_not_found"

    def __init__(self, run_id: str, node_id: str) -> None:
        super().__init__("Nothing waits for an answer there.", runId=run_id, nodeId=node_id)


class AgentNotFound(NotFound):
    code = "agent_not_found"


class MethodNotAllowed(MootError):
    code, status = "method_not_allowed", 405

    def __init__(self, method: str, allowed: list[str]) -> None:
        message = f"{method} is not possible here; use {', '.join(allowed)}."
        super().__init__(message, allowed=allowed)


class Conflict(MootError):
    code, status = "conflict", 409


class RunTerminal(Conflict):
    code = "run_terminal"

    def __init__(self, run_id: str, run_status: str) -> None:
        message = f"The run has already ended ({run_status})."
        super().__init__(message, runId=run_id, runStatus=run_status)


class RunAlreadyActive(Conflict):
    code = "run_already_active"

    def __init__(self, active_run_id: str) -> None:
        message = "Another run of this scope is still active; wait for it or cancel it."
        super().__init__(message, activeRunId=active_run_id, activeHost="cloud", retryAfter=5)
        self.retry_after = 5


class KeyMismatch(Conflict):
    code = "idempotency_key_mismatch"


class EngineVersionMismatch(Conflict):
    code = "engine_version_mismatch"


class InterruptAlreadyResolved(Conflict):
    """Another answer came first; the details name its author."""

    code = "interrupt_already_resolved"


class ConversationClosed(Conflict):
    code = "conversation_closed"


class MessageIdConflict(Conflict):
    code = "message_id_conflict"


class ParticipantMuted(Conflict):
    code, passing = "participant_muted", True


class ThreadPaused(Conflict):
    code, passing = "thread_paused", True


class RunPaused(Conflict):
    """The request needs a run that is not paused."""

    passing = True

    def __init__(self, run_id: str) -> None:
        super().__init__("The run is paused; resume it first.", runId=run_id, runStatus="paused")


class RosterClosed(Conflict):
    code = "roster_closed"


class RosterFull(Conflict):
    code, passing = "roster_full", True


class SequenceConflict(Conflict):
    """The batch does not continue the run's log; the store wrote nothing of it."""

    code = "sequence_conflict"

    def __init__(self, run_id: str) -> None:
        super().__init__("The run moved on meanwhile; try again.", runId=run_id)


class Gone(MootError):
    code, status = "gone", 410


class InterruptExpired(Gone):
    code = "interrupt_expired"


class InterruptGone(Gone):
    code = "interrupt_gone"


class BodyTooLarge(MootError):
    code, status = "payload_too_large", 413


class Unprocessable(MootError):
    code, status = "validation_error", 422


class UnknownChildWorkflow(Unprocessable):
    code = "unknown_child_workflow"


class NoActiveDeployment(Unprocessable):
    code = "no_active_deployment"


class MemorySnapshotUnavailable(Unprocessable):
    """The memory that the source run saw is no longer stored."""

    code = "replay_memory_snapshot_unavailable"


class PeerUnknown(Unprocessable):
    code = "peer_unknown"

    def __init__(self, workflow_id: str) -> None:
        message = f"'{workflow_id}' is on a host that is not configured here; name it with --peer."
        super().__init__(message, workflowId=workflow_id)


class InterruptCancelled(Unprocessable):
    code = "interrupt_cancelled"


class SecretGone(Unprocessable):
    """A fork needs a secret of its source that is no longer stored."""

    code = "fork_secret_gone"


class CorrelationMismatch(Unprocessable):
    code = "correlation_mismatch"


class ReplayDivergedAtRefusal(Unprocessable):
    """A model refused in the replay or in its source alone; the replay failed there."""

    code = "replay_diverged_at_refusal"


class CouncilRefusal(Unprocessable):
    """The conversation does not allow the turn or the roster; the host changed nothing."""


class SpeakerMissing(Unprocessable):
    """The turn names no speaker. The code is the same in every dialect."""


class SpeakerNotParticipant(CouncilRefusal):
    code = "conversation_speaker_not_participant"


class RosterExceeded(CouncilRefusal):
    code = "conversation_roster_exceeded"


class ParticipantNotInvited(CouncilRefusal):
    code, passing = "participant_not_invited", True


class RateLimited(MootError):
    code, status = "rate_limited", 429

    def __init__(self, scope: str, limit: int, wait_ms: int) -> None:
        message = f"More than {limit} requests a second; wait {wait_ms} ms."
        super().__init__(message, retryAfterMs=wait_ms, scope=scope, limit=limit)
        self.retry_after = max(1, -(-wait_ms // 1000))


class NotProvided(MootError):
    code, status = "capability_not_provided", 501


class Unavailable(MootError):
    """The host cannot take this now; the same request may be sent again."""

    code, status = "service_unavailable", 503

    def __init__(self, message: str, retry_after: int = 1, **details: Any) -> None:
        super().__init__(message, retryAfter=retry_after, **details)
        self.retry_after = retry_after


class StorageFailed(Unavailable):
    """The disk refused the commit; nothing of it was written."""
