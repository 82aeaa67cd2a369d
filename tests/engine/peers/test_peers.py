"""Other hosts that are away, slow, broken or talk nonsense: a run ends with a code or goes on."""

import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from moot.core.commands import CancelRun, PauseRun, ResumeRun
from moot.core.runs.start import RunLimits
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.engine.host import Host
from moot.engine.peers import calls, remote_runs, watch
from moot.engine.rebuild import rebuild_rows
from tests.support.engine.hosts import TENANT, Place, begun, ended, log, order, soon, sound, until
from tests.support.engine.peers import (
    DONE,
    KEY,
    StrangePeer,
    above,
    hand,
    knowing,
    led,
    said,
    strange_peer,
)
from tests.support.event_payloads import payload_json

CREATE, RUN, EVENTS = ("POST", "/v1/runs"), ("GET", "/v1/runs/*"), ("GET", "/v1/runs/*/events")
CANCEL = ("POST", "/v1/runs/*/cancel")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_runs, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(remote_runs, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(watch, "POLL_SECONDS", 0.01)


@pytest.fixture
async def lab() -> AsyncIterator[StrangePeer]:
    async with strange_peer() as found:
        yield found


async def phases(host: Host, run_id: str) -> list[str]:
    return [payload_json(e)["phase"] for e in await log(host, run_id) if "phase" in payload_json(e)]


def code(run: Run) -> str:
    assert run.error is not None, run.status
    return str(run.error.code)


async def cancelled(host: Host, run_id: str) -> None:
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))


async def there(host: Host, run_id: str) -> None:
    """The child has a name, and is followed."""
    await until(host, run_id, lambda run: any(each.child for each in run.abroad.values()))


NONSENSE = {
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "no JSON": said(201, b"<html>hello</html>"),
    "no object": said(201, [1, 2]),
    "no run": said(201, {"status": "running"}),
    "no name": said(201, {"runId": "../../etc/passwd"}),
    "too deep": said(201, b"[" * 100_000),
    "elsewhere": said(302, b"", Location="http://127.0.0.1:1/"),
    "an endless head": b"HTTP/1.1 200 OK\r\n" + b"X-More: yes\r\n" * 8000,
    "a flood": b"HTTP/1.1 201 X\r\n\r\n" + b"x" * (calls.MOST_BODY_BYTES + 100_000),
}  # fmt: skip


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE.keys())
async def test_nonsense_fails_the_handoff_with_a_code(
    memory: Place, lab: StrangePeer, answer: bytes
) -> None:
    lab.says(*CREATE, answer)
    host = knowing(memory, lab)
    run = await ended(host, run_id := await begun(host, led(hand("lab/w"), DONE)))
    assert code(run) == "peer_answer_invalid"
    assert await phases(host, run_id) == ["dispatch.began", "dispatch.failed"]
    await soon(lambda: not len(host.peers))
    assert await host.store.work(2**62, 10) == []
    await sound(host)


REFUSALS = {
    401: ({"error": "unauthenticated", "message": "No."}, "peer_refused"),
    404: ({"error": "workflow_not_found", "message": "No."}, "peer_refused"),
    409: ({"error": "idempotency_key_mismatch", "message": "No."}, "peer_refused"),
    422: (b"what?", "peer_refused"),
    418: ({"error": 7, "message": []}, "peer_refused"),
}


@pytest.mark.parametrize(("status", "told"), REFUSALS.items())
async def test_a_refusal_is_final_and_told(
    memory: Place, lab: StrangePeer, status: int, told: tuple[Any, str]
) -> None:
    lab.says(*CREATE, said(status, told[0]))
    host = knowing(memory, lab)
    run = await ended(host, await begun(host, above()))
    assert code(run) == told[1] and run.error is not None
    assert run.error.details["status"] == status
    assert lab.count(*CREATE) == 1
    await soon(lambda: not len(host.peers))


async def test_a_host_that_is_away_is_waited_for_and_no_longer_than_that(
    memory: Place, lab: StrangePeer
) -> None:
    await lab.close()
    host = knowing(memory, lab, patience_ms=100)
    run = await ended(host, run_id := await begun(host, led(hand("lab/w"), DONE)))
    assert code(run) == "peer_unreachable"
    assert "moot.peer.stopped" not in await order(host, run_id)
    patient = knowing(memory, lab)
    other = await begun(patient, led(hand("lab/w"), DONE))
    lab.first = "completed"
    await lab.open()
    assert (await ended(patient, other)).variables == {"result": "far"}


async def test_what_is_broken_for_a_moment_is_asked_again_under_the_same_name(
    memory: Place, lab: StrangePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "ANSWER_SECONDS", 0.5)
    busy = said(409, {"error": "idempotency_in_flight", "message": "Wait."})
    lab.says(*CREATE, said(503, {}), None, lab.HANG, "create, then cut", busy, said(500, b"x"),
             "proper")  # fmt: skip
    lab.first = "completed"
    host = knowing(memory, lab)
    run = await ended(host, await begun(host, led(hand("lab/w"), DONE)))
    assert run.variables == {"result": "far"}
    tries = [each for each in lab.asked if each.method == "POST"]
    assert len({each.headers["idempotency-key"] for each in tries}) == 1
    assert len(tries) >= 7, "and once more for each answer that a busy machine gives too late"
    assert all(each.body == {"workflowId": "w", "inputs": {}} for each in tries)
    assert len(lab.runs) == 1


async def test_who_said_it_was_too_much_is_asked_no_more_once_nobody_wants_it(
    memory: Place, lab: StrangePeer
) -> None:
    lab.says(*CREATE, *[said(429, {})] * 200)
    host = knowing(memory, lab, patience_ms=50)
    run = await ended(host, run_id := await begun(host, above()))
    assert run.status is Status.FAILED
    asked = lab.count(*CREATE)
    assert not run.abroad or not [each for each in run.abroad.values() if each.stop]
    assert "moot.peer.stopped" not in await order(host, run_id)
    await begun(host, led(DONE))
    assert lab.count(*CREATE) == asked and not lab.runs


async def test_every_call_has_the_key_and_the_trace_and_the_log_has_no_key(
    memory: Place, lab: StrangePeer
) -> None:
    lab.first = "completed"
    host = knowing(memory, lab)
    run_id = await begun(host, above())
    await ended(host, run_id)
    assert all(each.headers["authorization"] == f"Bearer {KEY}" for each in lab.asked)
    assert len({each.headers["traceparent"] for each in lab.asked}) == 1
    assert KEY not in str(await log(host, run_id)) and KEY not in repr(host.peers._peers)


async def test_two_children_cannot_have_one_name(memory: Place, lab: StrangePeer) -> None:
    lab.says(*CREATE, said(201, {"runId": "same"}))
    host = knowing(memory, lab)
    wave = led(hand("lab/w", "lab/w"), DONE, fanOutPolicy="parallel")
    run = await ended(host, run_id := await begun(host, wave))
    assert code(run) == "peer_answer_invalid"
    assert (await phases(host, run_id)).count("dispatch.failed") == 1
    await sound(host)


async def test_a_stream_that_is_not_there_is_no_hindrance(memory: Place, lab: StrangePeer) -> None:
    lab.says(*EVENTS, said(404, {"error": "not_found", "message": "No."}))
    host = knowing(memory, lab)
    run_id = await begun(host, led(hand("lab/w"), DONE))
    await there(host, run_id)
    lab.become("far_0", "waiting-input")
    await until(host, run_id, lambda run: run.status is Status.WAITING_INPUT)
    lab.become("far_0", "completed")
    assert (await ended(host, run_id)).variables == {"result": "far"}
    [done] = [
        e for e in await log(host, run_id) if payload_json(e).get("phase") == "child.completed"
    ]
    assert "causationHostId" not in payload_json(done)  # nobody saw the event that ended it


@pytest.mark.parametrize(
    "answer",
    [said(200, b"{"), said(200, {"runId": "other", "status": "running"}),
     said(200, {"runId": "far_0", "status": "dancing"}), said(302, b"")],
)  # fmt: skip
async def test_a_child_that_cannot_be_read_has_failed_after_a_while_and_is_stopped(
    memory: Place, lab: StrangePeer, answer: bytes
) -> None:
    lab.says(*RUN, answer)
    host = knowing(memory, lab, patience_ms=50)
    run = await ended(host, run_id := await begun(host, led(hand("lab/w"), DONE)))
    assert run.status is Status.COMPLETED  # the supervisor has seen it and gone on
    [over] = [e for e in await log(host, run_id) if payload_json(e).get("phase") == "child.failed"]
    assert payload_json(over)["error"]["code"] == "peer_answer_invalid"
    await soon(lambda: lab.runs["far_0"]["status"] == "cancelled")


async def test_a_child_that_is_gone_has_failed(memory: Place, lab: StrangePeer) -> None:
    host = knowing(memory, lab)
    run_id = await begun(host, above())
    await there(host, run_id)
    lab.says(*RUN, said(404, {"error": "run_not_found", "message": "No."}))
    lab.become("far_0", "running")
    run = await ended(host, run_id)
    assert code(run) == "child_failed" and run.error is not None
    assert run.error.details["childError"]["code"] == "peer_refused"
    assert not lab.count(*CANCEL)


async def test_a_host_that_goes_away_in_the_middle_is_waited_for(
    memory: Place, lab: StrangePeer
) -> None:
    host = knowing(memory, lab, patience_ms=10)
    run_id = await begun(host, led(hand("lab/w"), DONE))
    await there(host, run_id)
    await lab.close()
    lab.become("far_0", "completed")
    seen = len(lab.asked)
    await lab.open()
    assert (await ended(host, run_id)).variables == {"result": "far"}
    assert len(lab.asked) > seen


async def test_a_restart_follows_what_was_begun_and_begins_nothing_twice(
    place: Place, lab: StrangePeer
) -> None:
    host = knowing(place, lab)
    run_id = await begun(host, led(hand("lab/w"), DONE))
    await there(host, run_id)
    await place.crash(host)
    lab.become("far_0", "completed")
    fresh = knowing(place, lab)
    await fresh.recover()
    assert (await ended(fresh, run_id)).variables == {"result": "far"}
    assert len(lab.runs) == 1
    await sound(fresh)


async def test_a_parent_shows_how_its_child_stands_after_a_restart(
    place: Place, lab: StrangePeer
) -> None:
    host = knowing(place, lab)
    run_id = await begun(host, led(hand("lab/w"), DONE))
    await there(host, run_id)
    lab.become("far_0", "waiting-approval")
    await until(host, run_id, lambda run: run.status is Status.WAITING_APPROVAL)
    await place.crash(host)
    lab.become("far_0", "running")
    fresh = knowing(place, lab)
    await fresh.recover()
    await until(fresh, run_id, lambda run: run.status is Status.RUNNING)
    assert not fresh.peers._sent


async def test_an_answer_that_was_never_heard_is_asked_for_again_after_a_restart(
    place: Place, lab: StrangePeer
) -> None:
    lab.says(*CREATE, "create, then cut")
    host = knowing(place, lab)
    run_id = await begun(host, above())
    await soon(lambda: lab.runs)
    await place.crash(host)
    lab.says(*CREATE, "proper")
    lab.become("far_0", "completed")
    fresh = knowing(place, lab)
    await fresh.recover()
    assert (await ended(fresh, run_id)).variables == {"result": "far"}
    assert len(lab.runs) == 1


async def test_after_a_day_nobody_asks_again_and_the_run_says_so(
    place: Place, lab: StrangePeer
) -> None:
    lab.says(*CREATE, "create, then cut")
    host = knowing(place, lab)
    patient = RunLimits(duration_ms=7 * 86_400_000)
    run_id = await begun(host, led(hand("lab/w"), DONE), limits=patient)
    await soon(lambda: lab.runs)
    await place.crash(host)
    place.clock.ahead_ms += 24 * 3_600_000
    lab.says(*CREATE, "proper")
    before = lab.count(*CREATE)
    fresh = knowing(place, lab)
    await fresh.recover()
    assert code(await ended(fresh, run_id)) == "peer_outcome_unknown"
    await soon(lambda: not len(fresh.peers))
    assert lab.count(*CREATE) == before
    assert await fresh.store.work(2**62, 10) == []


async def test_a_cancel_outlives_a_crash_and_a_host_that_is_away(
    place: Place, lab: StrangePeer
) -> None:
    host = knowing(place, lab)
    run_id = await begun(host, above())
    await there(host, run_id)
    await lab.close()
    await cancelled(host, run_id)
    assert (await ended(host, run_id)).status is Status.CANCELLED
    [row] = await host.store.work(2**62, 10)
    assert row.run_id == run_id
    await place.crash(host)
    await rebuild_rows(place.store, host.flows)
    assert await place.store.work(2**62, 10) == [row]
    await lab.open()
    fresh = knowing(place, lab)
    await fresh.recover()
    await soon(lambda: lab.runs["far_0"]["status"] == "cancelled")
    await soon(lambda: not len(fresh.peers))
    assert await fresh.store.work(2**62, 10) == []
    assert (await log(fresh, run_id))[-1].type == "run.cancelled"
    await sound(fresh)


async def test_a_child_nobody_has_heard_of_is_found_by_its_name_and_stopped(
    memory: Place, lab: StrangePeer
) -> None:
    lab.says(*CREATE, "create, then cut")
    host = knowing(memory, lab)
    run_id = await begun(host, above())
    await soon(lambda: lab.count(*CREATE) > 1)
    await cancelled(host, run_id)
    lab.says(*CREATE, "proper")
    await soon(lambda: lab.runs["far_0"]["status"] == "cancelled")
    assert len(lab.runs) == 1


async def test_what_was_never_asked_is_not_begun_to_be_stopped(
    memory: Place, lab: StrangePeer
) -> None:
    await lab.close()
    host = knowing(memory, lab)
    run_id = await begun(host, above())
    await cancelled(host, run_id)
    await soon(lambda: not len(host.peers))
    await lab.open()
    assert await host.store.work(2**62, 10) == [] and not lab.runs


async def test_a_paused_parent_takes_it_up_again(memory: Place, lab: StrangePeer) -> None:
    host = knowing(memory, lab)
    run_id = await begun(host, led(hand("lab/w"), DONE))
    await there(host, run_id)
    await host.handle(TENANT, run_id, PauseRun(host.clock.millis(), "immediate"))
    await soon(lambda: not len(host.peers))
    lab.become("far_0", "completed")
    await host.handle(TENANT, run_id, ResumeRun(host.clock.millis()))
    assert (await ended(host, run_id)).variables == {"result": "far"}
    assert len(lab.runs) == 1


async def test_a_retry_asks_for_a_run_of_its_own(memory: Place, lab: StrangePeer) -> None:
    host = knowing(memory, lab)
    run_id = await begun(host, above(maxRetries=1, retryDelayMs=1))
    await there(host, run_id)
    lab.first = "completed"
    lab.become("far_0", "failed", error={"code": "broken", "message": "It broke."})
    assert (await ended(host, run_id)).variables == {"result": "far"}
    assert list(lab.runs) == ["far_0", "far_1"]
    await sound(host)


async def test_a_child_that_takes_too_long_is_stopped(memory: Place, lab: StrangePeer) -> None:
    host = knowing(memory, lab)
    run_id = await begun(host, above(timeoutMs=60_000))
    await there(host, run_id)
    memory.clock.ahead_ms += 60_000
    host.timers.look()
    assert code(await ended(host, run_id)) == "node_timeout"
    await soon(lambda: lab.runs["far_0"]["status"] == "cancelled")
    await soon(lambda: not len(host.peers))
    assert await host.store.work(2**62, 10) == []


async def test_what_has_been_decided_meanwhile_is_not_begun(
    memory: Place, lab: StrangePeer
) -> None:
    host = knowing(memory, lab)
    lab.first = "completed"
    run_id = await begun(host, above())
    await ended(host, run_id)
    asked = len(lab.asked)
    host.peers.tend(await host.view(TENANT, run_id), [("ask_of_before", "create")])
    assert not len(host.peers) and len(lab.asked) == asked


async def test_certificates_and_names_are_checked(lab: StrangePeer) -> None:
    trust = (
        calls.Peer("lab", lab.url, KEY).outbound._open_client(httpx2)._transport._pool._ssl_context
    )
    assert trust.verify_mode is ssl.CERT_REQUIRED and trust.check_hostname
