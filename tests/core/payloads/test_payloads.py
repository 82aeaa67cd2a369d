"""Payloads: one class for each type of event, and bytes that stay as they are."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.core.catalogue import CATALOGUE, PAYLOADS
from moot.core.events import decode, decode_payload, encode, payload_bytes, payload_fields
from moot.core.payloads.base import OpaquePayload
from moot.core.payloads.conversations import ConversationExchanged
from moot.core.payloads.runs import RunFailed, RunResumed, RunStarted
from moot.core.replay.replay import repeat_event
from moot.core.state.run import Run, apply
from moot.core.state.status import Status

LOGS = sorted((Path(__file__).parents[2] / "replay" / "logs").glob("*.jsonl"))
RECORDED = Path(__file__).parents[2] / "recorded" / "answers.jsonl"
#: the start of a fork, the end of a replay that diverged, and some turns have an order of their own
OTHER_ORDERS = (RunStarted, RunFailed, ConversationExchanged)


def rows(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().splitlines() if line]


def row(type_: str, payload: Any, sequence: int = 0) -> bytes:
    fields = {
        "eventId": f"r.{sequence}", "runId": "r", "sequence": sequence, "type": type_,
        "timestamp": "2030-01-01T00:00:00.000000Z", "payload": payload,
    }  # fmt: skip
    return msgspec.json.encode(fields)


def test_every_type_has_a_payload_of_its_own() -> None:
    assert len(PAYLOADS) == len(CATALOGUE)
    assert len({payload.__name__ for payload in PAYLOADS.values()}) == len(CATALOGUE)
    for name, payload in PAYLOADS.items():
        assert payload.event_type == name


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_an_old_log_is_read_into_payloads_and_written_as_it_was(path: Path) -> None:
    for line in rows(path):
        event = decode(line)
        assert type(event.payload) is PAYLOADS[event.type], event.type
        assert encode(event) == line
        assert msgspec.json.decode(msgspec.json.encode(event.payload)) == payload_fields(event)
        if not isinstance(event.payload, OTHER_ORDERS):
            assert msgspec.json.encode(event.payload) == payload_bytes(event)


def recorded_events(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield type and payload of each event within a recorded answer."""
    if isinstance(value, dict) and {"eventId", "type", "payload"} <= value.keys():
        yield value["type"], value["payload"]
    if isinstance(value, str) and '"eventId"' in value:
        for line in value.splitlines():
            data = line.removeprefix("data: ")
            yield from recorded_events(json.loads(data) if data.startswith("{") else None)
    children = value.values() if isinstance(value, dict) else value
    for child in children if isinstance(value, dict | list) else ():
        yield from recorded_events(child)


def test_recorded_events_are_read_into_payloads() -> None:
    answers = [json.loads(line) for line in rows(RECORDED)]
    found = [event for answer in answers for event in recorded_events(answer)]
    assert len(found) > 100
    for type_, fields in found:
        payload = decode_payload(type_, msgspec.Raw(msgspec.json.encode(fields)))
        assert type(payload) is PAYLOADS.get(type_, OpaquePayload), (type_, fields)


@given(st.sampled_from(sorted(PAYLOADS)), st.dictionaries(st.text(max_size=5), st.integers()))
def test_any_payload_folds_and_stays_as_it_is(type_: str, payload: dict[str, int]) -> None:
    line = row(type_, payload)
    event, run = decode(line), Run("r")
    apply(run, event)
    assert run.next_sequence == 1
    assert encode(event) == line


@pytest.mark.parametrize(
    ("type_", "payload"),
    [("nobody.knows", {"a": 1}), (RunResumed.event_type, {"reason": 5}),
     (RunStarted.event_type, {"workflowId": "w"})],
)  # fmt: skip
def test_what_does_not_fit_is_opaque_and_is_copied_byte_for_byte(
    type_: str, payload: dict[str, Any]
) -> None:
    event = decode(row(type_, payload))
    assert isinstance(event.payload, OpaquePayload)
    copied = repeat_event(event, "r", {})
    assert (copied.type, payload_bytes(copied)) == (type_, msgspec.json.encode(payload))


def test_a_payload_that_does_not_fit_only_moves_the_status_and_the_position() -> None:
    run = Run("r", status=Status.PAUSED)
    apply(run, decode(row(RunResumed.event_type, {"reason": 5})))
    assert (run.status, run.next_sequence, run.active_since) == (Status.RUNNING, 1, 0)
    with pytest.raises(ValueError, match="does not fit"):
        apply(run, decode(row(RunResumed.event_type, {"reason": 5}, 1)), strict=True)


def test_a_key_that_nobody_knows_is_copied() -> None:
    payload = {"reason": "r", "by the way": [1, {"b": None}]}
    event = decode(row(RunResumed.event_type, payload))
    assert event.payload == RunResumed(reason="r")
    copied = repeat_event(event, "r", {})
    assert json.loads(payload_bytes(copied)) == payload_fields(copied) == payload


def test_a_key_that_nobody_knows_within_a_fact_is_copied() -> None:
    turn = {"from": "user", "mood": "calm", "content": None, "turnIndex": 1}
    payload = {"turn": turn, "turnIndex": 1, "conversationId": "r:gate:1"}
    event = decode(row(ConversationExchanged.event_type, payload))
    assert isinstance(event.payload, ConversationExchanged)
    assert (event.payload.turn.from_, event.payload.turn.content) == ("user", None)
    copied = repeat_event(event, "r", {})
    assert payload_bytes(copied) == msgspec.json.encode(payload)


def test_a_fact_that_does_not_fit_makes_its_payload_opaque() -> None:
    payload = {"turn": {"from": 5}, "turnIndex": 1, "conversationId": "r:gate:1"}
    event = decode(row(ConversationExchanged.event_type, payload))
    assert isinstance(event.payload, OpaquePayload)
    assert payload_bytes(repeat_event(event, "r", {})) == msgspec.json.encode(payload)


@pytest.mark.parametrize(
    ("hints", "runs"),
    [({"runs": 3}, 3), ({"runs": 3, "tomorrow": [1]}, 3), ({"runs": "three"}, None), ({}, None)],
)
def test_hints_are_read_by_name_and_written_as_they_were(
    hints: dict[str, Any], runs: int | None
) -> None:
    line = row(RunResumed.event_type, {})[:-1] + b',"hints":' + msgspec.json.encode(hints) + b"}"
    event = decode(line)
    assert event.known_hints.runs == runs
    assert encode(event) == line
    assert repeat_event(event, "r", {}).hints == hints


def test_a_hint_that_does_not_fit_leaves_the_others_and_fails_a_strict_fold() -> None:
    hints = b',"hints":{"runs":"three","dueAt":"2026-01-01T00:00:00.000000Z"}}'
    event = decode(row(RunResumed.event_type, {})[:-1] + hints)
    assert event.known_hints.runs is None
    assert event.known_hints.due_at == "2026-01-01T00:00:00.000000Z"
    apply(Run("r"), event)
    with pytest.raises(ValueError, match="runs"):
        apply(Run("r"), event, strict=True)
