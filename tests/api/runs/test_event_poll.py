"""Events of a run as JSON, and by long poll."""

import json

import pytest

from tests.support.api.caller import Api, definition, sequences, speaking


def test_json_is_negotiated(api: Api, ended: str) -> None:
    answer = api.get(f"/v1/runs/{ended}/events", headers={"Accept": "application/json"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == api.poll(ended)
    both = {"Accept": "text/event-stream, application/json"}
    with api.open(f"/v1/runs/{ended}/events", headers=both) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")


def test_a_poll_says_where_the_run_is(api: Api, ended: str) -> None:
    log = api.events(ended)
    last = len(log) - 1
    assert api.poll(ended) == {
        "events": log,
        "isComplete": True,
        "runId": ended,
        "lastEventSeq": last,
        "runStatus": "completed",
        "isTerminal": True,
    }
    for seen in range(-1, last + 1):
        assert api.poll(ended, seen)["events"] == log[seen + 1 :]


@pytest.mark.parametrize("beyond", [4, 5, 999, 10**14])
def test_a_cursor_past_the_end_is_an_empty_page(api: Api, beyond: int) -> None:
    run_id = api.run("conformance-noop")["runId"]
    page = api.poll(run_id, beyond)
    assert (page["events"], page["isComplete"], page["lastEventSeq"]) == ([], True, 3)


@pytest.mark.parametrize(
    "wrong", ["x", "1.5", "-2", "--5", "", "1e3", "٣", "²", "9" * 5000, "0x1", "null", "-", "+1"]
)
def test_a_cursor_that_is_no_number_is_refused(api: Api, ended: str, wrong: str) -> None:
    for name in ("lastSequence", "since"):
        answer = api.get(f"/v1/runs/{ended}/events/poll", params={name: wrong})
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


@pytest.mark.parametrize("wrong", ["x", "61", "-1", "1.5", "٣", "9" * 5000])
def test_an_impossible_timeout_is_refused(api: Api, ended: str, wrong: str) -> None:
    answer = api.get(f"/v1/runs/{ended}/events/poll", params={"timeout": wrong})
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


def test_a_long_poll_is_woken_by_news(api: Api) -> None:
    run_id = api.create("conformance-delay", inputs={"delayMs": 1000})
    seen = api.poll(run_id)["lastEventSeq"]
    page = api.poll(run_id, seen, 60)  # far longer than any test may take
    assert page["events"]
    assert page["isComplete"]


def test_a_long_poll_without_news_ends_empty(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    seen = api.poll(run_id)["lastEventSeq"]
    page = api.poll(run_id, seen, 1)
    assert (page["events"], page["isComplete"], page["runStatus"]) == ([], False, "running")
    assert page["lastEventSeq"] == seen
    api.post(f"/v1/runs/{run_id}/cancel")


def test_polling_a_moving_run_repeats_nothing(api: Api) -> None:
    """``lastEventSeq`` is a cursor: going on from it gives each event once."""
    run_id = api.create("conformance-stream-text", **speaking(800, 1))
    seen: list[int] = []
    cursor, complete_ = -1, False
    while not complete_:
        page = api.poll(run_id, cursor, 5)
        seen += [event["sequence"] for event in page["events"]]
        assert seen == list(range(len(seen)))
        assert page["lastEventSeq"] == len(seen) - 1
        assert page["isTerminal"] == (page["runStatus"] in ("completed", "failed", "cancelled"))
        cursor, complete_ = page["lastEventSeq"], page["isComplete"]
    assert len(seen) == 804


def test_a_long_log_comes_in_pages(api: Api) -> None:
    run_id = api.create("conformance-stream-text", **speaking(2500))
    api.until(run_id, "completed")
    first = api.poll(run_id)
    assert not first["isComplete"]
    assert first["isTerminal"]
    assert first["lastEventSeq"] == first["events"][-1]["sequence"]
    assert len(api.events(run_id)) == 2504
    assert sequences(api.stream(run_id, streamMode="debug")) == list(range(2504))
    buffered = api.stream(run_id, streamMode="debug", bufferMs=5000)
    assert sequences(buffered) == list(range(2504))


@pytest.mark.parametrize("buffer_ms", [0, 1000])
def test_the_states_of_a_long_run_all_come(api: Api, buffer_ms: int) -> None:
    """Each is larger than the one before; together they are far more than one piece."""
    nodes = [{"id": f"n{number}", "typeId": "core.noop"} for number in range(300)]
    api.register(definition("long-chain", nodes))
    run_id = api.run("long-chain")["runId"]
    frames = api.stream(run_id, streamMode="values", bufferMs=buffer_ms)
    states = [document["payload"] for frame in frames for document in frame.docs]
    done = [sum("outputs" in node for node in state["nodeStates"].values()) for state in states]
    assert done == [0, *range(1, 301), 300]
    assert states[-1]["status"] == "completed"


def test_the_body_of_a_frame_is_one_line(api: Api) -> None:
    """A newline in an event's data would cut the frame."""
    text = "a\nb\r\nc\u2028d\u0085e"
    run_id = api.run("conformance-identity", inputs={"payload": {"text": text}})["runId"]
    with api.open(f"/v1/runs/{run_id}/events?streamMode=debug") as answer:
        raw = b"".join(answer.iter_bytes())
    lines = [line for line in raw.split(b"\n") if line.startswith(b"data: ")]
    assert all(b"\r" not in line for line in lines)
    bodies = [json.loads(line[6:]) for line in lines]
    assert bodies[0]["payload"]["inputs"]["payload"]["text"] == text
