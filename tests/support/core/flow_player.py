"""Plays a compiled workflow through the pure core: every timer is due at once, no world at all."""

from typing import Any

from msgspec import UNSET

from moot.core.commands import Advance, Compute, FinishNode, TimePassed, decide
from moot.core.events import Event, NewEvent, event_id, iso
from moot.core.pending import pending
from moot.core.runs.start import RunLimits, StartRun
from moot.core.state.run import Run, apply
from moot.core.state.status import NodeStatus, Status
from moot.core.workflows.definition import parse_definition
from moot.core.workflows.flow import Flow, compile_flow
from moot.core.workflows.node_types import Completed, Failed, NodeError, NodeKind, NodeType, Outcome
from moot.core.workflows.yaml import compile_yaml
from moot.engine.nodes.registry import built_in_types


async def _never(ctx: Any) -> None:
    raise AssertionError("the player answers for activities")


#: an activity whose outcome the test decides
WORK = NodeType(type_id="acme.work", kind=NodeKind.ACTIVITY, activity=_never)
TYPES = {**built_in_types(), WORK.type_id: WORK}


def flow(steps: str, head: str = "") -> str:
    return f"workflow: sample\n{head}\nsteps:\n{steps}"


def compiled(text: str, filename: str = "flow.yaml") -> Flow:
    return compile_flow(parse_definition(compile_yaml(text, filename)), TYPES, "digest")


def played(text: str, failing: tuple[str, ...] = (), **inputs: Any) -> Run:
    """The run after everything that can happen has happened; ``failing`` activities fail."""
    flow, run = compiled(text), Run("run-1")
    player = _Player(run, flow)
    player.take(StartRun(tenant="t", principal="p", at=0, limits=RunLimits(), inputs=inputs))
    for _ in range(1000):
        if run.status is not Status.RUNNING or not player.step(failing):
            break
    return run


def did(run: Run) -> list[str]:
    """The nodes that completed, in the order they ended."""
    done = [key for key, node in run.nodes.items() if node.status is NodeStatus.COMPLETED]
    return sorted(done, key=lambda key: run.nodes[key].ended_seq)


def nodes(text: str) -> dict[str, dict[str, Any]]:
    compiled(text)
    return {node["id"]: node for node in compile_yaml(text, "flow.yaml")["nodes"]}


def value(text: str, **inputs: Any) -> Any:
    """What the variable 'x' is after the run."""
    run = played(text, **inputs)
    assert run.status is Status.COMPLETED, run.error
    return run.variables["x"]


class _Player:
    def __init__(self, run: Run, flow: Flow) -> None:
        self.run, self.flow, self.at = run, flow, 0

    def take(self, command: Any) -> bool:
        found = decide(self.run, self.flow, command)
        for new in found:
            apply(self.run, self._stamped(new))
        return bool(found)

    def step(self, failing: tuple[str, ...]) -> bool:
        if self.take(Advance(self.at)):
            return True
        owed = pending(self.run, self.flow)
        if owed.instant:
            return self.take(Compute(owed.instant[0], self.at))
        if owed.activities:
            node_id, attempt = owed.activities[0]
            return self.take(FinishNode(node_id, attempt, self._outcome(node_id, failing), self.at))
        waits = [node.due for key in self.run.active if (node := self.run.nodes[key]).due]
        if not waits:
            return False
        self.at = min(waits)
        return self.take(TimePassed(self.at))

    def _outcome(self, node_id: str, failing: tuple[str, ...]) -> Outcome:
        if node_id in failing:
            return Failed(NodeError(code="broken", message=f"{node_id} broke", retryable=False))
        return Completed({"from": node_id})

    def _stamped(self, new: NewEvent) -> Event:
        return Event(
            event_id=event_id(self.run.run_id, self.run.next_sequence),
            run_id=self.run.run_id,
            sequence=self.run.next_sequence,
            type=new.type,
            timestamp=iso(self.at * 1000),
            payload=new.payload,
            raw=new.raw,
            node_id=new.node_id if new.node_id is not None else UNSET,
            hints=new.hints if new.hints is not None else UNSET,
        )
