"""Events: recorded facts in the form that is stored and sent, and their catalogue.

Stream tiers, the docs page and the validators are derived from the catalogue.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from moot.core.errors import BadRequest
from moot.core.text.nearest import nearest_word

if TYPE_CHECKING:
    from moot.core.runs.start import LinkedStart

ENGINE_VERSION = 1
LOG_SCHEMA_VERSION = 2

Payload = dict[str, Any]


class MemoryWrite(Struct, frozen=True, kw_only=True):
    """A put of a memory entry, or a delete when it has no content.

    The store adds its time and sequence. ``write_id`` is the same in every attempt of the node, so
    that no attempt writes twice.
    """

    scope: str
    memory_id: str
    write_id: str
    content: str | None = None
    tags: list[str] = []
    agent_id: str | None = None
    ttl_ms: int | None = None
    expires_at: int | None = None

    def end(self, now: int) -> int | None:
        """Return the end of the entry when it is written now; its time to live starts then."""
        ends = [] if self.expires_at is None else [self.expires_at]
        ends += [] if self.ttl_ms is None else [now + self.ttl_ms]
        return min(ends, default=None)


class NewEvent(Struct):
    """An event that decide returns: without id, time and sequence.

    ``cause`` is the sequence of the causing event in the same run, or the event id of another run's
    event; by default it is the previous event. ``hints`` holds fields for the fold that a closed
    payload has no room for. ``sealed``, ``artifact`` and ``note`` are stored beside the log.
    """

    type: str
    payload: Payload
    node_id: str | None = None
    cause: int | str | None = None
    hints: Payload | None = None
    sealed: dict[str, Any] | None = None
    artifact: Payload | None = None
    note: MemoryWrite | None = None
    #: the id of the delivery that led to the run, instead of an id from the sequence
    event_id: str | None = None
    #: a run that is created in the same commit as the event
    begins: "LinkedStart | None" = None


class Event(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A recorded fact of a run. ``sequence`` is dense per run and starts at 0."""

    event_id: str
    run_id: str
    sequence: int
    type: str
    timestamp: str
    payload: Payload
    schema_version: int | UnsetType = UNSET
    engine_version: str | UnsetType = UNSET
    node_id: str | UnsetType = UNSET
    causation_id: str | UnsetType = UNSET
    hints: Payload | UnsetType = UNSET


class EventHead(Struct, frozen=True, rename="camel"):
    """The fields that readers filter by; the payload stays unparsed."""

    sequence: int
    type: str
    event_id: str = ""
    node_id: str | None = None
    causation_id: str | None = None


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Event).decode
decode_head = msgspec.json.Decoder(EventHead).decode

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def event_id(run_id: str, sequence: int) -> str:
    return f"{run_id}.{sequence}"


@lru_cache(maxsize=256)
def iso(micros: int) -> str:
    """Return the time in the protocol's form, with microseconds."""
    seconds, fraction = divmod(micros, 1_000_000)
    return f"{_format_second(seconds)}.{fraction:06d}Z"


def millis(timestamp: str) -> int:
    """Return milliseconds since the epoch for a timestamp of ``iso``."""
    return _parse_second(timestamp[:19]) * 1000 + int(timestamp[20:23])


def micros(timestamp: str) -> int:
    """Return microseconds since the epoch for a timestamp of ``iso``."""
    return _parse_second(timestamp[:19]) * 1_000_000 + int(timestamp[20:26])


# Many events share a second, so the calendar part is cached.
@lru_cache(maxsize=256)
def _format_second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


@lru_cache(maxsize=256)
def _parse_second(written: str) -> int:
    return (datetime.fromisoformat(written + "+00:00") - _EPOCH) // timedelta(seconds=1)


class EventType(Struct, frozen=True):
    """One row of the catalogue: the type's name, its meaning and the streams that carry it."""

    name: str
    says: str
    updates: bool = False
    messages: bool = False


CATALOGUE = (
    EventType("run.started", "the run began; carries its inputs, options and definition", True),
    EventType("roster.run.initiated", "the run is the work of a standing agent", True),
    EventType("trigger.delivery.attempted", "a trigger's delivery led to the run", True),
    EventType("run.completed", "the run ended well; carries its outputs", True),
    EventType("run.failed", "the run ended badly; carries the error", True),
    EventType("run.dead_lettered", "a node used up all its attempts; the run can be forked", True),
    EventType("run.cancelled", "the run was cancelled; carries who and why", True),
    EventType("run.paused", "an operator paused the run", True),
    EventType("run.resumed", "an operator resumed the run", True),
    EventType("node.started", "a node began an attempt"),
    EventType("node.completed", "a node ended well; carries its outputs", True),
    EventType("node.failed", "a node ended badly; carries the error", True),
    EventType("node.retried", "a failed attempt will be tried again after a delay"),
    EventType("node.skipped", "a node will not run", True),
    EventType("node.cancelled", "a running node was stopped because its run ended"),
    EventType("node.dispatched", "a node handed work to a child run", True),
    EventType("variable.changed", "a workflow variable has a new value"),
    EventType("channel.written", "a value was written to a channel; readers fold it"),
    EventType("artifact.created", "a node left an artifact behind", True),
    EventType("memory.written", "something was remembered, or deleted; names it only", True),
    EventType("moot.memory.read", "a node looked at what is remembered", True),
    EventType("output.chunk", "a piece of streamed output", messages=True),
    EventType("log.appended", "a node wrote a log line"),
    EventType("cap.breached", "a limit of the run was reached"),
    EventType("workflow.loopback-limit", "a loop reached its bound"),
    EventType("model.capability.insufficient", "no model here can do what the node needs"),
    EventType("node.suspended", "a node waits for an answer", True),
    EventType("node.resumed", "a node goes on after an answer", True),
    EventType("interrupt.requested", "a question was put", True),
    EventType("interrupt.resolved", "a question was answered, or ran out of time", True),
    EventType("approval.requested", "an approval was asked for", True),
    EventType("approval.received", "an approval was given, refused, or ran out of time", True),
    EventType("approval.overridden", "an administrator set aside who is to approve", True),
    EventType("moot.approval.granted", "one vote for it, in a quorum", True),
    EventType("moot.approval.rejected", "one vote against it, in a quorum", True),
    EventType("clarification.requested", "questions were asked", True),
    EventType("clarification.resolved", "the questions were answered", True),
    EventType("runOrchestrator.decided", "a supervisor decided what comes next", True),
    EventType("core.workflowChain.event", "one step of handing work to a worker", True),
    EventType(
        "core.workflowChain.confidence-escalated", "a decision is too weak to be carried out", True
    ),
    EventType("core.dispatch.fanOut", "several workers begin at once", True),
    EventType("core.dispatch.join", "the workers have come together", True),
    EventType("agent.reasoned", "an agent thought; carries the whole of it"),
    EventType("agent.reasoning.delta", "a piece of what an agent is thinking"),
    EventType("agent.toolCalled", "an agent is about to use a tool"),
    EventType("agent.toolReturned", "what the tool gave, caused by its call"),
    EventType("agent.handoff", "the work passed from one agent to another"),
    EventType("agent.decided", "an agent decided, and how sure it is"),
    EventType("agent.invocation.started", "an agent of this host is asked; who, on which model"),
    EventType("agent.promptResolved", "which prompt the agent is given, and where it comes from"),
    EventType("agent.invocation.completed", "the agent is done; carries how it ended"),
    EventType("deployment.promoted", "a version of an agent came a state further", True),
    EventType("deployment.rolled-back", "an earlier version of an agent serves again", True),
    EventType("deployment.canary.adjusted", "another share of runs gets a version", True),
    EventType("deployment.state.changed", "a version of an agent is in another state", True),
    EventType("conversation.opened", "a conversation began; carries its roster", True),
    EventType("conversation.exchanged", "somebody took a turn", True),
    EventType("conversation.closed", "a conversation ended; carries its outcome", True),
    EventType("moot.thread.control", "somebody steered a conversation", True),
    EventType("moot.thread.renamed", "a thread is called otherwise from here on", True),
    EventType("moot.thread.linked", "another thread belongs to this one, or has ended", True),
    EventType("moot.presence.changed", "somebody does something else, and wants it kept", True),
    EventType("moot.participant.joined", "somebody may take part from a turn on", True),
    EventType("moot.participant.left", "somebody takes part no longer", True),
    EventType("moot.seat.taken", "one program has a name in a conversation from here on", True),
    EventType("moot.seat.left", "a program has its name in a conversation no longer", True),
    EventType("moot.child.forked", "a branch has a child of its own in the place of one", True),
    EventType("envelope.retry.attempted", "a model is asked again for an answer that fits"),
    EventType("envelope.retry.exhausted", "a model was asked often enough, and nothing fits"),
    EventType("envelope.truncated", "a model's answer was cut off"),
    EventType("envelope.refusal", "a model refused to answer"),
    EventType("moot.participation.set", "a conversation is led by the host from here on", True),
    EventType("moot.participation.decided", "members are given the floor, and why", True),
    EventType("moot.participation.answered", "what came of a member's having the floor", True),
    EventType("moot.participation.heard", "a member is not silent, though its time is up", True),
    EventType("moot.participation.stopped", "nobody is given the floor any more, and why", True),
    EventType("moot.participation.continued", "a person lets the talk go on", True),
    EventType("moot.vote.called", "a person puts a decision to the vote of the members", True),
    EventType("moot.model.retried", "a call of a model failed and is made again", True),
    EventType("moot.tool.asked", "an agent wants to use a tool that needs a person's word", True),
    EventType("moot.tool.answered", "a person agreed to the use of a tool, or did not", True),
    EventType("moot.tool.reopened", "what was allowed on another host is asked here again", True),
    EventType("moot.turn.held", "a turn of somebody who may not speak now, kept back", True),
    EventType("moot.turn.admitted", "a person let a turn in that was held back", True),
    EventType("moot.turn.dropped", "a person dropped a turn that was held back", True),
    EventType("replay.diverged", "a replay went another way than its source"),
    EventType("replay.divergedAtRefusal", "a model refused in a replay or its source alone"),
    EventType("moot.pause.requested", "a pause waits for the running nodes to finish", True),
    EventType("moot.peer.asked", "another host is about to be asked for a child run", True),
    EventType("moot.peer.askedAnew", "a branch asks another host for a child of its own", True),
    EventType("moot.peer.stopped", "a child run on another host was told to stop", True),
    EventType("moot.effect.started", "an effect on the outside world is about to happen", True),
    EventType("moot.effect.finished", "the outcome of an effect, recorded before use", True),
    EventType("moot.effect.abandoned", "what is known of a call that nobody waits for", True),
)

UPDATE_TYPES = frozenset(row.name for row in CATALOGUE if row.updates)
MESSAGE_TYPES = frozenset(row.name for row in CATALOGUE if row.messages)
TERMINAL_TYPES = frozenset({"run.completed", "run.failed", "run.cancelled"})


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
