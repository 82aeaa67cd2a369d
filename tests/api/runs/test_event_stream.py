"""Events out (protocol section 5): modes, buffers, cursors, ends, and what may go wrong."""

import itertools
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from moot.api.runs.event_stream import MOST_BATCHED
from tests.support.api.caller import Api, Frame, definition, parsed, sequences, speaking
from tests.support.servers import ROOT, component_missing

NODES = str(ROOT / "tests" / "support" / "api" / "nodes.py")


SSE = "text/event-stream"


MODES = ["values", "updates", "messages", "debug"]


def sleeping(ms: int) -> dict[str, Any]:
    return definition("sleep", [{"id": "a", "typeId": "core.delay", "config": {"ms": ms}}])


def types(frames: list[Frame]) -> list[str]:
    return [document["type"] for frame in frames for document in frame.docs]


# -- modes -------------------------------------------------------------------------------------


def test_the_default_mode_is_updates(api: Api, ended: str) -> None:
    assert api.stream(ended) == api.stream(ended, streamMode="updates")
    assert types(api.stream(ended)) == ["run.started", "node.completed", "run.completed"]


def test_a_frame_has_the_sequence_as_id_and_the_type_as_event(api: Api, ended: str) -> None:
    for frame in api.stream(ended, streamMode="debug"):
        assert frame.id == str(frame.data["sequence"])
        assert frame.event == frame.data["type"]


def test_debug_shows_the_whole_log_and_contains_updates(api: Api, ended: str) -> None:
    debug = [frame.data for frame in api.stream(ended, streamMode="debug")]
    assert debug == api.events(ended)
    assert [frame.data for frame in api.stream(ended)] == [
        event for event in debug if event["type"] in set(types(api.stream(ended)))
    ]


def test_messages_shows_only_chunks(api: Api, ended: str) -> None:
    frames = api.stream(ended, streamMode="messages")
    assert {frame.event for frame in frames} == {"ai.message.chunk"}
    assert [frame.data["payload"]["chunk"] for frame in frames] == ["t0 ", "t1 ", "t2 "]


def test_messages_of_a_run_without_a_model_is_silent_and_ends(api: Api) -> None:
    run_id = api.create("conformance-delay", inputs={"delayMs": 200})
    assert api.stream(run_id, streamMode="messages") == []


def test_values_shows_the_run_after_each_update(api: Api, ended: str) -> None:
    frames = api.stream(ended, streamMode="values")
    assert {frame.event for frame in frames} == {"state.snapshot"}
    assert [frame.id for frame in frames] == [frame.id for frame in api.stream(ended)]
    for frame in frames:
        assert frame.data["payload"]["atSeq"] == frame.data["sequence"]
        assert frame.data["payload"]["runId"] == ended
    assert [frame.data["payload"]["status"] for frame in frames] == [
        "running", "running", "completed",
    ]  # fmt: skip
    last = {**frames[-1].data["payload"]}
    del last["atSeq"]
    assert last == api.read(ended)


def test_values_shows_channels_after_their_reduction(api: Api) -> None:
    run_id = api.create("conformance-message-reducer")
    frames = api.stream(run_id, streamMode="values")
    assert len(frames[-1].data["payload"]["channels"]["messages"]) == 1


@pytest.mark.parametrize(
    "mixed", [",".join(two) for two in itertools.permutations(["updates", "messages", "debug"], 2)]
)
def test_a_mix_is_the_union_in_the_order_of_the_log(api: Api, ended: str, mixed: str) -> None:
    frames = api.stream(ended, streamMode=mixed)
    union = set()
    for mode in mixed.split(","):
        union |= set(sequences(api.stream(ended, streamMode=mode)))
    assert sequences(frames) == sorted(union)
    assert {frame.event for frame in frames} <= set(mixed.split(","))


@pytest.mark.parametrize(
    "wrong",
    [
        "nonsense",
        "",
        ",",
        "updates,",
        "values,updates",
        "debug,values",
        "updates,nonsense",
        "VALUES",
    ],
)
def test_an_impossible_mode_is_refused_with_the_possible_ones(
    api: Api, ended: str, wrong: str
) -> None:
    answer = api.get(f"/v1/runs/{ended}/events", params={"streamMode": wrong})
    assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_stream_mode")
    assert sorted(answer.json()["details"]["supported"]) == sorted(MODES)


def test_mode_and_buffer_are_checked_before_the_run_and_before_the_form(api: Api) -> None:
    for query in ({"streamMode": "nonsense"}, {"bufferMs": "99999"}):
        for headers in ({}, {"Accept": "application/json"}):
            answer = api.get("/v1/runs/nobody/events", params=query, headers=headers)
            assert answer.status_code == 400
    assert api.get("/v1/runs/nobody/events").status_code == 404
    assert api.with_key(None).get("/v1/runs/nobody/events?streamMode=x").status_code == 401


# -- the beginning and the end -----------------------------------------------------------------


def test_who_comes_late_still_sees_the_start(api: Api) -> None:
    run_id = api.create("conformance-delay", inputs={"delayMs": 400})
    api.poll(run_id, 0, 5)
    assert types(api.stream(run_id))[0] == "run.started"


def test_the_stream_closes_after_the_end(api: Api) -> None:
    run_id = api.create("conformance-delay", inputs={"delayMs": 200})
    assert types(api.stream(run_id))[-1] == "run.completed"
    assert types(api.stream(run_id))[-1] == "run.completed"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cursor", ["the last", "beyond"])
def test_a_stream_of_an_ended_run_closes_also_when_nothing_is_left(
    api: Api, ended: str, mode: str, cursor: str
) -> None:
    last = api.events(ended)[-1]["sequence"]
    seen = last if cursor == "the last" else last + 1000
    frames = api.stream(ended, seen, streamMode=mode)
    assert sequences(frames) == ([last] if mode == "values" else [])


def test_a_cursor_beyond_the_log_of_a_living_run_still_sees_its_end(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    with api.streaming(run_id, 10_000) as frames:
        api.post(f"/v1/runs/{run_id}/cancel")
        assert types(list(frames)) == ["run.cancelled"]


def test_head_of_a_stream_answers_at_once(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    answer = api.call("HEAD", f"/v1/runs/{run_id}/events", timeout=30)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    api.post(f"/v1/runs/{run_id}/cancel")


def test_cancelled_and_failed_runs_end_their_streams_too(api: Api) -> None:
    assert types(api.stream(api.create("conformance-failure")))[-1] == "run.failed"
    run_id = api.create("conformance-cancellable")
    with api.streaming(run_id) as frames:
        api.post(f"/v1/runs/{run_id}/cancel")
        assert types(list(frames))[-1] == "run.cancelled"


def test_pause_and_resume_are_seen(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    assert api.post(f"/v1/runs/{run_id}:pause", {"drainPolicy": "immediate"}).status_code == 202
    assert api.post(f"/v1/runs/{run_id}:resume").status_code == 202
    api.post(f"/v1/runs/{run_id}/cancel")
    found = types(api.stream(run_id))
    assert found.index("run.paused") + 1 == found.index("run.resumed")


def test_many_readers_each_in_a_mode_of_their_own(api: Api) -> None:
    run_id = api.create("conformance-stream-text", **speaking(20, 5))
    asked = [*MODES, "updates,messages", "messages,debug"] * 3
    found: dict[int, list[Frame]] = {}

    def read(number: int, mode: str) -> None:
        found[number] = api.stream(run_id, streamMode=mode)

    threads = [threading.Thread(target=read, args=pair) for pair in enumerate(asked)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    for number, mode in enumerate(asked):
        assert sequences(found[number]) == sequences(api.stream(run_id, streamMode=mode))


# -- buffers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_buffered_stream_loses_nothing(api: Api, mode: str) -> None:
    run_id = api.create("conformance-stream-text", **speaking(30, 3))
    frames = api.stream(run_id, streamMode=mode, bufferMs=40)
    assert {frame.event for frame in frames} == {"batch"}
    assert all(frame.id == str(frame.docs[-1]["sequence"]) for frame in frames)
    plain = api.stream(run_id, streamMode=mode)
    assert [doc for frame in frames for doc in frame.docs] == [frame.data for frame in plain]


def test_a_steady_drip_is_sent_in_several_batches(api: Api) -> None:
    """The buffer's time counts from the first event held, not from the newest."""
    run_id = api.create("conformance-stream-text", **speaking(1000, 80))
    with api.streaming(run_id, streamMode="messages", bufferMs=300) as frames:
        told = (frame for frame in frames if frame.data is not None)
        batches = [next(told), next(told), next(told)]
        api.post(f"/v1/runs/{run_id}/cancel")
        assert min(len(batch.docs) for batch in batches) < MOST_BATCHED, "not only when it is full"
        batches += told
    assert sequences(batches) == sequences(api.stream(run_id, streamMode="messages"))


def test_the_end_is_not_held_back(api: Api) -> None:
    def before_its_time() -> bool:
        """Whether it came before what is held is sent in any case."""
        run_id = api.create("conformance-delay", inputs={"delayMs": 100})
        started = time.monotonic()
        frames = api.stream(run_id, bufferMs=5000)
        assert types(frames)[-1] == "run.completed"
        return time.monotonic() - started < 4.5

    assert any(before_its_time() for _ in range(3)), "a machine may stand still, but not thrice"


def test_no_buffer_means_no_batches(api: Api, ended: str) -> None:
    assert api.stream(ended, bufferMs=0) == api.stream(ended)


@pytest.mark.parametrize("wrong", ["99999", "5001", "-1", "1.5", "x", "", "1e3", "٣", "9" * 5000])
def test_an_impossible_buffer_is_refused(api: Api, ended: str, wrong: str) -> None:
    answer = api.get(f"/v1/runs/{ended}/events", params={"bufferMs": wrong})
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


def test_a_resume_within_batches_repeats_nothing(api: Api, ended: str) -> None:
    log = sequences(api.stream(ended, streamMode="debug"))
    for seen in log:
        rest = api.stream(ended, seen, streamMode="debug", bufferMs=50)
        assert sequences(rest) == [number for number in log if number > seen]


# -- cursors -----------------------------------------------------------------------------------


def test_last_event_id_goes_on_right_after_it(api: Api, ended: str) -> None:
    whole = api.stream(ended, streamMode="debug")
    for number, frame in enumerate(whole):
        assert api.stream(ended, frame.id, streamMode="debug") == whole[number + 1 :]


@pytest.mark.parametrize("odd", ["abc", "-5", "1.5", "", "٣", "9" * 400, "1 2", "0x1"])
def test_an_id_nobody_can_read_means_from_the_beginning(api: Api, ended: str, odd: str) -> None:
    headers = {"Last-Event-ID": odd.encode(), "Accept": "text/event-stream"}
    with api.open(f"/v1/runs/{ended}/events", headers=headers) as answer:
        assert sequences(list(parsed(answer.iter_lines())))[0] == 0


def test_values_begins_with_the_state_at_the_cursor(api: Api, ended: str) -> None:
    frames = api.stream(ended, 0, streamMode="values")
    assert frames[0].event == "state.snapshot"
    assert frames[0].data["payload"]["atSeq"] == 0


def complete(pieces: Iterator[bytes], most: int) -> Iterator[int]:
    """Sequences of the frames that arrived whole, out of at most so many bytes."""
    buffer = b""
    for piece in pieces:
        buffer += piece
        *frames, buffer = buffer.split(b"\n\n")
        for found in parsed(iter("\n".join([*(f.decode() + "\n" for f in frames)]).split("\n"))):
            yield from (document["sequence"] for document in found.docs)
        most -= len(piece)
        if most <= 0:
            return


@pytest.mark.parametrize("query", [{"streamMode": "debug"}, {"streamMode": "debug", "bufferMs": 7}])
def test_after_500_disconnects_nothing_is_missing_or_repeated(
    host: Callable[..., Api], query: dict[str, Any]
) -> None:
    """Twice: 1,000 cuts at random bytes, while the run is alive and after it."""
    api = host("--nodes", NODES)
    drip = {"id": "a", "typeId": "wire.drip", "config": {"count": 1500, "every_ms": 1}}
    api.register(definition("drip", [drip]))
    run_id = api.create("drip")
    dice = random.Random(f"cuts {query}")
    seen: list[int] = []
    passes = 0
    for _ in range(500):
        headers = {"Accept": "text/event-stream"}
        if seen:
            headers["Last-Event-ID"] = str(seen[-1])
        path = f"/v1/runs/{run_id}/events"
        with api.open(path, params=query, headers=headers) as answer:
            leash = int(10 ** dice.uniform(0, 5))
            seen += complete(answer.iter_raw(dice.randint(1, 4000)), leash)
        assert seen == list(range(len(seen))), "a gap or a repeat"
        if len(seen) == 1504:
            seen = []  # once more from the beginning, now out of the log
            passes += 1
    assert passes


# -- signs of life -----------------------------------------------------------------------------


def test_a_quiet_stream_is_kept_alive(host: Callable[..., Api]) -> None:
    quick = host("--nodes", NODES, MOOT_KEEPALIVE_S="1")
    quick.register(sleeping(60_000))
    with quick.streaming(quick.create("sleep"), streamMode="messages") as frames:
        assert any(frame.comment == "keepalive" for frame in frames)


def test_a_stream_is_kept_alive_also_when_all_events_are_filtered_out(
    host: Callable[..., Api],
) -> None:
    quick = host("--nodes", NODES, MOOT_KEEPALIVE_S="1")
    drip = {"id": "a", "typeId": "wire.drip", "config": {"count": 300, "every_ms": 200}}
    quick.register(definition("drip", [drip]))
    with quick.streaming(quick.create("drip"), streamMode="updates") as frames:
        assert any(frame.comment == "keepalive" for frame in frames)


def test_the_usual_interval_is_within_the_protocols_thirty_seconds() -> None:
    from moot.config.settings import Settings

    assert Settings().keepalive_s <= 30


def test_a_reader_that_goes_is_forgotten(host: Callable[..., Api]) -> None:
    plain = host()
    plain.register(
        definition("sleep", [{"id": "a", "typeId": "core.delay", "config": {"ms": 60000}}])
    )
    run_id = plain.create("sleep")

    def streams() -> int:
        text = plain.get("/metrics").text
        return int(float(text.partition("\nmoot_streams ")[2].split("\n")[0]))

    sockets = [raw_stream(plain, run_id) for _ in range(20)]
    assert streams() == 20
    for connection in sockets:
        connection.close()
    deadline = time.monotonic() + 30
    while streams():
        assert time.monotonic() < deadline, "readers that have gone are still served"
    plain.post(f"/v1/runs/{run_id}/cancel")


def raw_stream(
    api: Api, run_id: str, query: str = "", buffer: int | None = None, form: str = SSE
) -> socket.socket:
    """A stream on a bare socket, after the first bytes of its answer."""
    address = httpx.URL(api.url)
    connection = socket.socket()
    if buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(30)
    connection.connect((address.host, address.port))
    connection.sendall(
        f"GET /v1/runs/{run_id}/events{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Accept: {form}\r\nAuthorization: Bearer {api.key}\r\n\r\n".encode()
    )
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


def test_a_slow_reader_falls_back_to_the_log_and_gets_everything(host: Callable[..., Api]) -> None:
    busy = host("--nodes", NODES)
    flood = {"id": "a", "typeId": "wire.flood", "config": {"count": 3000, "size": 4000}}
    busy.register(definition("flood", [flood]))
    run_id = busy.create("flood")
    slow = raw_stream(busy, run_id, "?streamMode=debug", buffer=4096)
    busy.until(run_id, "completed")  # the reader has read nothing meanwhile
    received = bytearray()
    while piece := slow.recv(1 << 20):
        received += piece
    slow.close()
    text = dechunked(bytes(received).partition(b"\r\n\r\n")[2]).decode()
    frames = [frame for frame in parsed(iter(text.split("\n"))) if frame.data]
    assert sequences(frames) == list(range(3000 + 4))
    assert types(frames)[-1] == "run.completed"


@pytest.mark.parametrize("form", ["text/event-stream", "application/json"])
def test_readers_that_do_not_read_hold_little_of_a_large_log(
    host: Callable[..., Api], form: str
) -> None:
    busy = host("--nodes", NODES)
    flood = {"id": "a", "typeId": "wire.flood", "config": {"count": 1000, "size": 11_000}}
    busy.register(definition("flood", [flood]))
    run_id = busy.run("flood")["runId"]
    before = resident_mb(busy)
    slow = [raw_stream(busy, run_id, "?streamMode=debug", 4096, form) for _ in range(30)]
    busy.get("/healthz")
    time.sleep(1)
    assert resident_mb(busy) - before < 100  # each of them the whole log would be 330
    for connection in slow:
        connection.close()


def resident_mb(api: Api) -> int:
    status = Path(f"/proc/{api.server.process.pid}/status")  # type: ignore[attr-defined]
    if not status.exists():
        component_missing("only Linux says how much memory another process has")
    return int(status.read_text().partition("VmRSS:")[2].split()[0]) // 1024


def test_large_events_make_short_pages_of_json(host: Callable[..., Api]) -> None:
    busy = host("--nodes", NODES)
    flood = {"id": "a", "typeId": "wire.flood", "config": {"count": 200, "size": 11_000}}
    busy.register(definition("flood", [flood]))
    run_id = busy.run("flood")["runId"]
    first = busy.poll(run_id)
    assert 50 < len(first["events"]) < 100
    assert not first["isComplete"]
    assert sequences_of(busy.events(run_id)) == list(range(204))


def sequences_of(events: list[dict[str, Any]]) -> list[int]:
    return [event["sequence"] for event in events]


def dechunked(body: bytes) -> bytes:
    found, place = [], 0
    while True:
        end = body.index(b"\r\n", place)
        size = int(body[place:end], 16)
        if not size:
            return b"".join(found)
        found.append(body[end + 2 : end + 2 + size])
        place = end + 2 + size + 2
