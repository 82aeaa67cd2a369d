"""Random plans of workers for a real host, and what must be so of every log they leave."""

import asyncio
from typing import Any

import hypothesis.strategies as st
from msgspec import Struct

from moot import NodeContext
from moot import node as node_function
from moot.core.children.handoff import TRANSITIONS
from moot.core.commands import CancelRun
from moot.core.events import Event
from moot.core.state.run import Run
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.node_types import Failed, NodeError
from moot.engine.host import Host
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    definition,
    edge,
    log,
    node,
    sound,
)
from tests.support.event_payloads import payload_json

CHAIN, DECIDED = "core.workflowChain.event", "runOrchestrator.decided"
DONE = {"kind": "terminate", "reason": "goal-reached"}
HOWS = ("completed", "failed", "cancelled", "bare")
MAPPINGS: list[dict[str, str]] = [
    {}, {"result": "out"}, {"result": "out", "other": "more"}, {"other": "never"}
]  # fmt: skip


class Worker(Struct, frozen=True):
    """How a worker ends, after so many rounds of the loop; one that is bare sets no variable."""

    how: str
    rounds: int


class Plan(Struct, frozen=True, kw_only=True):
    workers: list[Worker]
    parallel: bool
    mode: str
    quorum: int
    on_failure: str
    most: int | None
    mapping: dict[str, str]
    #: workers whose own mapping is another one
    own: dict[int, dict[str, str]]
    #: the place of a worker that is nowhere registered
    missing: int | None


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    workers = draw(
        st.lists(
            st.builds(Worker, st.sampled_from(HOWS), st.integers(0, 12)), min_size=1, max_size=8
        )
    )
    count = len(workers)
    places = st.integers(0, count - 1)
    return Plan(
        workers=workers,
        parallel=draw(st.booleans()),
        mode=draw(st.sampled_from(["wait-all", "quorum", "first", "race"])),
        quorum=draw(st.integers(1, count)),
        on_failure=draw(st.sampled_from(["collect", "fail-fast", "absorb"])),
        most=draw(st.none() | st.integers(1, 4)),
        mapping=draw(st.sampled_from(MAPPINGS)),
        own=draw(st.dictionaries(places, st.sampled_from(MAPPINGS), max_size=3)),
        missing=draw(st.none() | st.none() | places),
    )


@node_function("acme.end")
async def end(ctx: NodeContext) -> Any:
    for _ in range(ctx.config["rounds"]):
        await asyncio.sleep(0)
    if ctx.config["how"] == "failed":
        return Failed(NodeError(code="broken", message="It broke.", retryable=False))
    if ctx.config["how"] == "cancelled":
        await asyncio.Event().wait()
    return {}


def name_of(plan: Plan, number: int) -> str:
    return "nobody" if number == plan.missing else f"w{number}"


def workflows(plan: Plan) -> list[dict[str, Any]]:
    made = []
    for number, worker in enumerate(plan.workers):
        config = {"how": worker.how, "rounds": worker.rounds}
        given = [] if worker.how == "bare" else [
            {"name": name, "type": "string", "defaultValue": f"{name} {number}"}
            for name in ("out", "more")
        ]  # fmt: skip
        work = node("w", "acme.end", config=config)
        made.append(chain(work, id=f"w{number}", variables=given))
    return [*made, _led(plan)]


def _led(plan: Plan) -> dict[str, Any]:
    own = {name_of(plan, number): mapping for number, mapping in plan.own.items()}
    config: dict[str, Any] = {"outputMapping": plan.mapping, "perWorkerOutputMappings": own}
    if plan.parallel:
        join = {"mode": plan.mode, "onChildFailure": plan.on_failure, "quorum": plan.quorum}
        config |= {"fanOutPolicy": "parallel", "joinPolicy": join}
        config |= {"maxConcurrency": plan.most} if plan.most else {}
    names = [name_of(plan, number) for number in range(len(plan.workers))]
    order = {"kind": "next-worker", "nextWorkerIds": names}
    nodes = [
        node("boss", SUPERVISOR, config={"plan": [order, DONE]}),
        node("hands", DISPATCH, config=config),
    ]
    back = [edge("boss", "hands"), edge("hands", "boss")]
    return definition(nodes, back, id="led")


async def lived(place: Place, plan: Plan) -> tuple[Host, Run, list[Event]]:
    """The plan, carried out to its end; who is to be cancelled is cancelled."""
    place.knows(end)
    host = place.host()
    run_id = await begun(host, *workflows(plan))
    reader = host.hub.subscribe(run_id)
    async with asyncio.timeout(60):
        while not (run := (await host.view(TENANT, run_id)).run).terminal:
            for child, status in list(run.children.items()):
                if status is None and _hangs(plan, (await host.view(TENANT, child)).run):
                    await host.handle(TENANT, child, CancelRun(host.clock.millis()))
            await reader.wait(0.01)
            reader.waiting.clear()
            reader.lagging = False
    host.hub.unsubscribe(run_id, reader)
    await sound(host)
    return host, run, await log(host, run_id)


def _hangs(plan: Plan, child: Run) -> bool:
    return plan.workers[int(child.workflow_id[1:])].how == "cancelled"


# -- what must be so -----------------------------------------------------------------------------


def chains(events: list[Event]) -> dict[str, list[Event]]:
    """The steps of each handoff in order, by the event it began with; all lead to the decision."""
    by_id = {event.event_id: event for event in events}
    found: dict[str, list[Event]] = {}
    for event in events:
        if event.type != CHAIN:
            continue
        here, steps = event, 0
        while TRANSITIONS[payload_json(here)["phase"]]:
            before = by_id[here.causation_id]
            assert payload_json(before)["phase"] in TRANSITIONS[payload_json(here)["phase"]]
            assert payload_json(before)["workerId"] == payload_json(here)["workerId"]
            here, steps = before, steps + 1
        decided = by_id[here.causation_id]
        assert decided.type == DECIDED
        assert payload_json(event)["workerId"] in payload_json(decided)["decision"]["nextWorkerIds"]
        path = found.setdefault(here.event_id, [])
        assert len(path) == steps, "a phase was left twice, or not at all"
        path.append(event)
    return found


def check(plan: Plan, run: Run, events: list[Event], children: dict[str, Run]) -> None:
    paths = list(chains(events).values())
    for path in paths:
        _check_child(plan, path, children)
    assert all(child.terminal for child in children.values()), "nobody lives on"
    limit = (plan.most or 8) if plan.parallel and len(plan.workers) > 1 else 1
    assert _most_at_once(events) <= limit
    joins = [payload_json(event) for event in events if event.type == "core.dispatch.join"]
    if joins:
        _check_join(plan, run, events, joins[0], children)
    assert run.variables == _replayed(events), "what is recorded is what was applied"


def mapping_of(plan: Plan, worker: str) -> dict[str, str]:
    own = {name_of(plan, number): mapping for number, mapping in plan.own.items()}
    return own.get(worker, plan.mapping)


def _check_child(plan: Plan, path: list[Event], children: dict[str, Run]) -> None:
    phases = [payload_json(event)["phase"] for event in path]
    worker = payload_json(path[0])["workerId"]
    if worker == "nobody":
        assert phases == ["dispatch.began", "dispatch.failed"]
        return
    child = children[payload_json(path[1])["childRunId"]]
    assert phases[:2] == ["dispatch.began", "dispatch.succeeded"]
    assert phases[2:3] == [f"child.{child.status}"]
    mapping = mapping_of(plan, worker)
    if phases[3:]:
        assert phases[3:] == ["output.harvested"] and child.status == "completed" and mapping
        keys = [mine for mine, theirs in mapping.items() if theirs in child.variables]
        assert payload_json(path[3])["harvestedKeys"] == keys
    if child.status == "cancelled" and plan.workers[int(worker[1:])].how != "cancelled":
        assert child.with_parent, "who was not needed was cancelled by nobody else"
    assert child.status != "failed" or plan.workers[int(worker[1:])].how == "failed"


def _most_at_once(events: list[Event]) -> int:
    most = living = 0
    for event in events:
        phase = payload_json(event).get("phase", "") if event.type == CHAIN else ""
        living += (phase == "dispatch.succeeded") - phase.startswith("child.")
        most = max(most, living)
    return most


def _check_join(
    plan: Plan, run: Run, events: list[Event], said: dict[str, Any], children: dict[str, Run]
) -> None:
    """Who ended by itself when it was not needed any more has no part in it."""
    ends = [event for event in events if payload_json(event).get("phase", "")[:6] == "child."]
    lost = {payload_json(end)["childRunId"] for end in ends if end.hints["result"]["lost"]}
    late = {name for name in lost if children[name].status != "cancelled"}
    seen = [payload_json(end)["childRunId"] for end in ends]
    assert said["mergeOrder"] == [name for name in seen if name not in late]
    children = {name: child for name, child in children.items() if name not in late}
    good = sum(child.status == "completed" for child in children.values())
    bad = len(children) - good - len(lost - late)
    assert said["completedCount"] == good
    assert said["failedCount"] == sum(child.status == "failed" for child in children.values())
    assert said["cancelledCount"] == len(children) - good - said["failedCount"]
    reached = {"wait-all": good + bad == len(plan.workers), "quorum": good >= plan.quorum,
               "first": good >= 1, "race": good + bad >= 1}[plan.mode]  # fmt: skip
    hurt = plan.on_failure == "fail-fast" and bad
    expected = "partial" if bad else "satisfied"
    if hurt or (not reached and plan.on_failure != "absorb"):
        expected = "failed"
    assert said["joinOutcome"] == expected
    assert run.status == ("failed" if expected == "failed" else "completed")
    told = [payload_json(event) for event in events if event.type == CHAIN]
    merged = [each["childRunId"] for each in told if each["phase"] == "output.harvested"]
    assert merged == [name for name in said["mergeOrder"] if name in merged]
    if expected == "failed":
        assert not merged
    else:
        wanted = [name for name in said["mergeOrder"] if children[name].status == "completed"
                  and mapping_of(plan, children[name].workflow_id)]  # fmt: skip
        assert merged == wanted, "everybody who completed and is mapped"


def _replayed(events: list[Event]) -> dict[str, Any]:
    """What the last of those that were harvested had to say."""
    found: dict[str, Any] = {}
    for event in events:
        if event.type == "variable.changed":
            found[payload_json(event)["name"]] = payload_json(event)["next"]
    return found
