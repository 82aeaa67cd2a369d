"""A world of runs driven through the pure core alone: virtual time, no threads, no asyncio.

It does what a host does around ``decide``, ``apply`` and ``pending``, and on the way checks what
must hold at every single step: deciding changes nothing, a refusal changes nothing, looking only
at the successors of what has ended finds what looking at the whole graph finds, and the fold of
what is in memory equals the fold of what was written and read back.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import UNSET

from moot.conformance.nodes.registry import conformance_types
from moot.core.catalogue import TERMINAL_TYPES
from moot.core.children import peer_requests
from moot.core.children.decide import ChildWaits, can_begin_child, child_spec, child_start_command
from moot.core.commands import Advance, CancelRun, Command, Compute, Dispatch, FinishNode, decide
from moot.core.councils.decide import AdvanceCouncil
from moot.core.errors import MootError
from moot.core.events import Event, NewEvent, decode, encode, event_id, iso
from moot.core.pending import PendingWork, pending
from moot.core.runs.answers import GateAnswer
from moot.core.runs.child_outputs import ChildEnded
from moot.core.runs.readiness import PortProblem
from moot.core.runs.start import RunLimits, StartRun
from moot.core.secrets import mask_event
from moot.core.speaker import Speaker
from moot.core.state.node import NODE_ENDS
from moot.core.state.run import Run, apply, fold
from moot.core.supervisors.decide import WorkerRefused
from moot.core.threads.decide import Control
from moot.core.workflows.definition import parse_definition
from moot.core.workflows.flow import Flow, compile_flow
from moot.core.workflows.node_types import (
    Completed,
    Failed,
    NodeCall,
    NodeError,
    NodeKind,
    NodeType,
)
from moot.core.workflows.peer_ids import is_peer_id
from moot.engine.nodes.registry import built_in_types
from tests.support.event_payloads import payload_json

START_MS = 1_700_000_000_000
TENANT = "acme"

#: keys: one that may speak as anyone, a person's, an agent's
CHAIR = Speaker("key_chair", admin=True)
ADA = Speaker("key_ada", ("user:ada",))
BOT = Speaker("key_bot", ("host:bot",))

state = msgspec.json.Encoder().encode
state_back = msgspec.json.Decoder(Run).decode


async def _never(ctx: Any) -> None:
    raise AssertionError("the world answers for activities")


def _noop(call: NodeCall) -> Completed:
    return Completed()


#: an activity whose outcome the test decides, and a node nobody can provide for
WORK = NodeType(type_id="acme.work", kind=NodeKind.ACTIVITY, activity=_never)
LACKING = NodeType(type_id="acme.lacking", kind=NodeKind.INSTANT, instant=_noop, requires=("moon",))
TYPES: dict[str, NodeType] = {
    **built_in_types(extra=conformance_types()), WORK.type_id: WORK, LACKING.type_id: LACKING
}  # fmt: skip


# -- definitions ---------------------------------------------------------------------------------


def node(name: str, type_id: str = "core.noop", **given: Any) -> dict[str, Any]:
    """A node of a definition; ``inputs`` and the other fields as the protocol has them."""
    fields = {"config": {}, "inputs": {}, "position": {"x": 0, "y": 0}, "name": name}
    return {"id": name, "typeId": type_id, **fields, **given}


def edge(source: str, target: str, rule: str = "all_success", **given: Any) -> dict[str, Any]:
    ends = {"sourceNodeId": source, "targetNodeId": target, "triggerRule": rule}
    return {"id": f"{source}>{target}", **ends, **given}


def definition(
    nodes: list[dict[str, Any]], edges: list[dict[str, Any]] | None = None, **given: Any
) -> dict[str, Any]:
    return {
        "id": "sample", "name": "sample", "version": "1.0", "nodes": nodes, "edges": edges or [],
        "triggers": [], "variables": [], "metadata": {}, "settings": {}, **given,
    }  # fmt: skip


def chain(*nodes: dict[str, Any], **given: Any) -> dict[str, Any]:
    """One node after the other."""
    edges = [edge(before["id"], after["id"]) for before, after in pairwise(nodes)]
    return definition(list(nodes), edges, **given)


def compiled(body: dict[str, Any], types: dict[str, NodeType] | None = None) -> Flow:
    return compile_flow(parse_definition(body), types or TYPES, f"digest-of-{body['id']}")


# -- the world -----------------------------------------------------------------------------------


class Life:
    """One run with its whole log, and the same run folded from what was written."""

    def __init__(self, run_id: str, flow: Flow) -> None:
        self.run, self.read_back = Run(run_id, tenant=TENANT), Run(run_id, tenant=TENANT)
        self.flow = flow
        self.log: list[Event] = []
        self.sealed: dict[str, Any] = {}

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.log]

    def told(self, type_: str) -> list[Event]:
        return [event for event in self.log if event.type == type_]

    def order(self) -> list[str]:
        """The log in short: ``type`` or ``type node``."""
        return [
            event.type if event.node_id is UNSET else f"{event.type} {event.node_id}"
            for event in self.log
        ]


class World:
    """Runs of one tenant and their children, at a time that only moves when told to."""

    def __init__(
        self, flows: dict[str, Flow] | None = None, most_events: int = 512, limits: Any = None
    ) -> None:
        self.flows = flows or {}
        self.limits: RunLimits = limits or RunLimits()
        self.lives: dict[str, Life] = {}
        self.micros = START_MS * 1000
        #: every decision takes so long; not a whole number of milliseconds, so that they cross one
        self.step_micros = 7
        #: commands that had an effect and must not have one again
        self.spent: list[tuple[str, Command]] = []
        self.unfinished: set[str] = set()
        self._most_events = most_events
        self._size = 0
        self._ended: dict[str, list[str]] = {}

    @property
    def at(self) -> int:
        return self.micros // 1000

    def pass_time(self, ms: int) -> None:
        self.micros += ms * 1000

    # -- commands

    def start(self, flow: Flow, **given: Any) -> Life:
        """A run that begins now; ``given`` are fields of StartRun."""
        run_id = f"run{len(self.lives)}"
        life = self.lives[run_id] = Life(run_id, flow)
        options = {"tenant": TENANT, "principal": "p", "limits": self.limits, **given}
        self.take(life, StartRun(at=self.at, **options))
        return life

    def take(self, life: Life, command: Command) -> list[Event]:
        """What one command causes in its own run, with everything that follows at once."""
        before = len(life.log)
        self._size = 0
        self._decide(life, command)
        if len(life.log) > before or isinstance(command, Advance):
            self._follow(life, scan=len(life.log) == before or life.types[before] == "run.resumed")
        if len(life.log) > before and not isinstance(command, Advance):
            self.spent.append((life.run.run_id, command))
        return life.log[before:]

    def refused(self, life: Life, command: Command) -> MootError | None:
        """The refusal the command meets, having changed nothing; None when it was taken."""
        before = {run_id: (state(each.run), len(each.log)) for run_id, each in self.lives.items()}
        try:
            self.take(life, command)
        except MootError as refusal:
            after = {k: (state(each.run), len(each.log)) for k, each in self.lives.items()}
            assert after == before, "a refusal changed something"
            return refusal
        return None

    def finish(self, life: Life, node_id: str, outcome: Any = None) -> list[Event]:
        attempt = life.run.nodes[node_id].attempt
        return self.take(life, FinishNode(node_id, attempt, outcome or Completed(), self.at))

    def fail(self, life: Life, node_id: str, code: str = "broken", **given: Any) -> list[Event]:
        error = NodeError(code=code, message=f"{node_id} broke", **given)
        return self.finish(life, node_id, Failed(error))

    def answer(
        self, life: Life, node_id: str, value: Any, who: Speaker = CHAIR, **given: Any
    ) -> list[Event]:
        return self.take(life, self.answering(node_id, value, who, **given))

    def answering(
        self, node_id: str, value: Any, who: Speaker = CHAIR, interrupt_id: str | None = None
    ) -> GateAnswer:
        return GateAnswer(
            node_id=node_id, value=value, who=who, at=self.at, interrupt_id=interrupt_id
        )  # fmt: skip

    def control(
        self, life: Life, content: Any, who: Speaker = CHAIR, sender: str | None = None
    ) -> list[Event]:
        return self.take(life, self.controlling(content, who, sender))

    def controlling(
        self, content: Any, who: Speaker = CHAIR, sender: str | None = None, node_id: str = "convo"
    ) -> Control:
        return Control(node_id=node_id, content=content, who=who, at=self.at, sender=sender)

    def child_of(self, life: Life, number: int = -1) -> Life:
        return self.lives[list(life.run.children)[number]]

    def tell_parent(self, child: Life) -> list[Event]:
        """The end of a child, as its host would tell the parent."""
        run = child.run
        assert run.terminal and run.parent_run is not None and run.parent_node is not None
        parent = self.lives[run.parent_run]
        ended = ChildEnded(
            node_id=run.parent_node, child_run=run.run_id, status=run.status.value, at=self.at,
            variables={**run.variables, **run.channels}, outputs=run.outputs or {},
            error=run.error, sealed=parent.sealed, runs=1 + run.spent,
        )  # fmt: skip
        return self.take(parent, ended)

    def mirror(self, child: Life) -> list[Event]:
        """How a living child waits, as its host would tell the parent."""
        run = child.run
        assert not run.terminal and run.parent_run is not None and run.parent_node is not None
        told = ChildWaits(
            node_id=run.parent_node, child_run=run.run_id, workflow_id=run.workflow_id,
            status=run.status.value,
        )  # fmt: skip
        return self.take(self.lives[run.parent_run], told) if run.going else []

    # -- what the host does around decide

    def decided(self, life: Life, command: Command) -> list[NewEvent]:
        """decide, and the proof that it only looked."""
        before = state(life.run)
        try:
            found = decide(life.run, life.flow, command)
        finally:
            assert state(life.run) == before, f"deciding {command} changed the state"
        return found

    def _decide(self, life: Life, command: Command) -> list[NewEvent]:
        found = self.decided(life, command)
        self.micros += self.step_micros
        moment = iso(self.micros)  # of all that it causes, as in a host
        for new in found:
            self._record(life, new, moment)
        return found

    def _follow(self, life: Life, scan: bool = False) -> None:
        run_id = life.run.run_id
        while self._size < self._most_events:
            after = tuple(self._ended.pop(run_id, ()))
            if self._advance(life, None if scan else after):
                continue
            scan = False
            owed = pending(life.run, life.flow)
            if owed.instant:
                self._decide(life, Compute(owed.instant[0], self.at, life.sealed))
            elif owed.dispatches:
                self._dispatch(life, owed.dispatches[0])
            elif owed.talks:
                assert self._decide(life, AdvanceCouncil(owed.talks[0], self.at)), "a step was owed"
            else:
                self.unfinished.discard(run_id)
                return
        if not life.run.terminal:
            self.unfinished.add(run_id)

    def _advance(self, life: Life, after: tuple[str, ...] | None) -> list[NewEvent]:
        whole = self.decided(life, Advance(self.at, None))
        if after is not None:
            near = self.decided(life, Advance(self.at, after))
            assert _named(near) == _named(whole), "the successors are not all there is to look at"
        return self._decide(life, Advance(self.at, after))

    def _dispatch(self, life: Life, node_id: str) -> None:
        state_, flow_node = life.run.nodes[node_id], life.flow.nodes[node_id]
        try:
            spec = child_spec(life.run, flow_node, self.at, life.sealed, state_.children)
        except PortProblem:
            spec = None
        away = spec is not None and is_peer_id(spec.workflow_id)
        known = spec is None or away or spec.workflow_id in self.flows
        if spec and not known and can_begin_child(life.run, life.flow, node_id, spec):
            error = NodeError(code="unknown_child_workflow", message="none", retryable=False)
            if flow_node.type.dispatches:
                self._decide(life, WorkerRefused(node_id, spec.workflow_id, error, self.at))
            else:
                self._decide(life, FinishNode(node_id, state_.attempt, Failed(error), self.at))
            return
        self._decide(life, Dispatch(node_id, self.at, life.sealed))

    def _record(self, life: Life, new: NewEvent, moment: str) -> None:
        run = life.run
        if life.sealed:
            new = mask_event(new, life.sealed, life.flow.masking)
        event = self._stamped(run, new, moment)
        life.log.append(event)
        apply(run, event)
        apply(life.read_back, decode(encode(event)))
        assert run == life.read_back, f"after {event.type} memory and log say different things"
        self._size += 1
        if new.type in NODE_ENDS and new.node_id is not None:
            self._ended.setdefault(run.run_id, []).append(new.node_id)
        if new.type == "variable.changed":
            life.sealed.pop(f"var:{payload_json(new)['name']}", None)
        if new.sealed:
            life.sealed.update(new.sealed)
        if new.type == "node.dispatched" and peer_requests.is_local_dispatch(new):
            self._spawn(life, str(new.node_id), str(payload_json(new)["childRunId"]))
        elif new.type in TERMINAL_TYPES:
            self._end(life)
        elif new.hints and new.hints.get("childRunId") in self.lives:
            given_up = self.lives[new.hints["childRunId"]]
            self._decide(given_up, CancelRun(self.at, parent_run=run.run_id))

    def _stamped(self, run: Run, new: NewEvent, moment: str) -> Event:
        sequence = run.next_sequence
        cause = new.cause if new.cause is not None else sequence - 1
        if isinstance(cause, int):
            cause = event_id(run.run_id, cause) if 0 <= cause < sequence else ""
        return Event(
            event_id=event_id(run.run_id, sequence), run_id=run.run_id, sequence=sequence,
            type=new.type, timestamp=moment, payload=new.payload, raw=new.raw, schema_version=1,
            engine_version=run.engine_version or getattr(new.payload, "engine_version", ""),
            node_id=new.node_id if new.node_id is not None else UNSET,
            causation_id=cause or UNSET,
            hints=new.hints if new.hints is not None else UNSET,
        )  # fmt: skip

    def _spawn(self, parent: Life, node_id: str, child_run: str) -> None:
        flow_node = parent.flow.nodes[node_id]
        command = child_start_command(parent.run, flow_node, self.at, parent.sealed, self.limits)
        workflow_id = payload_json(parent.log[-1])["childWorkflowId"]
        assert child_run not in self.lives, "two children have one id"
        child = self.lives[child_run] = Life(child_run, self.flows[workflow_id])
        self._decide(child, command)
        self._follow(child)

    def _end(self, life: Life) -> None:
        for child_run, status in life.run.children.items():
            if status is not None:
                continue  # it has ended, here or elsewhere
            child = self.lives[child_run]
            config = life.flow.nodes[str(child.run.parent_node)].definition.config
            if config.get("propagateCancellation") is not False:
                self._decide(child, CancelRun(self.at, "parent-ended", parent_run=life.run.run_id))

    # -- what is owed

    def owed(self, life: Life) -> PendingWork:
        return pending(life.run, life.flow)

    def owed_besides_the_deadline(self, life: Life) -> bool:
        """Whether anything but the run's own time limit will make it go on."""
        unlimited = msgspec.structs.replace(
            life.run, limits=msgspec.structs.replace(life.run.limits, duration_ms=0)
        )
        return life.run.run_id in self.unfinished or pending(unlimited, life.flow).anything

    @property
    def alive(self) -> list[Life]:
        return [life for life in self.lives.values() if not life.run.terminal]

    def untold(self) -> list[Life]:
        """Ended children whose living parent waits for them."""
        return [
            life
            for life in self.lives.values()
            if life.run.terminal
            and (parent := self.lives.get(life.run.parent_run or "")) is not None
            and parent.run.going
            and life.run.run_id in self.owed(parent).children
        ]

    def folded(self, life: Life, cut: int) -> Run:
        """The run folded up to the cut, put away as a cached state, and folded on from there."""
        run = state_back(state(fold(life.run.run_id, life.log[:cut]))) if cut else Run("")
        run.run_id = life.run.run_id
        for event in life.log[cut:]:
            apply(run, event)
        return run


def _named(found: list[NewEvent]) -> list[tuple[str, str | None]]:
    return [(new.type, new.node_id) for new in found]


Drive = Callable[[World], None]
