"""Which types of events can be asked for."""

from moot.core.errors import BadRequest
from moot.core.events import CATALOGUE
from moot.core.text.nearest import nearest

#: the protocol's types that nothing on this host says; whoever serves several hosts asks for them
UNSAID = frozenset({
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
KNOWN = UNSAID.union(row.name for row in CATALOGUE)
EVERY = "*"


def check_types(asked: list[str]) -> None:
    """Raises BadRequest for a type that there is not, with the one that may be meant."""
    for name in asked:
        if name == EVERY or name in KNOWN:
            continue
        meant = nearest(name, KNOWN)
        hint = f"did you mean '{meant}'?" if meant else f"'{EVERY}' stands for all of them."
        raise BadRequest(f"There are no events of the type '{name}'; {hint}", field="events")
