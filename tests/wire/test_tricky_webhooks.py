"""No address that leads inside can be registered for webhooks, however it is written."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tricky_addresses import NAMES, PUBLIC, TRICKY

#: names are looked up here as a resolver that somebody else has filled would answer
RESOLVER = """
import json
import socket
from types import SimpleNamespace

from moot.net import dns

NAMES = json.loads({names!r})


def answered(name, port, **_):
    return [(0, 0, 0, "", (found, port)) for found in NAMES.get(name, [{public!r}])]


dns.socket = SimpleNamespace(getaddrinfo=answered, SOCK_STREAM=socket.SOCK_STREAM)
"""


def test_none_of_them_is_registered_and_nobody_inside_is_called(
    host: Callable[..., Any], tmp_path: Path
) -> None:
    nodes = tmp_path / "resolver.py"
    nodes.write_text(RESOLVER.format(names=json.dumps(NAMES), public=PUBLIC))
    api = host("--nodes", str(nodes))
    with socket.create_server(("127.0.0.1", 0)) as inside:
        port = str(inside.getsockname()[1])
        for address in TRICKY:
            url = address.replace("PORT", port)
            answer = api.post("/v1/webhooks", {"url": url, "events": ["*"]})
            assert answer.status_code == 400, (url, answer.text)
            assert answer.json()["error"] in ("webhook_url_rejected", "validation_error"), url
        assert api.get("/v1/host/moot/webhooks").json()["webhooks"] == []
        ordinary = {"url": "https://hooks.example.com/moot", "events": ["run.completed"]}
        assert api.post("/v1/webhooks", ordinary).status_code == 201, "the resolver is asked"
        inside.setblocking(False)
        with pytest.raises(BlockingIOError):
            inside.accept()
