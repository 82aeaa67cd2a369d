"""Attested children on a real host: restarts while a person is asked, replays that ask nobody."""

from typing import Any

import pytest

from moot.core.commands import CancelRun
from moot.core.state.status import Status
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    ended,
    log,
    node,
    sound,
    sub,
    until,
)
from tests.support.engine.replays import answer, from_everywhere, waits
from tests.support.event_payloads import payload_json

OUT = {"name": "out", "type": "string", "defaultValue": "done"}
RESULT = {"name": "result", "type": "string", "defaultValue": "before"}
BOTH = {"checksum": True, "requireApproval": True}


def parent(attest: dict[str, Any] = BOTH, **config: Any) -> dict[str, Any]:
    asks = sub("child", outputMapping={"result": "out"}, outputAttestation=attest, **config)
    return chain(asks, node("after"), id="parent", variables=[RESULT])


CHILD = chain(node("w"), id="child", variables=[OUT])


async def test_a_question_outlives_a_restart(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, CHILD, parent())
    await until(host, run_id, waits)
    await place.crash(host)
    fresh = place.host()
    await fresh.recover()
    assert (await fresh.view(TENANT, run_id)).run.variables == {"result": "before"}
    await answer(fresh, run_id, "sub", {"action": "accept"})
    assert (await ended(fresh, run_id)).variables == {"result": "done"}
    await sound(fresh)


@pytest.mark.parametrize(
    "value",
    [{"action": "accept"}, {"action": "reject"},
     {"action": "edit-accept", "editedArtifactData": {"out": "edited"}}],
)  # fmt: skip
async def test_a_replay_merges_what_was_merged_and_asks_nobody(place: Place, value: Any) -> None:
    host = place.host()
    source = await begun(host, CHILD, parent(onChildFailure="absorb"))
    await until(host, source, waits)
    await answer(host, source, "sub", value)
    assert (await ended(host, source)).status is Status.COMPLETED
    await from_everywhere(host, source)


async def test_a_cancel_while_a_person_is_asked_merges_nothing(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, CHILD, parent())
    await until(host, run_id, waits)
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))
    run = await ended(host, run_id)
    assert run.status is Status.CANCELLED and run.variables == {"result": "before"}
    assert "output.harvested" not in [payload_json(e).get("phase") for e in await log(host, run_id)]
    await sound(host)


async def test_nobody_in_time_merges_nothing(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, CHILD, parent({**BOTH, "timeoutMs": 60_000}))
    await until(host, run_id, waits)
    place.clock.ahead_ms += 61_000
    host.timers._fire()
    run = await ended(host, run_id)
    assert run.error is not None and run.error.code == "interrupt_timeout"
    assert run.variables == {"result": "before"}
    await sound(host)
