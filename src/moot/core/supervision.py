"""What a run's supervisor has decided, given the log: who it is, its newest decision, its workers.

The supervisor is set by the first decision and stays for the run's life.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from moot.core import abroad
from moot.core.events import Event

if TYPE_CHECKING:
    from moot.core.run import Run

#: what an approval of a decision is about
DECISION = "orchestrator-decision"


class Orchestrator(Struct, omit_defaults=True):
    agent_id: str
    decisions: int = 0
    decision: dict[str, Any] = {}
    decided_seq: int = 0
    #: how its question to a person is put, where the decision said so
    routing: str | None = None
    #: children started by dispatch nodes
    dispatched: int = 0
    #: living child -> the newest event of its handoff
    links: dict[str, int] = {}

    @property
    def over(self) -> bool:
        """No decision follows one that terminates."""
        return self.decision.get("kind") == "terminate"


def _decided(run: "Run", event: Event, at: int) -> None:
    said = event.payload
    if run.orchestrator is None:
        run.orchestrator = Orchestrator(said.get("agentId", ""))
    found = run.orchestrator
    found.decisions += 1
    found.decision = said.get("decision", {})
    found.decided_seq = event.sequence
    hints = event.hints if event.hints is not UNSET else {}
    found.routing = hints.get("routing")
    if hints.get("dispatch") in run.nodes:
        run.nodes[hints["dispatch"]].answer = []  # it was about the decision before


def _handed(run: "Run", event: Event, at: int) -> None:
    """One step of a handoff."""
    said = event.payload
    found, child = run.orchestrator, said.get("childRunId")
    phase = said.get("phase", "")
    if phase == "dispatch.failed":
        abroad.refused(run, event, at)
    if found is None or child is None:
        return
    if phase == "dispatch.succeeded":
        found.links[child] = event.sequence
        found.dispatched += 1
    elif phase.startswith("child."):
        found.links.pop(child, None)
        abroad.left(run, event, child, at)
        _over(run, event, child, phase.removeprefix("child."))


def _over(run: "Run", event: Event, child: str, status: str) -> None:
    run.children[child] = status
    run.mirrored.pop(event.node_id if event.node_id is not UNSET else "", None)
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is None:
        return
    node.living.pop(child, None)
    node.ends[child] = event.sequence
    hints = event.hints if event.hints is not UNSET else {}
    result = {"child": child, "status": status, **hints.get("result", {})}
    node.results = [*(node.results or []), result]


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {
    "runOrchestrator.decided": _decided,
    "core.workflowChain.event": _handed,
}
