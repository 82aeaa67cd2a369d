"""Parents and children (protocol 2.4) across commits: mapping, cancellation, failure, depth."""

import asyncio
from typing import Any

import msgspec
import pytest

from moot import node as node_function
from moot.core.commands import CancelRun
from moot.core.errors import UnknownChildWorkflow
from moot.core.events import decode
from moot.core.runs.start import RunLimits
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.engine.host import Host
from tests.support.engine.hosts import (
    TENANT,
    Place,
    Recording,
    another,
    begun,
    chain,
    definition,
    delay,
    edge,
    ended,
    node,
    order,
    soon,
    sound,
    sub,
    until,
    variable,
)  # fmt: skip
from tests.support.event_payloads import payload_json

LEAF = chain(delay(60_000), id="leaf")
MIDDLE = chain(sub("leaf"), id="middle")
TOP = chain(sub("middle"), id="top")


async def family(host: Host, run_id: str) -> list[str]:
    """The run and its descendants, from the top."""
    found = [run_id]
    for name in found:
        await until(host, name, lambda run: run.terminal or bool(run.active))
        found += list((await host.view(TENANT, name)).run.children)
    return found


async def test_a_cancel_reaches_children_and_grandchildren_in_one_batch(place: Place) -> None:
    host = place.host(Recording)
    run_id = await begun(host, LEAF, MIDDLE, TOP)
    top, middle, leaf = await family(host, run_id)
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis(), "enough"))
    store: Any = host.store
    batch = store.batch_with(top, "run.cancelled")
    assert {append.run_id for append in batch.appends} == {top, middle, leaf}
    for append in batch.appends:
        assert decode(append.events[-1]).type == "run.cancelled"
        assert append.work is None and append.row.status == "cancelled"
    for child, above in ((middle, top), (leaf, middle)):
        said = payload_json(decode((await host.store.read(TENANT, child, -1, 100))[-1]))
        assert (said["reason"], said["parentRunId"]) == ("parent-cancelled", above)
    assert len(host.timers) == 0
    await sound(host)


async def test_a_cancel_reaches_children_that_are_only_on_disk(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, LEAF, MIDDLE, TOP)
    names = await family(host, run_id)
    again = await place.restart(host)
    await again.handle(TENANT, run_id, CancelRun(again.clock.millis()))
    for name in names:
        assert (await again.view(TENANT, name)).run.status is Status.CANCELLED
    await sound(again)


async def test_a_failing_parent_takes_its_children_with_it(place: Place) -> None:
    host = place.host()
    nodes = [sub("leaf"), delay(10, "first"), node("boom", "core.fail")]
    body = definition(nodes, [edge("first", "boom")], settings={"timeout": 60})
    run_id = await begun(host, LEAF, body)
    run = await ended(host, run_id)
    assert run.status is Status.FAILED
    child = await ended(host, next(iter(run.children)))
    assert child.status is Status.CANCELLED
    await sound(host)


async def test_a_child_that_may_live_on_does(place: Place) -> None:
    kid = chain(delay(60_000), id="kid")
    host = place.host()
    run_id = await begun(host, kid, chain(sub("kid", propagateCancellation=False)))
    _, child_run = await family(host, run_id)
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))
    place.clock.ahead_ms += 60_000
    host.timers.look()
    assert (await ended(host, child_run)).status is Status.COMPLETED
    assert (await host.view(TENANT, run_id)).run.status is Status.CANCELLED
    await sound(host)


async def test_the_child_of_an_attempt_that_took_too_long_is_cancelled(place: Place) -> None:
    host = place.host()
    given_up = sub("leaf") | {"settings": {"timeoutMs": 30_000}}
    body = definition([given_up, node("rescue")], [edge("sub", "rescue", "any_failed")])
    run_id = await begun(host, LEAF, body)
    await until(host, run_id, lambda run: run.children)
    place.clock.ahead_ms += 30_000
    host.timers.look()
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED
    child = await ended(host, next(iter(run.children)))
    assert child.status is Status.CANCELLED
    assert run.children == {child.run_id: "cancelled"}
    await sound(host)


@pytest.mark.parametrize("absorb", [False, True])
async def test_a_child_cancelled_by_hand_has_one_meaning_for_its_parent(
    place: Place, absorb: bool
) -> None:
    host = place.host()
    how = {"onChildFailure": "absorb"} if absorb else {}
    run_id = await begun(host, LEAF, chain(sub("leaf", **how)))
    _, child_run = await family(host, run_id)
    await host.handle(TENANT, child_run, CancelRun(host.clock.millis(), "by hand"))
    run = await ended(host, run_id)
    if absorb:
        assert run.status is Status.COMPLETED
        assert (run.nodes["sub"].outputs or {})["childStatus"] == "cancelled"
    else:
        assert run.error is not None and run.error.code == "child_failed"
        assert run.error.details["childStatus"] == "cancelled"


VARIABLES = [
    {"name": "given", "type": "object", "defaultValue": "the default"},
    {"name": "never", "type": "object"},
]


async def mapped(place: Place, inputs: dict[str, str], outputs: dict[str, str]) -> tuple[Run, Run]:
    """Parent and child after a run in which the child does nothing to what it was given."""
    host = place.host()
    kid = chain(node("n"), id="kid", variables=VARIABLES)
    mine = [{"name": "set", "type": "object", "defaultValue": [1]},
            {"name": "null", "type": "object", "defaultValue": None}]  # fmt: skip
    body = chain(sub("kid", inputMapping=inputs, outputMapping=outputs), variables=mine)
    run = await ended(host, await begun(host, kid, body))
    assert run.status is Status.COMPLETED
    child = (await host.view(TENANT, next(iter(run.children)))).run
    return run, child


async def test_what_the_parent_has_set_overrides_the_childs_default(place: Place) -> None:
    _, child = await mapped(place, {"given": "set"}, {})
    assert child.variables == {"given": [1]}


async def test_what_the_parent_has_not_set_is_unset_in_the_child_and_never_null(
    place: Place,
) -> None:
    _, child = await mapped(place, {"given": "nobody"}, {})
    assert child.variables == {}


async def test_a_null_is_handed_over_as_null(place: Place) -> None:
    _, child = await mapped(place, {"given": "null"}, {})
    assert child.variables == {"given": None}


async def test_only_what_the_child_has_set_flows_back(place: Place) -> None:
    run, _ = await mapped(place, {}, {"a": "given", "set": "never"})
    assert run.variables == {"set": [1], "null": None, "a": "the default"}


async def test_a_later_change_in_the_parent_does_not_reach_the_child(place: Place) -> None:
    go = asyncio.Event()

    @node_function("acme.gate")
    async def gate(value: Any) -> Any:
        await go.wait()
        return {"saw": value}

    place.knows(gate)
    host = place.host()
    look = node("look", "acme.gate", inputs={"value": variable("given")})
    kid = chain(look, id="kid", variables=VARIABLES)
    nodes = [
        sub("kid", inputMapping={"given": "v"}),
        delay(5, "first"),
        node("change", "core.setVariable", config={"name": "v", "value": "changed"}),
    ]
    old = [{"name": "v", "type": "object", "defaultValue": "old"}]
    body = definition(nodes, [edge("first", "change")], variables=old)
    run_id = await begun(host, kid, body)
    await until(host, run_id, lambda run: run.variables["v"] == "changed")
    go.set()
    run = await ended(host, run_id)
    assert (run.nodes["sub"].outputs or {})["childOutputs"] == {"saw": "old"}


async def test_an_unknown_child_is_refused_before_the_run_exists(place: Place) -> None:
    host = place.host()
    with pytest.raises(UnknownChildWorkflow):
        await begun(host, chain(sub("nobody")))
    assert await host.store.runs() == []


async def test_a_child_that_is_unknown_when_its_turn_comes_fails_the_node(place: Place) -> None:
    host = place.host()
    flow = await host.flows.register(TENANT, msgspec.json.encode(chain(sub("nobody"))))
    run = await ended(host, await another(host, flow))
    assert run.error is not None and run.error.code == "unknown_child_workflow"


async def test_what_is_too_deep_is_so_whether_its_workflow_is_known_or_not(place: Place) -> None:
    host = place.host(limits=RunLimits(depth=1))
    await host.flows.register(TENANT, msgspec.json.encode(chain(sub("nobody"), id="child")))
    flow = await host.flows.register(TENANT, msgspec.json.encode(chain(sub("child"))))
    await host.flows.load_worker(TENANT, "child")
    run = await ended(host, await another(host, flow))
    [child] = run.children
    assert (await host.view(TENANT, child)).run.error.code == "depth_exceeded"
    await sound(host)


async def test_workflows_call_each_other_only_so_deep(place: Place) -> None:
    host = place.host(limits=RunLimits(depth=4))
    run_id = await begun(host, chain(sub("sample")))
    run = await ended(host, run_id)
    assert run.status is Status.FAILED
    depths = []
    for _, name in await host.store.runs():
        found = await ended(host, name)
        depths.append(found.depth)
        assert found.status is Status.FAILED
    assert sorted(depths) == [0, 1, 2, 3, 4]
    await sound(host)


async def test_many_children_at_once_are_all_heard_of(place: Place) -> None:
    host = place.host()
    kid = chain(delay(5), id="kid")
    run = await ended(
        host, await begun(host, kid, definition([sub("kid", f"s{n}") for n in range(20)]))
    )
    assert run.status is Status.COMPLETED
    assert list(run.children.values()) == ["completed"] * 20
    await sound(host)


async def test_a_parent_hears_of_its_childs_end_after_a_crash_in_between(place: Place) -> None:
    """The child's end is on disk, and the host dies before it could tell the parent."""
    go = asyncio.Event()

    @node_function("acme.gate")
    async def gate() -> None:
        await go.wait()

    place.knows(gate)
    host = place.host()
    run_id = await begun(host, chain(node("n", "acme.gate"), id="kid"), chain(sub("kid")))
    await soon(lambda: len(host.activities))

    async def deaf(*_: Any) -> None:
        return

    host._report_child_end = deaf  # type: ignore[method-assign]
    go.set()
    child_run = next(iter((await host.view(TENANT, run_id)).run.children))
    await ended(host, child_run)
    await place.crash(host)
    again = place.host()
    await again.recover()
    assert (await ended(again, run_id)).status is Status.COMPLETED
    await sound(again)


async def test_the_log_of_a_parent_names_each_child_once(place: Place) -> None:
    host = place.host()
    kid = chain(node("n"), id="kid")
    run_id = await begun(host, kid, chain(sub("kid"), sub("kid", "again")))
    await ended(host, run_id)
    lines = await order(host, run_id)
    assert lines.count("node.dispatched sub") == 1 and lines.count("node.dispatched again") == 1
