"""The same lives through the host's own turn: what a command causes at once, batch by batch."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from moot.core.commands import Command, PauseRun
from moot.core.events import Event, decode
from moot.core.runs.start import RunLimits, StartRun
from moot.core.state.run import apply, fold
from moot.core.workflows.flow import Flow
from moot.engine import transaction
from moot.engine.derived_rows import inbox_rows, next_due, run_row
from moot.engine.head import Head
from moot.engine.transaction import Transaction
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Batch, InboxRow
from tests.support.core.invariants import check_world
from tests.support.core.random_flows import (
    SECRET,
    Move,
    Story,
    bodies,
    examples,
    flows_of,
    limits,
    moves,
)
from tests.support.core.simulator import TENANT, Life, World, chain, compiled, node, state


class WorldClock:
    """The world's time; every look at it takes a little."""

    def __init__(self, world: World) -> None:
        self._world = world

    def micros(self) -> int:
        self._world.micros += self._world.step_micros
        return self._world.micros

    def millis(self) -> int:
        return self._world.at

    def new_id(self, prefix: str) -> str:
        raise AssertionError("a turn draws no ids")

    new_secret = new_id


class KnownFlows(WorkflowRegistry):
    def __init__(self, flows: dict[str, Flow]) -> None:
        self._flows = flows

    def known(self, tenant: str, workflow_id: str) -> Flow | None:
        return self._flows.get(workflow_id)


class TurnWorld(World):
    """A world whose commands are taken by the host's turn, and whose batches are checked."""

    def __init__(self, flows: dict[str, Flow], most_events: int, ceilings: RunLimits) -> None:
        super().__init__(flows, most_events, ceilings)
        self.heads: dict[str, Head] = {}
        self.sealed: dict[str, dict[str, bytes]] = {}
        self.work: dict[str, int | None] = {}
        self.inbox: dict[str, list[InboxRow]] = {}

    def start(self, flow: Flow, **given: Any) -> Life:
        run_id = f"run{len(self.lives)}"
        life = self.lives[run_id] = Life(run_id, flow)
        self.heads[run_id] = self._head(life)
        options = {"tenant": TENANT, "principal": "p", "limits": self.limits, **given}
        self.take(life, StartRun(at=self.at, **options))
        return life

    def _head(self, life: Life) -> Head:
        head = Head(life.run, life.flow, life.sealed)
        head.sealed = life.sealed
        return head

    def take(self, life: Life, command: Command) -> list[Event]:
        before = len(life.log)
        turn = Transaction(KnownFlows(self.flows), WorldClock(self), self.limits)
        living = {k: head for k, head in self.heads.items() if not head.run.terminal}
        turn.take(self.heads[life.run.run_id], command, living)
        owed = turn.owed()
        for head in turn.new_heads:
            self._adopt(head)
        self._committed(turn.batch)
        for run_id in owed:
            self.unfinished.discard(run_id)
        self.unfinished |= turn.unfinished
        if len(life.log) > before:
            self.spent.append((life.run.run_id, command))
        return life.log[before:]

    def _adopt(self, head: Head) -> None:
        if head.run.run_id not in self.lives:
            life = self.lives[head.run.run_id] = Life(head.run.run_id, head.flow)
            life.run, life.sealed = head.run, head.sealed
            self.heads[head.run.run_id] = head

    def _committed(self, batch: Batch) -> None:
        """What a store would keep, compared with what is in memory."""
        for append in batch.appends:
            life = self.lives[append.run_id]
            assert append.first == len(life.log)
            for body in append.events:
                event = decode(body)
                life.log.append(event)
                apply(life.read_back, event)
            assert life.run == life.read_back, "memory and log say different things"
            assert append.row == run_row(life.run)
            self.work[append.run_id] = append.work  # type: ignore[assignment]
            if append.inbox is not UNSET:
                self.inbox[append.run_id] = append.inbox
        for _, run_id, name, value in batch.sealed:
            kept = self.sealed.setdefault(run_id, {})
            if value is None:
                kept.pop(name, None)
            else:
                kept[name] = value
        for _, run_id in batch.unseal:
            self.sealed.pop(run_id, None)

    def check_rows(self) -> None:
        """After a restart the host would look at the run when it must."""
        for run_id, life in self.lives.items():
            owed = 0 if run_id in self.unfinished else next_due(self.owed(life))
            early = not life.run.terminal and self.work[run_id] == 0  # to look in vain is no harm
            assert early or self.work[run_id] == owed
            assert self.inbox.get(run_id, []) == inbox_rows(life.run), "a row too many or too few"
            if life.run.terminal:
                assert run_id not in self.sealed, "an ended run forgets what was sealed"
            else:
                kept = {k: msgspec.json.decode(v) for k, v in self.sealed.get(run_id, {}).items()}
                assert kept == life.sealed


def lived(body: dict[str, Any], ceilings: RunLimits, story: list[Move]) -> TurnWorld:
    world = TurnWorld(flows_of(body), transaction.MOST_EVENTS, ceilings)
    world.start(world.flows["self"])
    teller = Story(world)
    for move in story:
        teller.happen(move)
        check_world(world)
        world.check_rows()
    teller.to_the_end()
    check_world(world)
    world.check_rows()
    return world


stories = st.lists(moves, max_size=25)


@pytest.mark.parametrize("most", [1, 4, 512])
@examples(100)
@given(body=bodies(), ceilings=limits, story=stories)
def test_a_turn_keeps_the_promises_of_the_log(
    most: int, body: dict[str, Any], ceilings: RunLimits, story: list[Move]
) -> None:
    """Also when its batches are cut short, so that the rest follows in later ones."""
    whole, transaction.MOST_EVENTS = transaction.MOST_EVENTS, most
    try:
        lived(body, ceilings, story)
    finally:
        transaction.MOST_EVENTS = whole


@examples(60)
@given(bodies(), stories)
def test_what_a_turn_writes_folds_to_what_it_holds_and_tells_no_secret(
    body: dict[str, Any], story: list[Move]
) -> None:
    world = lived(body, RunLimits(depth=2), story)
    for life in world.lives.values():
        assert fold(life.run.run_id, life.log) == life.run
        if life.run.parent_run is None:
            assert SECRET.encode() not in state(life.run)


def test_a_pause_between_two_parts_of_a_step_drains_when_the_node_is_to_be_tried_again() -> None:
    flaky = node("f", "core.fail", config={"retryable": True}, settings={"maxRetries": 1})
    flow = compiled(chain(node("n"), flaky))
    whole, transaction.MOST_EVENTS = transaction.MOST_EVENTS, 4
    try:
        world = TurnWorld({}, 4, RunLimits())
        life = world.start(flow)
        assert life.order()[-1] == "node.started f" and world.unfinished
        world.take(life, PauseRun(world.at))
        assert life.order()[-3:] == ["moot.pause.requested", "node.retried f", "run.paused"]
    finally:
        transaction.MOST_EVENTS = whole
