"""A server with agents that speak offline, and councils on it."""

import json
from pathlib import Path
from typing import Any

from tests.support.cli.commands import Cli
from tests.support.servers import ServerProcess

ROLES = {"ada": "skeptic", "bo": "builder", "cy": "measurer", "dee": "legal", "mo": "moderator"}
QUESTION = "Do we raise prices in Q1?"
ALL = ("--with", "ada,bo,cy", "--moderator", "mo")


def write_agents(folder: Path) -> None:
    (folder / "agents").mkdir()
    for name, role in ROLES.items():
        text = f"---\nrole: {role}\n---\nTwo sentences.\n"
        (folder / "agents" / f"{name}.md").write_text(text)


def threads(host: ServerProcess, *words: str) -> str:
    """A council that was begun and left."""
    who = ("--with", "ada,bo,mo") if "addressed" in words else ALL
    done = Cli(host.folder)("convene", QUESTION, *who, *words, "--detach")
    assert done.code == 0, done.err
    [thread_id] = done.lines()
    return thread_id


def thread(host: ServerProcess, thread_id: str) -> dict[str, Any]:
    status, body, _ = host.request("GET", f"/v1/host/moot/threads/{thread_id}")
    assert status == 200, body
    return dict(body)


def events(host: ServerProcess, run_id: str) -> list[dict[str, Any]]:
    path = f"/v1/runs/{run_id}/events/poll?lastSequence=-1&timeout=0"
    return list(host.request("GET", path)[1]["events"])


def last(host: ServerProcess) -> str:
    """The newest thread."""
    rows = host.request("GET", "/v1/host/moot/runs?limit=1")[1]["runs"]
    return str(rows[0]["runId"])


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]
