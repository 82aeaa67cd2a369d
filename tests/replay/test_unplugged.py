"""Every golden log is found sound and can be said again with nothing and nobody to call."""

import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from moot.core.events import decode
from moot.core.runs.start import RunLimits
from moot.core.state.run import Run, fold
from moot.core.verify.walk import verify
from moot.core.workflows.definition import parse_definition
from moot.core.workflows.flow import Flow, compile_flow
from moot.engine.head import Head
from moot.engine.replay.replay import ReplayTransaction
from tests.support.event_payloads import payload_json
from tests.support.replay.golden_logs import DEFINITIONS, LOGS, folded, read_log
from tests.support.replay.story import TENANT, Story, StoryClock

#: replays of forks that asked another host, or that met a refusal: still reported though sound.
#: Who mends that takes the name out, or the test fails
UNSOUND = ("0.1.0-elsewhere_twice-child1", "0.1.0-refusals-child1")
GOLDEN = sorted(LOGS.glob("*.jsonl"))


def _forbidden(*given: Any, **more: Any) -> Any:
    raise AssertionError("nothing may be called")


async def _unplugged(context: Any) -> None:
    _forbidden()


STORY = Story()
TYPES = {
    name: each if each.activity is None else replace(each, activity=_unplugged)
    for name, each in STORY.types.items()
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, _forbidden)


def flow_of(path: Path) -> Flow:
    digest = payload_json(read_log(path)[0])["definition"]
    body = msgspec.json.decode((DEFINITIONS / f"{digest}.json").read_bytes())
    return compile_flow(parse_definition(body), TYPES, digest)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_an_old_log_is_found_sound(path: Path) -> None:
    log = read_log(path)
    assert verify(flow_of(path), TENANT, log[0].run_id, log) is None


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_an_old_log_can_be_said_again(path: Path) -> None:
    log, flow = read_log(path), flow_of(path)
    turn = ReplayTransaction(STORY.host.flows, StoryClock(), RunLimits())
    head = Head(Run("run_again", tenant=TENANT), flow)
    turn.build(head, log, 0)
    turn.owed()
    [append] = turn.batch.appends
    again = [decode(row) for row in append.events]
    assert [event for event in again if event.type == "replay.diverged"] == []
    source = folded(log)
    if source.status != "cancelled":  # what operators did is not said again
        assert (head.run.status, head.run.variables) == (source.status, source.variables)
    assert fold("run_again", again) == head.run
    found = verify(flow, TENANT, "run_again", again)
    assert (found is not None) == (path.stem in UNSOUND), found
