"""Approvals of people that a run relies on. A fork or an import inherits them.

They are read from the state, not from the answers in the log: an imported log may omit those.
"""

from collections.abc import Iterable

from moot.core.errors import Forbidden
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import NodeKind

CONVERSATION_GATE = "core.conversationGate"
OPEN_STATUSES = frozenset({NodeStatus.RUNNING, NodeStatus.SUSPENDED})


def check_inherited_approvals(runs: Iterable[tuple[Run, Flow]], may_approve: bool) -> None:
    """Raise Forbidden unless the caller could have given the approvals that a fork inherits.

    ``runs`` are the forked run and the children that are forked with it.
    """
    if not may_approve and any(has_approvals(run, flow) for run, flow in runs):
        raise Forbidden(
            "Somebody was asked in this run, and what comes next rests on the answer: to take it up"
            " from here a person's key with approvals:respond is needed.",
            scopeRequired="approvals:respond",
        )


def approved_nodes(run: Run, flow: Flow) -> list[str]:
    """Return the nodes at which a person has approved something.

    These are gates that the run has passed or that have votes, and agents at work with an answer.
    """
    node_ids = [node.id for node in flow.nodes.values() if _is_gate_passed(run, flow, node)]
    for node_id in run.active:
        state, interrupt = run.nodes[node_id], run.interrupts.get(node_id)
        has_votes = interrupt is not None and interrupt.votes
        if state.rulings or state.answer or has_votes:
            node_ids.append(node_id)
    return list(dict.fromkeys(node_ids))


def allowed_tools(run: Run) -> list[tuple[str, list[str]]]:
    """Return (node, request ids) of councils in which a person has allowed a tool.

    The request of a member that has finished is gone from the state.
    """
    allowed = []
    for node_id, conversation in run.conversations.items():
        requests = (
            conversation.floor.asks if conversation.floor is not None and conversation.open else {}
        )
        if request_ids := [
            request_id for request_id, request in requests.items() if request.allowed is True
        ]:
            allowed.append((node_id, request_ids))
    return allowed


def has_approvals(run: Run, flow: Flow) -> bool:
    """Return whether the rest of the run relies on an approval or an answer of a person."""
    is_answered = any(answer.by for answer in run.answered.values())
    return is_answered or bool(approved_nodes(run, flow) or allowed_tools(run))


def _is_gate_passed(run: Run, flow: Flow, node: FlowNode) -> bool:
    """Return whether the gate has ended, or a node behind it has begun."""
    if node.type.kind is not NodeKind.GATE or node.type.type_id == CONVERSATION_GATE:
        return False
    state = run.nodes.get(node.id)
    if state is not None and state.status not in OPEN_STATUSES:
        return True
    behind, waiting = set[str](), list(node.targets)
    while waiting:
        name = waiting.pop()
        if name not in behind:
            behind.add(name)
            waiting += flow.nodes[name].targets
    return not behind.isdisjoint(run.nodes)
