"""The catalogue of events: the payload, the meaning and the streams of each type.

Stream tiers, the docs page and the validators are derived from the catalogue.
"""

from msgspec import Struct

from moot.core.errors import BadRequest
from moot.core.payloads.agents import (
    AgentDecided,
    AgentHandedOff,
    AgentReasoned,
    InvocationCompleted,
    InvocationStarted,
    ModelAskedAgain,
    ModelGaveUp,
    ModelRefused,
    ModelRetried,
    ModelTruncated,
    PromptResolved,
    ReasoningDelta,
    ToolCalled,
    ToolReturned,
)
from moot.core.payloads.base import Payload
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
    ParticipantJoined,
    ParticipantLeft,
    PresenceChanged,
    SeatClaimed,
    SeatLeft,
    ThreadControlled,
    ThreadLinked,
    ThreadRenamed,
)
from moot.core.payloads.councils import (
    CouncilContinued,
    CouncilStopped,
    InvitationAnswered,
    MemberHeard,
    MembersInvited,
    PolicySet,
    ToolAnswered,
    ToolAsked,
    ToolReopened,
    TurnAdmitted,
    TurnDropped,
    TurnHeld,
    VoteCalled,
)
from moot.core.payloads.deployments import (
    CanaryAdjusted,
    DeploymentPromoted,
    DeploymentRolledBack,
    DeploymentStateChanged,
)
from moot.core.payloads.interrupts import (
    ApprovalGranted,
    ApprovalOverridden,
    ApprovalReceived,
    ApprovalRejected,
    ApprovalRequested,
    ClarificationRequested,
    ClarificationResolved,
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
    NodeResumed,
    NodeRetried,
    NodeSkipped,
    NodeStarted,
    NodeSuspended,
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
from moot.core.text.nearest import nearest_word


class EventType(Struct, frozen=True):
    """One row of the catalogue: the type's payload, its meaning and the streams that carry it."""

    payload: type[Payload]
    says: str
    updates: bool = False
    messages: bool = False

    @property
    def name(self) -> str:
        return self.payload.event_type


CATALOGUE = (
    EventType(RunStarted, "the run began; carries its inputs, options and definition", True),
    EventType(RunInitiated, "the run is the work of a standing agent", True),
    EventType(DeliveryAttempted, "a trigger's delivery led to the run", True),
    EventType(RunCompleted, "the run ended well; carries its outputs", True),
    EventType(RunFailed, "the run ended badly; carries the error", True),
    EventType(RunDeadLettered, "a node used up all its attempts; the run can be forked", True),
    EventType(RunCancelled, "the run was cancelled; carries who and why", True),
    EventType(PauseBegan, "an operator paused the run", True),
    EventType(RunResumed, "an operator resumed the run", True),
    EventType(NodeStarted, "a node began an attempt"),
    EventType(NodeCompleted, "a node ended well; carries its outputs", True),
    EventType(NodeFailed, "a node ended badly; carries the error", True),
    EventType(NodeRetried, "a failed attempt will be tried again after a delay"),
    EventType(NodeSkipped, "a node will not run", True),
    EventType(NodeCancelled, "a running node was stopped because its run ended"),
    EventType(NodeDispatched, "a node handed work to a child run", True),
    EventType(VariableChanged, "a workflow variable has a new value"),
    EventType(ChannelWritten, "a value was written to a channel; readers fold it"),
    EventType(ArtifactCreated, "a node left an artifact behind", True),
    EventType(MemoryWritten, "something was remembered, or deleted; names it only", True),
    EventType(MemoryRead, "a node looked at what is remembered", True),
    EventType(OutputChunk, "a piece of streamed output", messages=True),
    EventType(LogAppended, "a node wrote a log line"),
    EventType(CapBreached, "a limit of the run was reached"),
    EventType(LoopbackLimit, "a loop reached its bound"),
    EventType(CapabilityInsufficient, "no model here can do what the node needs"),
    EventType(NodeSuspended, "a node waits for an answer", True),
    EventType(NodeResumed, "a node goes on after an answer", True),
    EventType(InterruptRequested, "a question was put", True),
    EventType(InterruptResolved, "a question was answered, or ran out of time", True),
    EventType(ApprovalRequested, "an approval was asked for", True),
    EventType(ApprovalReceived, "an approval was given, refused, or ran out of time", True),
    EventType(ApprovalOverridden, "an administrator set aside who is to approve", True),
    EventType(ApprovalGranted, "one vote for it, in a quorum", True),
    EventType(ApprovalRejected, "one vote against it, in a quorum", True),
    EventType(ClarificationRequested, "questions were asked", True),
    EventType(ClarificationResolved, "the questions were answered", True),
    EventType(SupervisorDecided, "a supervisor decided what comes next", True),
    EventType(HandoffStepped, "one step of handing work to a worker", True),
    EventType(ConfidenceEscalated, "a decision is too weak to be carried out", True),
    EventType(FannedOut, "several workers begin at once", True),
    EventType(WorkersJoined, "the workers have come together", True),
    EventType(AgentReasoned, "an agent thought; carries the whole of it"),
    EventType(ReasoningDelta, "a piece of what an agent is thinking"),
    EventType(ToolCalled, "an agent is about to use a tool"),
    EventType(ToolReturned, "what the tool gave, caused by its call"),
    EventType(AgentHandedOff, "the work passed from one agent to another"),
    EventType(AgentDecided, "an agent decided, and how sure it is"),
    EventType(InvocationStarted, "an agent of this host is asked; who, on which model"),
    EventType(PromptResolved, "which prompt the agent is given, and where it comes from"),
    EventType(InvocationCompleted, "the agent is done; carries how it ended"),
    EventType(DeploymentPromoted, "a version of an agent came a state further", True),
    EventType(DeploymentRolledBack, "an earlier version of an agent serves again", True),
    EventType(CanaryAdjusted, "another share of runs gets a version", True),
    EventType(DeploymentStateChanged, "a version of an agent is in another state", True),
    EventType(ConversationOpened, "a conversation began; carries its roster", True),
    EventType(ConversationExchanged, "somebody took a turn", True),
    EventType(ConversationEnded, "a conversation ended; carries its outcome", True),
    EventType(ThreadControlled, "somebody steered a conversation", True),
    EventType(ThreadRenamed, "a thread is called otherwise from here on", True),
    EventType(ThreadLinked, "another thread belongs to this one, or has ended", True),
    EventType(PresenceChanged, "somebody does something else, and wants it kept", True),
    EventType(ParticipantJoined, "somebody may take part from a turn on", True),
    EventType(ParticipantLeft, "somebody takes part no longer", True),
    EventType(SeatClaimed, "one program has a name in a conversation from here on", True),
    EventType(SeatLeft, "a program has its name in a conversation no longer", True),
    EventType(ChildForked, "a branch has a child of its own in the place of one", True),
    EventType(ModelAskedAgain, "a model is asked again for an answer that fits"),
    EventType(ModelGaveUp, "a model was asked often enough, and nothing fits"),
    EventType(ModelTruncated, "a model's answer was cut off"),
    EventType(ModelRefused, "a model refused to answer"),
    EventType(PolicySet, "a conversation is led by the host from here on", True),
    EventType(MembersInvited, "members are given the floor, and why", True),
    EventType(InvitationAnswered, "what came of a member's having the floor", True),
    EventType(MemberHeard, "a member is not silent, though its time is up", True),
    EventType(CouncilStopped, "nobody is given the floor any more, and why", True),
    EventType(CouncilContinued, "a person lets the talk go on", True),
    EventType(VoteCalled, "a person puts a decision to the vote of the members", True),
    EventType(ModelRetried, "a call of a model failed and is made again", True),
    EventType(ToolAsked, "an agent wants to use a tool that needs a person's word", True),
    EventType(ToolAnswered, "a person agreed to the use of a tool, or did not", True),
    EventType(ToolReopened, "what was allowed on another host is asked here again", True),
    EventType(TurnHeld, "a turn of somebody who may not speak now, kept back", True),
    EventType(TurnAdmitted, "a person let a turn in that was held back", True),
    EventType(TurnDropped, "a person dropped a turn that was held back", True),
    EventType(ReplayDiverged, "a replay went another way than its source"),
    EventType(RefusalDiverged, "a model refused in a replay or its source alone"),
    EventType(PauseRequested, "a pause waits for the running nodes to finish", True),
    EventType(PeerAsked, "another host is about to be asked for a child run", True),
    EventType(PeerAskedAnew, "a branch asks another host for a child of its own", True),
    EventType(RemoteChildStopped, "a child run on another host was told to stop", True),
    EventType(EffectStarted, "an effect on the outside world is about to happen", True),
    EventType(EffectFinished, "the outcome of an effect, recorded before use", True),
    EventType(EffectAbandoned, "what is known of a call that nobody waits for", True),
)

PAYLOADS = {row.name: row.payload for row in CATALOGUE}
UPDATE_TYPES = frozenset(row.name for row in CATALOGUE if row.updates)
MESSAGE_TYPES = frozenset(row.name for row in CATALOGUE if row.messages)
TERMINAL_TYPES = frozenset({RunCompleted.event_type, RunFailed.event_type, RunCancelled.event_type})


#: types of the protocol that this host never writes; a client of several hosts may request them
FOREIGN_TYPES = frozenset({
    "agent.memory.consolidated", "agent.verified", "approval.granted", "approval.rejected",
    "authorization.decided", "budget.consumed", "budget.exhausted", "budget.reserved",
    "budget.threshold.crossed", "commitment.fired", "connector.auth_expired",
    "connector.authorized", "egress.decided", "envelope.nlToFormat.engaged",
    "envelope.recovery.applied", "eval.completed", "eval.scored", "eval.started",
    "goal.closed", "goal.evaluated", "import.applied", "lease.acquired", "lease.handed-off",
    "lease.lost", "lease.renewed", "memory.compacted", "model.capability.substituted",
    "node.suspend-failed", "prompt.composed", "proposal.activated", "proposal.created",
    "provider.usage", "run.restored-from-snapshot", "run.resuming", "tool.session.closed",
    "tool.session.opened", "trigger.subscription.state.changed", "version.pinned",
    "voice.barge_in", "voice.cancelled", "voice.endpoint_candidate", "voice.speech_start",
    "voice.synthesis_chunk", "voice.transcript", "voice.turn_commit", "workflow.restored",
    "workflow.stalled", "workspace.updated",
})  # fmt: skip
REQUESTABLE_TYPES = FOREIGN_TYPES.union(row.name for row in CATALOGUE)
ALL_TYPES = "*"


def check_event_types(names: list[str]) -> None:
    """Raise BadRequest for an unknown type, with the nearest known one."""
    for name in names:
        if name == ALL_TYPES or name in REQUESTABLE_TYPES:
            continue
        suggestion = nearest_word(name, REQUESTABLE_TYPES)
        hint = (
            f"did you mean '{suggestion}'?"
            if suggestion
            else f"'{ALL_TYPES}' stands for all of them."
        )
        raise BadRequest(f"There are no events of the type '{name}'; {hint}", field="events")
