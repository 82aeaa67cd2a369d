"""Node types, the calls that they receive and the outcomes that they return."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, structs
from msgspec.structs import replace

from moot.core.json.nesting import is_too_deep
from moot.core.payloads.base import Payload, RecordedError
from moot.core.workflows.turn_inputs import SupervisorTurn

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


class NodeError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reason why a node failed. A retry cannot help when it is not retryable."""

    code: str
    message: str
    details: dict[str, Any] = {}
    retryable: bool = True

    def as_payload(self) -> RecordedError:
        return RecordedError(**structs.asdict(self))


class ChannelWrite(Struct, frozen=True, kw_only=True):
    """A write to a channel. A declared channel's reducer overrides the one named here."""

    channel: str
    value: Any
    reducer: str | None = None
    ttl_ms: int | None = None
    max_size: int | None = None
    #: a turn of a conversation, which cannot repeat, because its id is its index
    turn: bool = False


class Artifact(Struct, frozen=True, kw_only=True):
    artifact_type: str
    data: Any
    summary: str = ""


class Completed(Struct, frozen=True):
    """The node is done. Variables, writes and artifacts are recorded before ``node.completed``."""

    outputs: dict[str, Any] = {}
    variables: dict[str, Any] = {}
    writes: tuple[ChannelWrite, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    #: events to record before its end
    told: tuple[Payload, ...] = ()


class Failed(Struct, frozen=True):
    error: NodeError
    #: events that explain the failure and come before it
    because: tuple[Payload, ...] = ()


class Decided(Struct, frozen=True, kw_only=True):
    """A supervisor's decision at the end of its turn."""

    agent_id: str
    decision: Any
    #: the supervisor's confidence, if it reports one
    confidence: float | None = None
    #: below this confidence a person must approve, unless the run sets another threshold
    threshold: float | None = None
    #: a person has approved it
    ratified: bool = False


Outcome = Completed | Failed | Decided


def copy_json(value: T) -> T:
    """Return a copy as the log records it. Raise ValueError when JSON cannot express it."""
    try:
        copy: T = msgspec.json.decode(_encode(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"JSON cannot say this: {error}") from None
    return copy


def error_from_exception(error: BaseException) -> NodeError:
    text = f"{type(error).__name__}: {error}"[:2000]
    return NodeError(code="node_raised", message=text.encode(errors="backslashreplace").decode())


def recordable_outcome(outcome: Outcome) -> Outcome:
    """Return the outcome as the log records it, or a failure when JSON cannot express it.

    The result shares nothing with objects that the node may still change.
    """
    try:
        body = _encode(outcome)
        if not is_too_deep(body):
            return _with_payloads(msgspec.json.decode(body, type=type(outcome)), outcome)
        problem = "it is nested too deeply"
    except (TypeError, ValueError, RecursionError) as error:
        problem = ascii(str(error))[1:-1]
    message = f"The node returned what JSON cannot say: {problem}"
    return Failed(NodeError(code="output_not_json", message=message, retryable=False))


def _with_payloads(copy: Outcome, outcome: Outcome) -> Outcome:
    """Give the copy the events of the outcome, each in its own type."""
    match outcome:
        case Completed(told=told) if told:
            return replace(copy, told=tuple(map(_copy_payload, told)))
        case Failed(because=because) if because:
            return replace(copy, because=tuple(map(_copy_payload, because)))
        case _:
            return copy


def _copy_payload(payload: Payload) -> Payload:
    return msgspec.json.decode(_encode(payload), type=type(payload))


class NodeCall(Struct, frozen=True):
    """A node's view of its config, its inputs and the run, but never of the log."""

    run_id: str
    tenant: str
    node_id: str
    type_id: str
    attempt: int
    config: dict[str, Any]
    inputs: dict[str, Any]
    variables: dict[str, Any]
    upstream: dict[str, dict[str, Any]]
    run_inputs: dict[str, Any]
    configurable: dict[str, Any]
    at: int
    #: the supervisor's newest decision, for a dispatch node
    decision: dict[str, Any] = {}
    #: the turn a supervisor is in
    turn: SupervisorTurn | None = None
    #: the answer to the node's last question, if it had one
    answer: list[Any] = []
    #: the agent that the node is pinned to
    agent_id: str | None = None
    #: attempts in earlier rounds of the loop it is in
    earlier: int = 0
    #: the trigger event that started the run
    trigger: dict[str, Any] | None = None


#: the key in a node's config
ATTESTATION = "outputAttestation"


class AttestationSpec(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The attestation that a child's outputs need before they are merged."""

    checksum: bool = False
    algorithm: Literal["sha256"] = "sha256"
    require_approval: bool = False
    #: the parent's scopes that the child keeps; None means all of them
    principal_scope: list[str] | None = None
    #: how long a person may take; afterwards nothing is merged
    timeout_ms: Annotated[int, Meta(ge=1, le=31_536_000_000)] | None = None


class ChildSpec(Struct, frozen=True):
    """The workflow that a node hands work to, with its inputs and the mapping of its outputs."""

    workflow_id: str
    seed: dict[str, Any]
    unset: tuple[str, ...] = ()
    collect: dict[str, str] = {}
    absorb: bool = False
    detach_on_cancel: bool = False
    attest: AttestationSpec | None = None
    #: the child does not share its parent's memory
    isolated: bool = False


class ConversationSpec(Struct, frozen=True, kw_only=True):
    """The opening, the participants and the bounds of a conversation."""

    opening: Any
    title: str | None = None
    #: the closed list of agents that may speak, in wire form; None means anyone may
    participants: list[dict[str, Any]] | None = None
    #: the participants at the start of an open conversation
    invited: list[dict[str, Any]] = []
    schema: dict[str, Any] | None = None
    owner: str | None = None
    group_id: str | None = None
    #: the policy of a council; None for a conversation that the host does not lead
    participation: dict[str, Any] | None = None
    #: participant -> its profile, such as its role
    profiles: dict[str, dict[str, Any]] = {}
    #: the participants that outside programs speak for
    outside: list[str] = []
    #: for tests: how many pairs of a user's and an agent's turn the host adds itself
    mock_turns: int | None = None


class GateSpec(Struct, frozen=True, kw_only=True):
    """The interrupt that a node waits for."""

    kind: str
    data: dict[str, Any]
    timeout_ms: int | None = None
    resume_schema: dict[str, Any] | None = None
    profile: str | None = None
    conversation: ConversationSpec | None = None
    #: the supervisor's older kind of question: clarify, escalate
    escalation: str | None = None


class NodeKind(StrEnum):
    """The way in which the engine carries out a node of this type."""

    INSTANT = "instant"  # a pure function: decided in the same commit
    TIMER = "timer"  # waits until a time that is recorded when it starts
    CHILD = "child"  # waits for child runs
    ACTIVITY = "activity"  # touches the world: an effect of the engine
    GATE = "gate"  # waits for an answer


class NodeType(Struct, frozen=True, kw_only=True):
    """One row of the registry. Exactly the function of its kind is set."""

    type_id: str
    kind: NodeKind
    instant: Callable[[NodeCall], Outcome] | None = None
    #: milliseconds to wait
    duration: Callable[[NodeCall], int] | None = None
    #: the nth child (counted from 0), or None after the last one
    child: Callable[[NodeCall, int], ChildSpec | None] | None = None
    activity: Callable[[Any], Awaitable[Any]] | None = None
    #: the interrupt that the node waits for
    gate: Callable[[NodeCall], GateSpec] | None = None
    #: a child node that carries out a supervisor's decisions, worker by worker
    dispatches: bool = False
    #: a child node whose config may ask for an attestation of the child's outputs
    attests: bool = False
    #: returns a mistake in the node's config when the workflow is registered
    check: Callable[[dict[str, Any]], str | None] | None = None
    #: the default number of retries
    retries: int | None = None
    #: the default time limit of an attempt; 0 means no limit
    timeout_ms: int = 0
    requires: tuple[str, ...] = ()
    requires_model: tuple[str, ...] = ()
    #: returns another type for this NodeDef, if there is one
    instead: "Callable[[Any], NodeType | None] | None" = None
    #: the output port that the node filled selects the outgoing edges
    routes: bool = False
    #: for tests: (tenant, node) -> the model's answer on a second call
    rehearsed: Callable[[str, str], dict[str, Any] | None] | None = None
    #: the id prefix of the workflows that may use it
    only_in: str = ""
