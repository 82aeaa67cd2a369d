"""Other hosts that change their mind, and runs that have to live with it."""

from collections.abc import AsyncIterator

import pytest

from moot.core.state import remote_children
from moot.engine.peers import calls, remote_runs
from tests.support.engine.hosts import Place, begun, ended, log
from tests.support.engine.peers import DONE, StrangePeer, hand, knowing, led, said, strange_peer
from tests.support.event_payloads import payload_json

RUN = ("GET", "/v1/runs/*")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_runs, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(remote_runs, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(calls, "POLL_SECONDS", 0.0)


@pytest.fixture
async def lab() -> AsyncIterator[StrangePeer]:
    async with strange_peer() as found:
        yield found


async def test_a_host_that_talks_nonsense_and_is_away_in_turns_is_not_waited_for_for_ever(
    memory: Place, lab: StrangePeer
) -> None:
    lab.says(*RUN, *[said(200, b"{"), None] * 2000)
    host = knowing(memory, lab, patience_ms=100)
    run_id = await begun(host, led(hand("lab/w"), DONE))
    await ended(host, run_id)
    [over] = [e for e in await log(host, run_id) if payload_json(e).get("phase") == "child.failed"]
    assert payload_json(over)["error"]["code"] == "peer_answer_invalid"


async def test_a_child_that_waits_and_goes_on_again_and_again_leaves_a_short_log(
    memory: Place, lab: StrangePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_children, "MOST_WAITS", 8)
    monkeypatch.setattr(remote_runs, "FIRST_PAUSE", 0.0)
    states = [said(200, {"runId": "far_0", "status": s}) for s in ("waiting-input", "running")]
    last = said(200, {"runId": "far_0", "status": "completed", "variables": {"out": "far"}})
    lab.says(*RUN, *states * 100, last)
    lab.says("GET", "/v1/runs/*/events", said(404, {}))
    host = knowing(memory, lab)
    run_id = await begun(host, led(hand("lab/w"), DONE))
    await ended(host, run_id)
    shown = [payload_json(e).get("childStatus") for e in await log(host, run_id)]
    assert (shown.count("waiting-input"), shown.count("running")) == (8, 9)  # it began once
