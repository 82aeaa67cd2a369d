"""The client has all of the API, in both ways of waiting, and costs nothing until it is used."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import moot.client
from moot import AsyncClient, Client
from moot.api.routes import ENDPOINTS
from moot.client import calls_host, calls_runs, calls_threads, host, roster, runs, threads, webhooks
from moot.client.bound import async_its, awaits, its, waits
from moot.client.call import OPERATIONS, Operation

#: routes that are pages for a browser
FOR_BROWSERS = {"GET /docs", "GET /docs.js", "GET /docs.css"}

PARTS = ("runs", "threads", "inbox", "workflows", "agents", "memory", "webhooks", "roster", "keys")
HANDLES = ((runs.Run, runs.AsyncRun), (threads.Thread, threads.AsyncThread))


def test_every_route_has_an_operation_and_every_operation_a_route() -> None:
    served = {endpoint.operation for endpoint in ENDPOINTS}
    assert served - {operation.route for operation in OPERATIONS} == FOR_BROWSERS
    assert {operation.route for operation in OPERATIONS} - served == set()


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in vars(kind).items() if not name.startswith("_"))


def test_every_operation_is_a_method_somewhere() -> None:
    modules = (runs, threads, host, webhooks, roster, moot.client)
    values = [value for module in modules for value in vars(module).values()]
    classes = [value for value in values if isinstance(value, type)]
    used: set[str] = set()
    for _, method in (pair for kind in classes for pair in methods(kind)):
        operation = getattr(method, "_operation", None)
        used |= {operation.__name__} if operation else set()
        used |= set(getattr(getattr(method, "__code__", None), "co_names", ()))
    for module in (calls_runs, calls_threads, calls_host, webhooks, roster):
        made = {name for name, value in vars(module).items() if isinstance(value, Operation)}
        assert made - used == set(), module.__name__


@pytest.mark.parametrize("part", PARTS)
def test_both_clients_have_the_same_methods(part: str) -> None:
    place = {"url": "http://127.0.0.1:1", "key": "k"}
    ours, theirs = getattr(Client(**place), part), getattr(AsyncClient(**place), part)
    assert dict(methods(type(ours))).keys() == dict(methods(type(theirs))).keys()


def test_handles_have_the_same_methods_of_the_same_operations() -> None:
    kinds = {its: async_its, waits: awaits}
    for ours, theirs in HANDLES:
        left, right = dict(methods(ours)), dict(methods(theirs))
        assert left.keys() == right.keys()
        for name, method in left.items():
            if type(method) in kinds:
                assert type(right[name]) is kinds[type(method)]
                assert right[name]._operation is method._operation


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
