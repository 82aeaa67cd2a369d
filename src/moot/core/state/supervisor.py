"""What a run's supervisor has decided, given the log: who it is, its newest decision, its workers.

The supervisor is set by the first decision and stays for the run's life.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from moot.core.events import Event
from moot.core.state import remote_children
from moot.core.state.status import WAITING

if TYPE_CHECKING:
    from moot.core.state.node import NodeState
    from moot.core.state.run import Run

#: what an approval of a decision is about
DECISION = "orchestrator-decision"


class Orchestrator(Struct, omit_defaults=True):
    agent_id: str
    decisions: int = 0
    #: of these, the ones it took itself; the others a person put in their place
    own: int = 0
    #: the turn of the newest decision, counted from 1, and where it began
    iteration: int = 0
    began: int = 0
    #: the newest decision; empty when a person took it back
    decision: dict[str, Any] = {}
    decided_seq: int = 0
    #: how its question to a person is put, where the decision said so
    routing: str | None = None
    #: children started by dispatch nodes
    dispatched: int = 0
    #: living child -> the newest event of its handoff
    links: dict[str, int] = {}
    #: how the workers of the newest decision ended, in that order
    workers: list[dict[str, Any]] = []
    #: what a person said to the newest decision, if anything was asked
    answer: list[Any] = []
    #: a person has agreed to the newest decision, for as many attempts as it takes
    ratified: bool = False

    @property
    def over(self) -> bool:
        """No decision follows one that terminates."""
        return self.decision.get("kind") == "terminate"


def asks(run: "Run", owner: Any) -> bool:
    """Whether a conversation of this owner is its question to a person."""
    order = run.orchestrator
    if order is None or owner != order.agent_id:
        return False
    return bool(order.decision.get("kind") == "ask-user")


def _decided(run: "Run", event: Event, at: int) -> None:
    said = event.payload
    if run.orchestrator is None:
        run.orchestrator = Orchestrator(said.get("agentId", ""))
    found = run.orchestrator
    hints = event.hints if event.hints is not UNSET else {}
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    found.decisions += 1
    found.own += "dispatch" not in hints
    turn = said.get("iteration", found.decisions)
    if turn != found.iteration:
        found.began = node.started_seq if node is not None else event.sequence
    found.iteration = turn
    found.workers, found.answer, found.ratified = [], [], False
    found.decision = said.get("decision", {})
    found.decided_seq = event.sequence
    found.routing = hints.get("routing")
    if hints.get("dispatch") in run.nodes:
        run.nodes[hints["dispatch"]].answer = []  # it was about the decision before


def _handed(run: "Run", event: Event, at: int) -> None:
    """One step of a handoff."""
    said = event.payload
    found, child = run.orchestrator, said.get("childRunId")
    phase = said.get("phase", "")
    if phase == "dispatch.failed":
        remote_children.refused(run, event, at)
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is not None and child is not None and node.child == child:
        _attested(run, event, node, phase)
        return
    if found is None or child is None:
        return
    if phase == "dispatch.succeeded":
        found.links[child] = event.sequence
        found.dispatched += 1
    elif phase.startswith("child."):
        found.links.pop(child, None)
        remote_children.left(run, event, child, at)
        _over(run, event, child, phase.removeprefix("child."))
        found.workers.append(_told(said, phase.removeprefix("child.")))


def _attested(run: "Run", event: Event, node: "NodeState", phase: str) -> None:
    """One step of the handoff to a child that no supervisor asked for."""
    node.link = event.sequence
    if phase.startswith("child.") and node.child is not None:
        run.children[node.child] = phase.removeprefix("child.")
        run.mirrored.pop(str(event.node_id), None)
        node.child = None
        hints = event.hints if event.hints is not UNSET else {}
        node.held = hints.get("held")


def ratified(run: "Run", action: str | None) -> None:
    """A person has looked at the newest decision."""
    if run.orchestrator is not None and action == "accept":
        run.orchestrator.ratified = True


def answered(found: Orchestrator, hints: dict[str, Any]) -> None:
    """What a person said to a decision: an answer to its question, or that it shall be none."""
    if "answer" in hints:
        found.answer = [hints["answer"]]
    if hints.get("rejected"):
        found.decision = {}


def _told(said: dict[str, Any], status: str) -> dict[str, Any]:
    """A worker's end as its supervisor learns of it."""
    told = {"workerId": said.get("workerId"), "childRunId": said["childRunId"], "status": status}
    return {**told, "error": said["error"].get("code")} if "error" in said else told


def _over(run: "Run", event: Event, child: str, status: str) -> None:
    run.children[child] = status
    run.mirrored.pop(event.node_id if event.node_id is not UNSET else "", None)
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is None:
        return
    node.living.pop(child, None)
    node.waits.pop(child, None)
    mirror(run, str(event.node_id), node)
    node.ends[child] = event.sequence
    hints = event.hints if event.hints is not UNSET else {}
    result = {"child": child, "status": status, **hints.get("result", {})}
    node.results = [*(node.results or []), result]


def child_waits(run: "Run", node_id: str, child: str, status: str) -> None:
    """A child waits for somebody, or goes on again."""
    node = run.nodes.get(node_id)
    shown = run.mirrored if node is None or child not in node.living else node.waits
    place = node_id if shown is run.mirrored else child
    if status in WAITING:
        shown[place] = status
        remote_children.waited(run, child)
    else:
        shown.pop(place, None)
    if node is not None and node.living:
        mirror(run, node_id, node)


def _asked_anew(run: "Run", event: Event, at: int) -> None:
    """A branch has a child of its own on another host: of how its source's waited nothing is left,
    the handoff goes on as it stood."""
    old, new = remote_children.renewed(run, event, at)
    if run.orchestrator is not None:
        run.orchestrator.links = remote_children.renamed(run.orchestrator.links, old, new)
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is not None:
        remote_children.goes_by(node, old, new)
        child_waits(run, str(event.node_id), new, "running")


def mirror(run: "Run", node_id: str, node: "NodeState") -> None:
    """A wave waits when everyone who is left of it waits; it is shown as the first of them."""
    if node.living and all(child in node.waits for child in node.living):
        run.mirrored[node_id] = node.waits[next(iter(node.living))]
    else:
        run.mirrored.pop(node_id, None)


def lent(run: "Run") -> int:
    """How many runs the living children may lead to, themselves among them."""
    return sum(
        node.lent.get(child, 0)
        for name in run.active
        if (node := run.nodes[name]).lent
        for child in (node.child, *node.living)
        if child is not None
    )


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {
    "runOrchestrator.decided": _decided,
    "core.workflowChain.event": _handed,
    remote_children.ASKED_ANEW: _asked_anew,
}
