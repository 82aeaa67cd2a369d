"""What a run goes on by: words of people that let it pass. Whoever takes its history over, in a
fork or from another host, takes these over with it.

Read from the state, not from the answers in the log: a log that others wrote may leave those out.
"""

from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import Kind

CONVERSATION = "core.conversationGate"
ASKING = frozenset({NodeStatus.RUNNING, NodeStatus.SUSPENDED})


def given(run: Run, flow: Flow) -> list[str]:
    """Nodes at which somebody has let the run go on, or has begun to: gates that are behind it or
    have votes, and agents that were allowed something they have not finished with."""
    found = [node.id for node in flow.nodes.values() if _passed(run, flow, node)]
    for node_id in run.active:
        state, asked = run.nodes[node_id], run.interrupts.get(node_id)
        if _allowed(state) or (asked is not None and asked.votes):
            found.append(node_id)
    return list(dict.fromkeys(found))


def tools(run: Run) -> list[tuple[str, list[str]]]:
    """Led conversations in which a person has agreed to the use of a tool -> what was asked. A
    member that is done with it asks for it no longer."""
    found = []
    for node_id, talk in run.conversations.items():
        asks = talk.floor.asks if talk.floor is not None and talk.open else {}
        if names := [name for name, ask in asks.items() if ask.allowed is True]:
            found.append((node_id, names))
    return found


def taken(run: Run, flow: Flow) -> bool:
    """Whether anything of what comes next was allowed, or answered, by somebody."""
    answered = any(last.by for last in run.answered.values())
    return answered or bool(given(run, flow) or tools(run))


def _allowed(state: NodeState) -> bool:
    return bool(state.rulings or state.answer)


def _passed(run: Run, flow: Flow, node: FlowNode) -> bool:
    """Also when what lies behind it has begun without it."""
    if node.type.kind is not Kind.GATE or node.type.type_id == CONVERSATION:
        return False
    state = run.nodes.get(node.id)
    if state is not None and state.status not in ASKING:
        return True
    behind, waiting = set[str](), list(node.targets)
    while waiting:
        name = waiting.pop()
        if name not in behind:
            behind.add(name)
            waiting += flow.nodes[name].targets
    return not behind.isdisjoint(run.nodes)
