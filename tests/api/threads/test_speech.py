"""Words as they are spoken: beside the log, never in it, and only of who may speak."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.api.caller import Api, Frame, parsed
from tests.support.api.councils import (
    ADA,
    BO,
    CY,
    THREADS,
    close,
    convened,
    joined,
    key_as,
    person,
    run_of,
    steer,
    tell,
)  # fmt: skip
from tests.support.api.questions import answered, begun, gate, refused, talk, unchanged


def begin(api: Api, thread: str, speaker: str | None = ADA, **more: Any) -> httpx.Response:
    body = {"speakerId": speaker, **more} if speaker else more
    return api.post(f"{THREADS}/{thread}/speech", body)


def begun_by(api: Api, thread: str, speaker: str | None = ADA, **more: Any) -> str:
    answer = begin(api, thread, speaker, **more)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["speechId"])


def utter(api: Api, thread: str, speech: str, delta: Any = "word ") -> httpx.Response:
    return api.post(f"{THREADS}/{thread}/speech/{speech}", {"delta": delta})


def stop(api: Api, thread: str, speech: str) -> httpx.Response:
    return api.delete(f"{THREADS}/{thread}/speech/{speech}")


@contextmanager
def listening(api: Api, thread: str, after: int | None = None) -> Iterator[Iterator[Frame]]:
    """The thread as it happens; frames of the log are validated."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    with api.open(f"{THREADS}/{thread}/stream", headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _checked(api, parsed(answer.iter_lines()))


def _checked(api: Api, frames: Iterator[Frame]) -> Iterator[Frame]:
    for frame in frames:
        if frame.data is not None:
            if frame.id is not None:
                api.answers.event(frame.data)
            yield frame


def until(frames: Iterator[Frame], event: str, count: int = 1) -> list[Frame]:
    """Everything up to the nth frame of this name."""
    found: list[Frame] = []
    for frame in frames:
        found.append(frame)
        if sum(each.event == event for each in found) == count:
            return found
    raise AssertionError(f"the stream ended before {event}: {[f.event for f in found]}")


def test_words_come_in_order_beside_the_log(api: Api) -> None:
    thread = convened(api)
    run_id = run_of(thread)
    before = api.events(run_id)
    with listening(api, thread) as frames:
        until(frames, "conversation.opened")
        speech = begun_by(api, thread, ADA, to="bo")
        for number in range(5):
            assert utter(api, thread, speech, f"{number} ").status_code == 204
        assert api.events(run_id) == before, "nothing of it is kept"
        answered(tell(api, thread, ADA, "0 1 2 3 4", meta={"speechId": speech}))
        found = until(frames, "speech.ended")
    names = [frame.event for frame in found]
    assert names[0] == "speech.started"
    assert names[1:6] == ["speech.delta"] * 5
    assert sorted(names[6:]) == ["conversation.exchanged", "speech.ended"]
    started = found[0].data
    assert (started["speakerId"], started["from"], started["role"]) == (ADA, ADA, "agent")
    assert (started["to"], started["runId"]) == (BO, run_id)
    assert started["conversationId"] == f"{run_id}:talk:1"
    deltas = [frame.data for frame in found if frame.event == "speech.delta"]
    assert [(each["index"], each["delta"]) for each in deltas] == [
        (number + 1, f"{number} ") for number in range(5)
    ]
    for frame in found:
        assert (frame.id is None) == str(frame.event).startswith("speech.")
        assert frame.id is not None or frame.data["speechId"] == speech
    assert "speech" not in "".join(api.types(run_id))
    refused(utter(api, thread, speech), 404, "not_found")


def test_a_person_speaks_without_a_name(api: Api) -> None:
    ann = key_as(api, "user:ann")
    thread = convened(api)
    with listening(api, thread) as frames:
        until(frames, "conversation.opened")
        speech = begun_by(ann, thread, None)
        assert stop(ann, thread, speech).status_code == 204
        found = until(frames, "speech.ended")
    assert (found[0].data["role"], found[0].data["from"]) == ("user", "user:ann")
    assert "speakerId" not in found[0].data
    refused(stop(ann, thread, speech), 404, "not_found")


def test_ordinary_streams_hear_nothing(api: Api) -> None:
    thread = convened(api)
    run_id = run_of(thread)
    modes: list[dict[str, Any]] = [
        {}, {"streamMode": "debug"}, {"streamMode": "updates,messages"}, {"streamMode": "values"},
        {"bufferMs": 50},
    ]  # fmt: skip
    with ThreadPoolExecutor(len(modes)) as pool:
        readers = [pool.submit(api.stream, run_id, **mode) for mode in modes]
        for _ in range(20):
            speech = begun_by(api, thread)
            utter(api, thread, speech)
            answered(tell(api, thread, ADA, "x", meta={"speechId": speech}))
        answered(close(api, thread))
        for reader in readers:
            frames = reader.result()
            assert frames and not [f for f in frames if str(f.event).startswith("speech")]
            assert "speechId" not in {key for f in frames for doc in f.docs for key in doc}


def test_a_listener_goes_on_where_he_was(api: Api) -> None:
    thread = convened(api)
    run_id = run_of(thread)
    with listening(api, thread) as frames:
        last = int(str(until(frames, "conversation.opened")[-1].id))
    speech = begun_by(api, thread)
    for number in range(30):
        utter(api, thread, speech)
        answered(tell(api, thread, ADA, number))
    answered(close(api, thread))
    with listening(api, thread, last) as frames:
        found = [frame for frame in frames if frame.id is not None]
    said = [frame.data["payload"]["turn"]["content"] for frame in found
            if frame.event == "conversation.exchanged"]  # fmt: skip
    assert said == list(range(30))
    ids = [int(str(frame.id)) for frame in found]
    assert ids == sorted(set(ids)) and ids[0] > last
    with listening(api, thread) as frames:
        every = [int(str(frame.id)) for frame in frames if frame.id is not None]
    updates = {frame.id for frame in api.stream(run_id)}
    assert {str(number) for number in every} == updates


def test_a_slow_listener_loses_words_but_nothing_of_the_log(api: Api) -> None:
    thread = convened(api)
    with listening(api, thread) as frames:
        until(frames, "conversation.opened")
        speech = begun_by(api, thread)
        for number in range(40):
            for _ in range(20):
                utter(api, thread, speech, "x" * 20_000)
            answered(tell(api, thread, ADA, number))
        answered(close(api, thread))
        found = list(frames)
    said = [frame.data["payload"]["turn"]["content"] for frame in found
            if frame.event == "conversation.exchanged"]  # fmt: skip
    assert said == list(range(40))
    assert found[-1].event == "run.completed"


def test_only_who_may_speak_may_begin(api: Api) -> None:
    thread = convened(api)
    ada = key_as(api, ADA)
    answered(steer(api, thread, {"mute": [BO]}))
    with unchanged(api, run_of(thread)):
        refused(begin(api, thread, BO), 409, "participant_muted")
        refused(begin(api, thread, CY), 422, "validation_error")
        refused(begin(api, thread, "user:ann"), 400, "validation_error")
        assert begin(ada, thread, BO).status_code == 403
        assert begin(ada, thread, None).status_code == 403
        assert begin(joined(api, thread, ADA), thread, BO).status_code == 403
        reader = api.with_key(api.new_key("reader", scopes=["runs:read"]))
        refused(begin(reader, thread), 403, "forbidden")
    answered(steer(api, thread, {"pause": {"on": True}}))
    with unchanged(api, run_of(thread)):
        refused(begin(api, thread), 409, "thread_paused")
        begun_by(api, thread, None)
    answered(close(api, thread))
    refused(begin(api, thread), 409, "conversation_closed")
    refused(begin(api, "nobody"), 404, "not_found")


def test_who_is_silenced_meanwhile_is_heard_no_longer(api: Api) -> None:
    thread = convened(api)
    with listening(api, thread) as frames:
        until(frames, "conversation.opened")
        for control, code in (({"mute": [ADA]}, "participant_muted"),
                              ({"pause": True}, "thread_paused")):  # fmt: skip
            speech = begun_by(api, thread)
            assert utter(api, thread, speech).status_code == 204
            answered(steer(api, thread, control))
            refused(utter(api, thread, speech, "unheard"), 409, code)
            refused(utter(api, thread, speech, "unheard"), 404, "not_found")
            found = until(frames, "speech.ended")
            assert "unheard" not in str(found)
            answered(steer(api, thread, {"unmute": [ADA]}))
    speech = begun_by(api, thread, None)
    answered(close(api, thread))
    refused(utter(api, thread, speech), 409, "conversation_closed")


def test_nobody_else_goes_on_with_a_speech(api: Api, foreign: Api) -> None:
    thread, other = convened(api), convened(api)
    ada, twin = key_as(api, ADA), key_as(api, ADA)
    speech = begun_by(ada, thread)
    for key, place in ((twin, thread), (api, thread), (ada, other), (foreign, thread)):
        refused(utter(key, place, speech), 404, "not_found")
        refused(stop(key, place, speech), 404, "not_found")
    answered(tell(twin, thread, ADA, "x", meta={"speechId": speech}))
    assert utter(ada, thread, speech).status_code == 204, "another's turn does not end it"
    assert stop(ada, thread, speech).status_code == 204


def test_a_speech_belongs_to_one_conversation_of_its_run(api: Api) -> None:
    run_id = begun(api, talk(), gate("conversationGate", "other"), edges=[])
    speech = begun_by(api, f"{run_id}:convo:1")
    refused(utter(api, f"{run_id}:other:1", speech), 404, "not_found")
    refused(stop(api, f"{run_id}:other:1", speech), 404, "not_found")
    assert utter(api, f"{run_id}:convo:1", speech).status_code == 204


@pytest.mark.parametrize("wrong", [{"speakerId": ""}, {"speakerId": 1}, {"to": ""}, {"more": 1},
                                   {"speakerId": "x" * 257}, [], 1])  # fmt: skip
def test_a_malformed_beginning_is_refused(api: Api, wrong: Any) -> None:
    thread = convened(api)
    refused(api.post(f"{THREADS}/{thread}/speech", wrong), 400, "validation_error")


@pytest.mark.parametrize("wrong", ["", 1, None, ["x"], "x" * 65_537])
def test_malformed_words_are_refused(api: Api, wrong: Any) -> None:
    thread = convened(api)
    speech = begun_by(api, thread)
    refused(utter(api, thread, speech, wrong), 400, "validation_error")
    assert utter(api, thread, speech, "line\n\ndata: {}\r\n").status_code == 204


def test_words_cannot_break_a_frame(api: Api) -> None:
    thread = convened(api)
    evil = "a\n\nevent: run.completed\ndata: {}\n\n\r\r"
    with listening(api, thread) as frames:
        until(frames, "conversation.opened")
        speech = begun_by(api, thread)
        utter(api, thread, speech, evil)
        stop(api, thread, speech)
        found = until(frames, "speech.ended")
    assert [frame.event for frame in found] == ["speech.started", "speech.delta", "speech.ended"]
    assert found[1].data["delta"] == evil


def test_many_speak_at_once(api: Api) -> None:
    thread = convened(api, *(f"a{number}" for number in range(8)))
    with listening(api, thread) as frames:
        until(frames, "conversation.opened")

        def speak(number: int) -> None:
            speech = begun_by(api, thread, f"host:a{number}")
            for index in range(10):
                utter(api, thread, speech, f"{index}")
            meta = {"speechId": speech}
            answered(tell(api, thread, f"host:a{number}", number, meta=meta))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(speak, range(8)))
        found = until(frames, "speech.ended", 8)
    spoken = sorted(
        (f.data["speechId"], f.data["index"]) for f in found if f.event == "speech.delta"
    )
    for _, group in itertools.groupby(spoken, lambda pair: pair[0]):
        assert [index for _, index in group] == list(range(1, 11))
    answered(person(api, thread))
