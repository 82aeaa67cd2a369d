"""What a node may answer, and the description of a node type the graph is compiled with."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from moot.core.json.nesting import too_deep
from moot.core.workflows.turn_inputs import Turn

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


class NodeError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a node failed. Not retryable means: trying again cannot help."""

    code: str
    message: str
    details: dict[str, Any] = {}
    retryable: bool = True

    def as_payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            payload["details"] = self.details
        if not self.retryable:
            payload["retryable"] = False
        return payload


class ChannelWrite(Struct, frozen=True, kw_only=True):
    """A write to a channel; the reducer of a declared channel wins over the one given here."""

    channel: str
    value: Any
    reducer: str | None = None
    ttl_ms: int | None = None
    max_size: int | None = None
    #: a turn of a conversation: its id is its index and cannot repeat
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
    #: events that come before its end: (type, payload) each
    told: tuple[tuple[str, dict[str, Any]], ...] = ()


class Failed(Struct, frozen=True):
    error: NodeError
    #: events that explain the failure and come before it: (type, payload) each
    because: tuple[tuple[str, dict[str, Any]], ...] = ()


class Decided(Struct, frozen=True, kw_only=True):
    """A supervisor's turn is over: this is its decision."""

    agent_id: str
    decision: Any
    #: how sure the supervisor is of itself, if it says so
    confidence: float | None = None
    #: below this the supervisor wants a person to look, unless the run says otherwise
    threshold: float | None = None
    #: a person has agreed to it
    ratified: bool = False


Outcome = Completed | Failed | Decided


def copied(value: T) -> T:
    """The value as the log will say it, sharing nothing. Raises ValueError where it cannot."""
    try:
        found: T = msgspec.json.decode(_encode(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"JSON cannot say this: {error}") from None
    return found


def raised(error: BaseException) -> NodeError:
    """What an exception says, in words that can be written down."""
    text = f"{type(error).__name__}: {error}"[:2000]
    return NodeError(code="node_raised", message=text.encode(errors="backslashreplace").decode())


def recordable(outcome: Outcome) -> Outcome:
    """The outcome as the log will say it, or the failure it becomes when the log could not.

    What comes back shares nothing with what the node may keep and change.
    """
    try:
        body = _encode(outcome)
        if not too_deep(body):
            return msgspec.json.decode(body, type=type(outcome))
        problem = "it is nested too deeply"
    except (TypeError, ValueError, RecursionError) as error:
        problem = ascii(str(error))[1:-1]
    message = f"The node returned what JSON cannot say: {problem}"
    return Failed(NodeError(code="output_not_json", message=message, retryable=False))


class Call(Struct, frozen=True):
    """What a node sees: its own config and inputs and a view of the run. Never the log."""

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
    #: the supervisor's newest decision, for the node that carries it out
    decision: dict[str, Any] = {}
    #: the turn a supervisor is in
    turn: Turn | None = None
    #: what the node's last question was answered with, if it had one
    answer: list[Any] = []
    #: who the node is pinned to
    agent_id: str | None = None
    #: attempts in earlier rounds of the loop it is in
    earlier: int = 0
    #: what came in and began the run
    trigger: dict[str, Any] | None = None


#: where a node's config asks for it
ATTESTED = "outputAttestation"


class Attest(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How the outputs of a child are vouched for before they flow back."""

    checksum: bool = False
    algorithm: Literal["sha256"] = "sha256"
    require_approval: bool = False
    #: what the child may still do of what its parent may; None is all of it
    principal_scope: list[str] | None = None
    #: how long a person may take; nothing is merged afterwards
    timeout_ms: Annotated[int, Meta(ge=1, le=31_536_000_000)] | None = None


class ChildSpec(Struct, frozen=True):
    """Which workflow a node hands work to, and what flows in and back."""

    workflow_id: str
    seed: dict[str, Any]
    unset: tuple[str, ...] = ()
    collect: dict[str, str] = {}
    absorb: bool = False
    detach_on_cancel: bool = False
    attest: Attest | None = None
    #: it does not share its parent's memory
    isolated: bool = False


class ConversationSpec(Struct, frozen=True, kw_only=True):
    """How a conversation begins and when it closes by itself."""

    opening: Any
    title: str | None = None
    #: the closed set of agents that may speak, as they are carried on the wire; None is open
    participants: list[dict[str, Any]] | None = None
    #: who may speak from the beginning, where others may come and go
    invited: list[dict[str, Any]] = []
    schema: dict[str, Any] | None = None
    owner: str | None = None
    group_id: str | None = None
    #: how the host leads it: a policy; None leaves it to those who speak
    participation: dict[str, Any] | None = None
    #: what is known of those who speak: role and the like
    profiles: dict[str, dict[str, Any]] = {}
    #: those of them that the host does not speak for
    outside: list[str] = []
    #: what a test host says by itself: so many pairs of a user's and an agent's turn
    mock_turns: int | None = None


class GateSpec(Struct, frozen=True, kw_only=True):
    """What a node waits for."""

    kind: str
    data: dict[str, Any]
    timeout_ms: int | None = None
    resume_schema: dict[str, Any] | None = None
    profile: str | None = None
    conversation: ConversationSpec | None = None
    #: the supervisor's word for a question that it did not ask as one: clarify, escalate
    escalation: str | None = None


class Kind(StrEnum):
    """How a node of this type is carried out."""

    INSTANT = "instant"  # a pure function: decided in the same commit
    TIMER = "timer"  # waits until a time that is recorded when it starts
    CHILD = "child"  # waits for child runs
    ACTIVITY = "activity"  # touches the world: an effect of the engine
    GATE = "gate"  # waits for somebody's answer


class NodeType(Struct, frozen=True, kw_only=True):
    """One row of the registry. Exactly the function of its kind is set."""

    type_id: str
    kind: Kind
    instant: Callable[[Call], Outcome] | None = None
    #: milliseconds to wait
    duration: Callable[[Call], int] | None = None
    #: the nth child (counted from 0), or None when there is no further one
    child: Callable[[Call, int], ChildSpec | None] | None = None
    activity: Callable[[Any], Awaitable[Any]] | None = None
    #: what the node waits for
    gate: Callable[[Call], GateSpec] | None = None
    #: a child node that carries out what a supervisor decides, worker by worker
    dispatches: bool = False
    #: a child node whose config may ask that the child's outputs be vouched for
    attests: bool = False
    #: a mistake in the node's config, found when the workflow is registered
    check: Callable[[dict[str, Any]], str | None] | None = None
    #: how often a failed attempt is tried again, unless the workflow says so itself
    retries: int | None = None
    #: how long an attempt may take, unless the workflow says so itself; 0 is no limit
    timeout_ms: int = 0
    requires: tuple[str, ...] = ()
    requires_model: tuple[str, ...] = ()
    #: another way to carry out such a node (NodeDef), if there is one
    instead: "Callable[[Any], NodeType | None] | None" = None
    #: outgoing edges are chosen by which output port the node filled
    routes: bool = False
    #: what the model of a node, told so by a test, says a second time: (tenant, node) -> answer
    rehearsed: Callable[[str, str], dict[str, Any] | None] | None = None
    #: how the ids of the workflows begin that may use it
    only_in: str = ""
