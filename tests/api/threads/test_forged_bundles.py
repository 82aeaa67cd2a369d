"""Bundles that were cut, changed or made up: each is refused, and nothing of it is kept."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.api.bundles import altered, bundle_of, fresh, remade, rows_of, take_in
from tests.support.api.caller import Api
from tests.support.api.councils import (
    ADA,
    BO,
    THREADS,
    close,
    convened,
    export,
    person,
    read,
    steer,
    tell,
)
from tests.support.api.questions import answered, refused

VALIDATION = "validation_error"


@pytest.fixture(scope="module")
def told(api: Api) -> str:
    """A council in which everything has happened, and which is still open."""
    thread = convened(api, "ada", "bo", title="Shipping")
    answered(tell(api, thread, ADA, "In June"))
    answered(steer(api, thread, {"mute": [BO], "prod": ["ada"]}))
    answered(person(api, thread, {"any": ["thing", 1.5, None, "ü\u2028"]}))
    return thread


Forgery = Callable[[list[bytes]], list[bytes]]


def _head(**fields: Any) -> Forgery:
    return lambda lines: [altered(lines[0], **fields), *lines[1:]]


def _event(number: int, **fields: Any) -> Forgery:
    def change(lines: list[bytes]) -> list[bytes]:
        place = number if number > 0 else len(lines) - 1 + number
        return [*lines[:place], altered(lines[place], **fields), *lines[place + 1 :]]

    return change


def _payload(number: int, **fields: Any) -> Forgery:
    def change(lines: list[bytes]) -> list[bytes]:
        said = json.loads(lines[number])["payload"]
        return _event(number, payload={**said, **fields})(lines)

    return change


def _added(**fields: Any) -> Forgery:
    """One more event that claims its place."""

    def change(lines: list[bytes]) -> list[bytes]:
        last = json.loads(lines[-2])
        place = last["sequence"] + 1
        claimed = {"sequence": place, "eventId": f"{last['runId']}.{place}", **fields}
        return [*lines[:-1], altered(lines[-2], **claimed), lines[-1]]

    return change


def _row(number: int, change: Callable[[bytes], bytes]) -> Forgery:
    return lambda lines: [*lines[:number], change(lines[number]), *lines[number + 1 :]]


DEEP = b"[" * 100 + b"]" * 100
FORGERIES: dict[str, Forgery] = {
    "an event left out": lambda lines: [*lines[:3], *lines[4:]],
    "the beginning left out": lambda lines: [lines[0], *lines[2:]],
    "two events in another order": lambda ls: [*ls[:3], ls[4], ls[3], *ls[5:]],
    "an event twice": lambda lines: [*lines[:3], lines[3], *lines[3:]],
    "no events": lambda lines: [lines[0], lines[-1]],
    "of another run": _event(2, runId="run_other"),
    "a head of another run": _head(runId="run_other"),
    "an id of another event": _event(2, eventId="run_other.1"),
    "a second beginning": _added(type="run.started"),
    "another beginning": _event(1, type="node.started"),
    "no such sequence": _event(2, sequence=7),
    "a sequence that is a text": _event(2, sequence="1"),
    "no time": _event(2, timestamp="yesterday"),
    "hardly a time": _event(2, timestamp="2026-01-01T00:00:00.000\nevil: 1"),
    "an impossible time": _event(2, timestamp="2026-13-01T00:00:00.000000Z"),
    "a type that breaks a line": _event(2, type="node.started\ndata: 1"),
    "no payload": _event(2, payload=None),
    "a payload that is a list": _event(2, payload=[]),
    "too deep": _row(2, lambda row: row.replace(b'"payload":', b'"x":%b,"payload":' % DEEP, 1)),
    "not JSON": _row(2, lambda row: b"{"),
    "not UTF-8": _row(2, lambda row: row.replace(b"talk", b"t\xffk")),
    "a line that ends in another way": _row(2, lambda row: row.replace(b",", b",\r", 1)),
    "a wrong workflow": _head(definition='{"id": "moot.thread"}'),
    "a workflow that is none": _head(definition="x"),
    "a deep workflow": _head(definition=DEEP.decode() * 1000),
    "no such thread": _head(threadId="run_x:talk:1"),
    "a thread that breaks a line": _head(threadId="x\r\nSet-Cookie: a=b"),
    "another format": _head(format="other"),
    "a later version": _head(version=2),
    "a workflow by another name": _payload(1, workflowId="other"),
    "another digest": _payload(1, definition="0" * 64),
    "inputs that are none": _payload(1, inputs=[1]),
    "limits that are none": _payload(1, limits="x"),
    "a node that is not in the workflow": _event(2, nodeId="ghost"),
    "a roster that is none": _payload(5, participants=[1]),
    "a turn that is none": _payload(5, initialTurn="x"),
    "a turn number that is none": _added(
        type="conversation.exchanged", payload={"turn": {"turnIndex": "x"}}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_bundle_that_is_wrong_leaves_nothing(
    api: Api, elsewhere: Api, told: str, name: str
) -> None:
    whole = fresh(api, bundle_of(api, told), told)
    wrong = remade(FORGERIES[name](rows_of(whole)))
    run_id = str(json.loads(rows_of(whole)[0])["runId"])
    workflows = elsewhere.get("/v1/workflows").text
    answer = take_in(elsewhere, wrong)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"] == VALIDATION
    refused(elsewhere.get(f"/v1/runs/{run_id}"), 404, "run_not_found")
    refused(elsewhere.get(f"{THREADS}/{run_id}"), 404, "not_found")
    assert elsewhere.get("/v1/workflows").text == workflows
    assert take_in(elsewhere, whole).status_code == 201


ODD: dict[str, Forgery] = {
    "no turn": _payload(5, initialTurn={}),
    "members without a name": _payload(5, participants=[{}, {"agentId": 1}]),
    "a turn of odd parts": _added(
        type="conversation.exchanged",
        payload={"turn": {"to": 1, "via": [1], "agent": {"model": "x"}, "speakerId": {}}},
    ),
    "a turn that is a text": _added(type="conversation.closed", payload={"finalTurn": "x"}),
    "a control that is a text": _added(type="moot.thread.control", payload={"content": "{"}),
    "a type of tomorrow": _added(type="moot.tomorrow", payload={"anything": None}),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_log_that_came_in_can_still_be_read(
    api: Api, elsewhere: Api, told: str, name: str
) -> None:
    """Whatever is taken in never becomes a mistake of the server."""
    whole = fresh(api, bundle_of(api, told), told)
    lines = rows_of(whole)
    thread = json.loads(lines[0])["runId"]
    odd = [_with_thread(line, thread) for line in ODD[name](lines)]
    answer = take_in(elsewhere, remade(odd))
    assert answer.status_code in (201, 400), answer.text
    if answer.status_code == 201:
        for format_ in ("md", "html", "json", "bundle"):
            export(elsewhere, thread, format_)
        assert read(elsewhere, thread)["threadId"] == thread


def _with_thread(line: bytes, thread: str) -> bytes:
    found = json.loads(line)
    if found.get("type", "").startswith(("conversation.", "moot.")):
        found["payload"].setdefault("conversationId", thread)
    return json.dumps(found).encode()


@pytest.mark.parametrize("cut", [0, 1, 10, -1, -20, -200])
def test_a_bundle_that_was_cut_is_refused(api: Api, elsewhere: Api, told: str, cut: int) -> None:
    whole = fresh(api, bundle_of(api, told), told)
    refused(take_in(elsewhere, whole[: cut if cut >= 0 else cut - 1]), 400, VALIDATION)


def test_a_bundle_that_was_changed_is_refused(api: Api, elsewhere: Api, told: str) -> None:
    whole = fresh(api, bundle_of(api, told), told)
    refused(take_in(elsewhere, whole.replace(b"In June", b"In July")), 400, VALIDATION)
    lines = rows_of(whole)
    refused(take_in(elsewhere, b"\n".join([*lines[:2], *lines[3:]])), 400, VALIDATION)
    refused(take_in(elsewhere, b"\n".join([*lines, lines[-1]])), 400, VALIDATION)


def test_nothing_follows_an_end(api: Api, elsewhere: Api) -> None:
    thread = convened(api)
    answered(close(api, thread))
    bundle = bundle_of(api, thread)
    for type_ in ("log.appended", "conversation.exchanged", "run.completed", "run.started"):
        wrong = remade(_added(type=type_)(rows_of(bundle)))
        refused(take_in(elsewhere, wrong), 400, VALIDATION)
