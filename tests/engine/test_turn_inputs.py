"""What a supervisor knew in a turn, on a real host: while it decides, afterwards, and on replay."""

from typing import Any

import msgspec
import pytest

from moot.core.errors import BadRequest, NotFound
from moot.core.state.status import Status
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.node_types import Decided, NodeKind, NodeType
from moot.core.workflows.turn_inputs import WINDOW, TurnInputs
from moot.engine.host import Host
from moot.engine.nodes.context import NodeContext
from moot.engine.supervisors import read_turn_inputs
from tests.engine.test_supervisors import DONE, hand, led, worker
from tests.support.engine.hosts import TENANT, Place, begun, ended, until
from tests.support.engine.replays import answer, same, waits

heard: list[TurnInputs] = []


async def _think(ctx: NodeContext) -> Decided:
    """A supervisor that takes its time: it hands on work for as long as nobody failed."""
    turn = await ctx.turn_inputs()
    heard.append(turn)
    plan = ctx.config["plan"]
    return Decided(
        agent_id="host:thinker",
        decision=plan[turn.iteration - 1],
        confidence=ctx.config.get("confidence"),
    )


THINKER = NodeType(type_id=SUPERVISOR, kind=NodeKind.ACTIVITY, activity=_think)


@pytest.fixture(autouse=True)
def _nothing_heard() -> None:
    heard.clear()


def alike(one: Any, other: Any) -> bool:
    return msgspec.json.encode(one) == msgspec.json.encode(other)


async def every(host: Host, run_id: str, turns: int) -> list[TurnInputs]:
    return [await read_turn_inputs(host, TENANT, run_id, turn) for turn in range(1, turns + 1)]


async def test_what_is_read_back_is_what_the_supervisor_was_told(place: Place) -> None:
    place.knows(THINKER)
    host = place.host()
    run_id = await begun(host, worker("a"), led(hand("a"), hand("a", "a"), DONE))
    assert (await ended(host, run_id)).status is Status.COMPLETED
    assert [turn.iteration for turn in heard] == [1, 2, 3]
    assert [len(turn.workers) for turn in heard] == [0, 1, 2]
    assert alike(await every(host, run_id, 3), heard)
    with pytest.raises(NotFound):
        await read_turn_inputs(host, TENANT, run_id, 4)
    with pytest.raises(NotFound):
        await read_turn_inputs(host, "other", run_id, 1)


async def test_a_replay_knew_the_same_and_asked_nobody(place: Place) -> None:
    place.knows(THINKER)
    host = place.host()
    run_id = await begun(host, worker("a"), led(hand("a"), DONE))
    await ended(host, run_id)
    told = len(heard)
    fork = await same(host, run_id)
    assert len(heard) == told
    ours, theirs = await every(host, run_id, 2), await every(host, fork.run_id, 2)
    for mine, yours in zip(ours, theirs, strict=True):
        assert (mine.iteration, mine.memory_boundary) == (yours.iteration, yours.memory_boundary)
        assert mine.transcript[1:] == yours.transcript[1:], "all but whose fork it is"


async def test_a_held_decision_is_ratified_without_asking_again(place: Place) -> None:
    place.knows(THINKER)
    host = place.host()
    flow = led(hand("a"), DONE)
    flow["nodes"][0]["config"]["confidence"] = 0.2
    run_id = await begun(host, worker("a"), flow)
    for number in (1, 2):
        await until(host, run_id, waits)
        assert len(heard) == number
        await answer(host, run_id, "boss", {"action": "accept"})
        await until(host, run_id, lambda run: "boss" not in run.interrupts)
    assert (await ended(host, run_id)).status is Status.COMPLETED
    assert [turn.iteration for turn in heard] == [1, 2]


async def test_a_long_loop_looks_back_no_further_than_its_window(memory: Place) -> None:
    memory.knows(THINKER)
    host = memory.host()
    run_id = await begun(host, worker("a"), led(*[hand("a")] * 25, DONE))
    await ended(host, run_id)
    assert [len(turn.transcript) for turn in heard][-5:] == [WINDOW] * 5
    assert alike(await every(host, run_id, 26), heard)


async def test_only_supervisors_have_turns(memory: Place) -> None:
    refusals: list[BaseException] = []

    async def curious(ctx: NodeContext) -> None:
        try:
            await ctx.turn_inputs()
        except BadRequest as refusal:
            refusals.append(refusal)

    memory.knows(NodeType(type_id="acme.curious", kind=NodeKind.ACTIVITY, activity=curious))
    host = memory.host()
    flow = worker("a", {**worker("x")["nodes"][0], "typeId": "acme.curious"})
    assert (await ended(host, await begun(host, flow))).status is Status.COMPLETED
    assert len(refusals) == 1
