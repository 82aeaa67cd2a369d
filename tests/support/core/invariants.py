"""What is true of every log, however it came about."""

from collections import Counter

from msgspec import UNSET

from moot.core.catalogue import TERMINAL_TYPES
from moot.core.events import Event
from moot.core.interrupts import inbox
from moot.core.pending import NO_WORK
from moot.core.state.run import Run
from moot.core.state.status import NODE_TERMINAL, NodeStatus, Status
from tests.support.core import naive_fold
from tests.support.core.simulator import Life, World
from tests.support.event_payloads import payload_json

ATTEMPT_ENDS = frozenset({"node.completed", "node.failed", "node.cancelled", "node.retried"})
NODE_ENDS = frozenset({"node.completed", "node.failed", "node.cancelled", "node.skipped"})
END_OF_PAUSE = frozenset({"run.resumed", "run.cancelled", "run.failed"})


def check_world(world: World) -> None:
    for life in world.lives.values():
        check_state(world, life)
        check_log(world, life)


def check_state(world: World, life: Life) -> None:
    """What is so right after every command."""
    run = life.run
    owed = world.owed(life)
    assert run.status is naive_fold.status(life.log)
    assert inbox_of(run) == naive_fold.inbox(life.log)
    if not run.going:
        assert owed == NO_WORK
    elif run.status is Status.RUNNING:
        assert world.owed_besides_the_deadline(life), f"stalled: {life.order()}"
    if run.terminal:
        assert not run.active
        assert all(node.status in NODE_TERMINAL for node in run.nodes.values()), life.order()
        check_outcome(life)
        check_children(world, life)
    check_attempts_of_children(world, life)
    assert len(run.active) <= run.limits.parallel
    assert set(run.active) == {k for k, n in run.nodes.items() if n.status not in NODE_TERMINAL}


def inbox_of(run: Run) -> list[naive_fold.Row]:
    return [(item.id, item.node_id, item.kind) for item in inbox.inbox_items(run)]


def check_outcome(life: Life) -> None:
    """The end follows from the last nodes, unless a limit or somebody ended the run."""
    run, flow = life.run, life.flow
    if run.status is Status.CANCELLED or "cap.breached" in life.types:
        return
    assert set(run.nodes) == set(flow.nodes), "a run ended with nodes nobody looked at"
    ends = [run.nodes[name] for name in flow.ends]
    failed = any(node.status is NodeStatus.FAILED for node in ends)
    passed = any(node.status is NodeStatus.COMPLETED or node.reason == "disabled" for node in ends)
    assert run.status is (Status.COMPLETED if passed and not failed else Status.FAILED)
    if run.status is Status.FAILED:
        assert run.error is not None and run.error.code


def check_children(world: World, life: Life) -> None:
    """No child that was not told to live on outlives its parent."""
    for child_run in life.run.children:
        child = world.lives[child_run]
        config = life.flow.nodes[str(child.run.parent_node)].definition.config
        if config.get("propagateCancellation") is not False:
            assert child.run.terminal, "a child outlived its parent"


def check_attempts_of_children(world: World, life: Life) -> None:
    """A child lives no longer than the attempt that waits for it, unless it may."""
    at_work = (life.run.nodes[name] for name in life.run.active)
    waited_for = {node.child for node in at_work if node.child is not None}
    for child_run in set(life.run.children) - waited_for:
        child = world.lives[child_run]
        config = life.flow.nodes[str(child.run.parent_node)].definition.config
        if config.get("propagateCancellation") is not False:
            assert child.run.terminal, "a child outlived the attempt that waited for it"


def check_log(world: World, life: Life) -> None:
    log = life.log
    assert [event.sequence for event in log] == list(range(len(log)))
    assert len({event.event_id for event in log}) == len(log)
    assert [event.timestamp for event in log] == sorted(event.timestamp for event in log)
    assert life.types.count("run.started") == 1 and log[0].type == "run.started"
    ends = [event for event in log if event.type in TERMINAL_TYPES]
    assert len(ends) <= 1 and (not ends or ends[0] is log[-1])
    assert bool(ends) == life.run.terminal
    _check_causes(world, life)
    _check_pauses(log)
    _check_caps(life)
    _check_given_up(life)
    _check_agents(life)
    for node_id in {event.node_id for event in log if event.node_id is not UNSET}:
        _check_node([event for event in log if event.node_id == node_id or _pauses(event)])


def _pauses(event: Event) -> bool:
    return event.type == "run.paused"


def _check_causes(world: World, life: Life) -> None:
    first = life.log[0]
    if life.run.parent_run is None:
        assert first.causation_id is UNSET
    else:
        parent = world.lives[life.run.parent_run]
        causes = [event for event in parent.log if event.event_id == first.causation_id]
        assert [payload_json(event)["childRunId"] for event in causes] == [life.run.run_id]
    known = {first.event_id}
    for event in life.log[1:]:
        assert event.causation_id in known, f"{event.type} has no cause in its run"
        known.add(event.event_id)


def _check_pauses(log: list[Event]) -> None:
    """After a pause comes its end; what it cancels may be named first."""
    paused = False
    for event in log:
        if paused and event.type == "node.cancelled":
            continue
        assert not paused or event.type in END_OF_PAUSE, f"{event.type} while the run was paused"
        paused = event.type == "run.paused"


def _check_agents(life: Life) -> None:
    """Pinned nodes name their agent, and only a handoff puts one agent in another's place."""
    holder = None
    for event in life.log:
        if event.type == "agent.handoff":
            assert payload_json(event)["fromAgentId"] == holder != payload_json(event)["toAgentId"]
            holder = payload_json(event)["toAgentId"]
        elif event.type == "node.started" and payload_json(event)["attempt"] == 1:
            pin = life.flow.agents.get(str(event.node_id))
            assert payload_json(event).get("agent") == pin
            holder = pin["agentId"] if pin and holder is None else holder
            assert pin is None or pin["agentId"] == holder
    assert (life.run.agent or {}).get("agentId") == holder


def _check_caps(life: Life) -> None:
    limit = life.run.limits.node_executions
    assert life.types.count("node.started") <= limit, "an over-limit node was started"
    breaches = life.told("cap.breached")
    assert len(breaches) <= 1
    if breaches:
        said = payload_json(breaches[0])
        assert said["observed"] > said["limit"]
        assert life.log[-1].type == "run.failed"
        after = life.types[breaches[0].sequence + 1 : -1]
        assert set(after) <= {"node.cancelled"}
        if said["kind"] == "node-executions":
            assert life.types.count("node.started") == limit
            over = [e for e in life.told("node.started") if e.sequence > breaches[0].sequence]
            assert not over


def _check_given_up(life: Life) -> None:
    """Said once, just before the end, of the node whose attempts are all used up."""
    said = life.told("run.dead_lettered")
    end = life.log[-1]
    failed = payload_json(end).get("failedNodeId") if end.type == "run.failed" else None
    tries = [event for event in life.told("node.retried") if event.node_id == failed]
    most = life.flow.nodes[failed].retries if failed in life.flow.nodes else 0
    if failed is None or not 0 < most <= len(tries) or life.told("cap.breached"):
        assert not said
        return
    assert [event.sequence for event in said] == [end.sequence - 1]
    assert payload_json(said[0])["nodeId"] == failed
    assert payload_json(said[0])["attempts"] == len(tries) + 1


def _waited_for(event: Event, before: str | None) -> str | None:
    """The child a node waits for after a dispatch: one that begins, none when it has ended."""
    hints = {} if event.hints is UNSET else event.hints
    if "tree" in hints or "askId" in hints:
        return str(payload_json(event)["childRunId"])
    return before if payload_json(event).get("childStatus") in naive_fold.SHOWN else None


def _check_node(events: list[Event]) -> None:
    """A start before each end, one end for each attempt, nothing after the node's end."""
    attempt, at_work, over, waits_for = 0, False, False, None
    asked = False
    for event in events:
        if _pauses(event):
            at_work = at_work and (asked or waits_for is not None)
            continue
        assert not over, f"{event.type} after the end of the node"
        if event.type == "node.started":
            assert not at_work, "an attempt began while another was at work"
            assert payload_json(event)["attempt"] == attempt + 1
            attempt, at_work, waits_for = attempt + 1, True, None
        elif event.type == "node.dispatched":
            assert at_work
            waits_for = _waited_for(event, waits_for)
        elif event.type == "interrupt.requested":
            assert at_work and not asked, "a question was put while another was open"
            asked = True
        elif event.type == "interrupt.resolved":
            assert asked, "a question was answered that nobody had put"
            asked = False
        elif event.type in ("node.suspended", "node.resumed"):
            assert at_work and asked == (event.type == "node.suspended")
        elif event.type in ("node.completed", "node.retried"):
            assert at_work and not asked, f"{event.type} without a start, or a question is open"
        elif event.type == "node.failed":
            lacking = payload_json(event)["error"]["code"] == "capability_not_provided"
            assert at_work or (lacking and not attempt)
        elif event.type == "node.cancelled":
            assert attempt, "a node was cancelled that never began"
        if event.type in ATTEMPT_ENDS:
            at_work = False
        over = event.type in NODE_ENDS
    ends = Counter(event.type for event in events if event.type in NODE_ENDS)
    assert ends.total() <= 1
