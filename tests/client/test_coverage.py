"""The client has all of the API, in both ways of waiting, and costs nothing until it is used."""

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from moot import AsyncClient, Client
from moot.api.routes import ENDPOINTS
from moot.client import clients, host, runs, threads
from moot.client.http.frames import Spoken, read_frame
from moot.client.http.operation import OPERATIONS, Operation
from moot.client.operations import agent_bridge, roster, schedules, triggers, webhooks
from moot.client.operations.runs import Edit, Options
from moot.wire.sse import SseFrame

#: routes that are pages for a browser
FOR_BROWSERS = {"GET /docs", "GET /docs/{guide}", "GET /docs.js", "GET /docs.css"}

PARTS = (
    "runs",
    "threads",
    "inbox",
    "workflows",
    "agents",
    "memory",
    "webhooks",
    "schedules",
    "roster",
    "queues",
    "subscriptions",
    "keys",
)
HANDLES = ((runs.Run, runs.AsyncRun), (threads.Thread, threads.AsyncThread))


def test_every_route_has_an_operation_and_every_operation_a_route() -> None:
    served = {endpoint.operation for endpoint in ENDPOINTS}
    assert served - {operation.route for operation in OPERATIONS} == FOR_BROWSERS
    assert {operation.route for operation in OPERATIONS} - served == set()


#: a word of a type -> something of that type with everything in it
GIVEN: tuple[tuple[str, Any], ...] = (
    ("Options", Options(tags=["x"], metadata={"y": 1}, configurable={"y": 1}, scope_id="x",
                        callback_url="x", exclusive=True)),
    ("Edit", Edit(turn="x")), ("Mapping", {"x": 1}), ("Data", {"x": 1}), ("bytes", b"x"),
    ("Sequence", ["x"]), ("bool", True), ("str", "x"), ("int", 1), ("float", 1.0),
)  # fmt: skip


#: what the protocol has, and this host refuses, knows by the key, or can tell by another field
NOT_PROVIDED = {
    #: it is the key's own, and what the server writes itself
    ("POST /v1/webhooks", "tenantId"),
    *((("POST /threads/{thread_id}/events"), name) for name in ("thread", "seq", "turn", "ts")),
    #: another route of the host, and another word, for the same
    *(("POST /threads", name) for name in ("title", "opening", "participants", "policy")),
    ("POST /v1/host/moot/threads/{thread_id}/join", "name"),
    *(("POST /v1/runs", name) for name in ("evalSuiteRef", "mode", "residency", "tenantId")),
    *(("POST /v1/agents/{agent_id}/deployments", name) for name in ("toState", "evalRunId")),
}


def sent_by(operation: Operation[..., Any]) -> set[str]:
    """The fields of the body when everything is given."""
    values: dict[str, Any] = {}
    words: list[Any] = []
    for name, parameter in inspect.signature(operation._make).parameters.items():
        said = str(parameter.annotation)
        value = next((value for word, value in GIVEN if word in said), "x")
        value = False if parameter.default is True else value  # a default is not sent
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            words.append(value)
        elif parameter.kind is parameter.KEYWORD_ONLY:
            values[name] = value
    body = operation(*words, **values).sent.body
    found = json.loads(body) if body and body != b"x" else {}
    return set(found) if isinstance(found, dict) else set()


def test_every_field_of_a_body_can_be_sent() -> None:
    sent: dict[str, set[str]] = {}
    whole: set[str] = set()
    for operation in OPERATIONS:
        found = sent_by(operation)
        whole |= {operation.route} if "x" in found else set()  # it sends whatever it is given
        sent[operation.route] = sent.get(operation.route, set()) | found
    missing = {
        (endpoint.operation, field.encode_name)
        for endpoint in ENDPOINTS
        if isinstance(endpoint.body, type) and issubclass(endpoint.body, msgspec.Struct)
        if endpoint.operation in sent and endpoint.operation not in whole
        for field in msgspec.structs.fields(endpoint.body)
        if field.encode_name not in sent[endpoint.operation]
    }
    assert missing == NOT_PROVIDED


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in vars(kind).items() if not name.startswith("_"))


def test_every_operation_is_a_method_somewhere() -> None:
    modules = (runs, threads, host, webhooks, schedules, roster, triggers, agent_bridge, clients)
    values = [value for module in modules for value in vars(module).values()]
    classes = [value for value in values if isinstance(value, type)]
    used: set[str] = set()
    for _, method in (pair for kind in classes for pair in methods(kind)):
        operation = getattr(method, "_operation", None)
        used |= {operation.__name__} if operation else set()
        used |= set(getattr(getattr(method, "__code__", None), "co_names", ()))
    made = {operation.__name__ for operation in OPERATIONS}
    assert made - used == {"stream_bridge_events"}


@pytest.mark.parametrize("part", PARTS)
def test_both_clients_have_the_same_methods(part: str) -> None:
    place = {"url": "http://127.0.0.1:1", "key": "k"}
    ours, theirs = getattr(Client(**place), part), getattr(AsyncClient(**place), part)
    assert dict(methods(type(ours))).keys() == dict(methods(type(theirs))).keys()


def test_handles_have_the_same_methods_of_the_same_operations() -> None:
    for ours, theirs in HANDLES:
        assert dict(methods(ours)).keys() == dict(methods(theirs)).keys()
        assert ours.__mro__[1] is theirs.__mro__[1], "their operations are those of one class"


def test_words_that_are_taken_back_are_told_from_words_that_were_spoken() -> None:
    data = msgspec.json.encode({"speechId": "s", "void": True})
    found = read_frame(SseFrame("speech.ended", data))
    assert isinstance(found, Spoken) and found.void and found.what == "ended"


def test_importing_moot_loads_neither_the_client_nor_its_library() -> None:
    told = "import moot, sys; print([m for m in ('httpx2', 'moot.client') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_client_loads_nothing_of_the_server() -> None:
    told = (
        "import sys; from moot import Client, AsyncClient;"
        "print([m for m in sys.modules if m in ('httpx2', 'uvicorn', 'apsw', 'click')"
        " or m.startswith(('moot.engine', 'moot.api', 'moot.store', 'moot.agents'))])"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
