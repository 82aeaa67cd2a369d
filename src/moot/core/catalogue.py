"""The catalogue of events: the payload, the meaning and the streams of each type.

Stream tiers, the docs page and the validators are derived from the catalogue.
"""

from msgspec import Struct

from moot.core.errors import BadRequest
from moot.core.payloads import (
    agents,
    conversations,
    councils,
    deployments,
    interrupts,
    memory,
    nodes,
    runs,
    supervisors,
)
from moot.core.payloads.base import Payload
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
    EventType(runs.RunStarted, "the run began; carries its inputs, options and definition", True),
    EventType(runs.RunInitiated, "the run is the work of a standing agent", True),
    EventType(runs.DeliveryAttempted, "a trigger's delivery led to the run", True),
    EventType(runs.RunCompleted, "the run ended well; carries its outputs", True),
    EventType(runs.RunFailed, "the run ended badly; carries the error", True),
    EventType(runs.RunDeadLettered, "a node used up all its attempts; the run can be forked", True),
    EventType(runs.RunCancelled, "the run was cancelled; carries who and why", True),
    EventType(runs.PauseBegan, "an operator paused the run", True),
    EventType(runs.RunResumed, "an operator resumed the run", True),
    EventType(nodes.NodeStarted, "a node began an attempt"),
    EventType(nodes.NodeCompleted, "a node ended well; carries its outputs", True),
    EventType(nodes.NodeFailed, "a node ended badly; carries the error", True),
    EventType(nodes.NodeRetried, "a failed attempt will be tried again after a delay"),
    EventType(nodes.NodeSkipped, "a node will not run", True),
    EventType(nodes.NodeCancelled, "a running node was stopped because its run ended"),
    EventType(nodes.NodeDispatched, "a node handed work to a child run", True),
    EventType(nodes.VariableChanged, "a workflow variable has a new value"),
    EventType(nodes.ChannelWritten, "a value was written to a channel; readers fold it"),
    EventType(nodes.ArtifactCreated, "a node left an artifact behind", True),
    EventType(memory.MemoryWritten, "something was remembered, or deleted; names it only", True),
    EventType(memory.MemoryRead, "a node looked at what is remembered", True),
    EventType(nodes.OutputChunk, "a piece of streamed output", messages=True),
    EventType(nodes.LogAppended, "a node wrote a log line"),
    EventType(runs.CapBreached, "a limit of the run was reached"),
    EventType(nodes.LoopbackLimit, "a loop reached its bound"),
    EventType(nodes.CapabilityInsufficient, "no model here can do what the node needs"),
    EventType(nodes.NodeSuspended, "a node waits for an answer", True),
    EventType(nodes.NodeResumed, "a node goes on after an answer", True),
    EventType(interrupts.InterruptRequested, "a question was put", True),
    EventType(interrupts.InterruptResolved, "a question was answered, or ran out of time", True),
    EventType(interrupts.ApprovalRequested, "an approval was asked for", True),
    EventType(
        interrupts.ApprovalReceived, "an approval was given, refused, or ran out of time", True
    ),
    EventType(interrupts.ApprovalOverridden, "an administrator set aside who is to approve", True),
    EventType(interrupts.ApprovalGranted, "one vote for it, in a quorum", True),
    EventType(interrupts.ApprovalRejected, "one vote against it, in a quorum", True),
    EventType(interrupts.ClarificationRequested, "questions were asked", True),
    EventType(interrupts.ClarificationResolved, "the questions were answered", True),
    EventType(supervisors.SupervisorDecided, "a supervisor decided what comes next", True),
    EventType(supervisors.HandoffStepped, "one step of handing work to a worker", True),
    EventType(supervisors.ConfidenceEscalated, "a decision is too weak to be carried out", True),
    EventType(supervisors.FannedOut, "several workers begin at once", True),
    EventType(supervisors.WorkersJoined, "the workers have come together", True),
    EventType(agents.AgentReasoned, "an agent thought; carries the whole of it"),
    EventType(agents.ReasoningDelta, "a piece of what an agent is thinking"),
    EventType(agents.ToolCalled, "an agent is about to use a tool"),
    EventType(agents.ToolReturned, "what the tool gave, caused by its call"),
    EventType(agents.AgentHandedOff, "the work passed from one agent to another"),
    EventType(agents.AgentDecided, "an agent decided, and how sure it is"),
    EventType(agents.InvocationStarted, "an agent of this host is asked; who, on which model"),
    EventType(agents.PromptResolved, "which prompt the agent is given, and where it comes from"),
    EventType(agents.InvocationCompleted, "the agent is done; carries how it ended"),
    EventType(deployments.DeploymentPromoted, "a version of an agent came a state further", True),
    EventType(
        deployments.DeploymentRolledBack, "an earlier version of an agent serves again", True
    ),
    EventType(deployments.CanaryAdjusted, "another share of runs gets a version", True),
    EventType(
        deployments.DeploymentStateChanged, "a version of an agent is in another state", True
    ),
    EventType(conversations.ConversationOpened, "a conversation began; carries its roster", True),
    EventType(conversations.ConversationExchanged, "somebody took a turn", True),
    EventType(conversations.ConversationEnded, "a conversation ended; carries its outcome", True),
    EventType(conversations.ThreadControlled, "somebody steered a conversation", True),
    EventType(conversations.ThreadRenamed, "a thread is called otherwise from here on", True),
    EventType(conversations.ThreadLinked, "another thread belongs to this one, or has ended", True),
    EventType(
        conversations.PresenceChanged, "somebody does something else, and wants it kept", True
    ),
    EventType(conversations.ParticipantJoined, "somebody may take part from a turn on", True),
    EventType(conversations.ParticipantLeft, "somebody takes part no longer", True),
    EventType(
        conversations.SeatClaimed, "one program has a name in a conversation from here on", True
    ),
    EventType(conversations.SeatLeft, "a program has its name in a conversation no longer", True),
    EventType(supervisors.ChildForked, "a branch has a child of its own in the place of one", True),
    EventType(agents.ModelAskedAgain, "a model is asked again for an answer that fits"),
    EventType(agents.ModelGaveUp, "a model was asked often enough, and nothing fits"),
    EventType(agents.ModelTruncated, "a model's answer was cut off"),
    EventType(agents.ModelRefused, "a model refused to answer"),
    EventType(councils.PolicySet, "a conversation is led by the host from here on", True),
    EventType(councils.MembersInvited, "members are given the floor, and why", True),
    EventType(councils.InvitationAnswered, "what came of a member's having the floor", True),
    EventType(councils.MemberHeard, "a member is not silent, though its time is up", True),
    EventType(councils.CouncilStopped, "nobody is given the floor any more, and why", True),
    EventType(councils.CouncilContinued, "a person lets the talk go on", True),
    EventType(councils.VoteCalled, "a person puts a decision to the vote of the members", True),
    EventType(agents.ModelRetried, "a call of a model failed and is made again", True),
    EventType(councils.ToolAsked, "an agent wants to use a tool that needs a person's word", True),
    EventType(councils.ToolAnswered, "a person agreed to the use of a tool, or did not", True),
    EventType(councils.ToolReopened, "what was allowed on another host is asked here again", True),
    EventType(councils.TurnHeld, "a turn of somebody who may not speak now, kept back", True),
    EventType(councils.TurnAdmitted, "a person let a turn in that was held back", True),
    EventType(councils.TurnDropped, "a person dropped a turn that was held back", True),
    EventType(runs.ReplayDiverged, "a replay went another way than its source"),
    EventType(runs.RefusalDiverged, "a model refused in a replay or its source alone"),
    EventType(runs.PauseRequested, "a pause waits for the running nodes to finish", True),
    EventType(supervisors.PeerAsked, "another host is about to be asked for a child run", True),
    EventType(supervisors.PeerAskedAnew, "a branch asks another host for a child of its own", True),
    EventType(supervisors.RemoteChildStopped, "a child run on another host was told to stop", True),
    EventType(memory.EffectStarted, "an effect on the outside world is about to happen", True),
    EventType(memory.EffectFinished, "the outcome of an effect, recorded before use", True),
    EventType(memory.EffectAbandoned, "what is known of a call that nobody waits for", True),
)

PAYLOADS = {row.name: row.payload for row in CATALOGUE}
UPDATE_TYPES = frozenset(row.name for row in CATALOGUE if row.updates)
MESSAGE_TYPES = frozenset(row.name for row in CATALOGUE if row.messages)
TERMINAL_TYPES = frozenset(
    {runs.RunCompleted.event_type, runs.RunFailed.event_type, runs.RunCancelled.event_type}
)


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
