"""A host with an agent that wants a dangerous tool, and a file that tells how often it was used."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import Api
from tests.support.api.councils import read, run_of, steer
from tests.support.servers import ServerProcess, server_environment

TOOLS = """
from pathlib import Path

from moot import tool


@tool(dangerous=True)
def boom(x: int) -> str:
    "Does what cannot be undone."
    with Path("boom.log").open("a") as log:
        log.write("boom\\n")
    return "done"
"""

PROJECT = """
[server]
tools = "tools.py"
agents = "agents"

[models.d]
provider = "demo"
script = [{tool = "boom", arguments = {x = 1}}]
"""


class Room(Api):
    """The administrator's key to such a host."""

    server: ServerProcess

    @property
    def booms(self) -> int:
        log = self.server.folder / "boom.log"
        return len(log.read_text().split()) if log.exists() else 0


def opened(folder: Path, answers: AnswerChecks) -> Room:
    (folder / "agents").mkdir()
    (folder / "tools.py").write_text(TOOLS)
    (folder / "moot.toml").write_text(PROJECT)
    for name, head in {"dan": "model: d\ntools: [boom]", "bo": "model: demo"}.items():
        (folder / "agents" / f"{name}.md").write_text(f"---\n{head}\n---\nYou are {name}.\n")
    process = ServerProcess(folder, [], server_environment(MOOT_DEMO_WPS="0"))
    room = Room(process.url, process.key, answers)
    room.server = process
    return room


def until(what: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What it gives, once it gives anything."""
    late = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < late, "it never came"
        time.sleep(0.02)
    return found


def wanting(room: Room, **policy: Any) -> tuple[str, str]:
    """A council in which dan wants to use his tool, and the name of what he asks."""
    led = {"mode": "round-robin", "rounds": 1, **policy}
    body = {"question": "June?", "participants": ["dan", "bo"], "policy": led}
    thread = str(room.post("/v1/host/moot/councils", body).json()["threadId"])
    [ask] = until(lambda: read(room, thread)["floor"]["asks"])
    return thread, str(ask["askId"])


def allowed(room: Room) -> str:
    """The run of a council in which a person has agreed, and the tool was used once."""
    before = room.booms
    thread, ask = wanting(room)
    assert steer(room, thread, {"allow": ask}).status_code == 200
    until(lambda: room.booms == before + 1)
    until(lambda: read(room, thread)["floor"]["atRest"])
    return run_of(thread)


def place_of(room: Api, run_id: str, type_: str) -> int:
    return next(e["sequence"] for e in room.events(run_id) if e["type"] == type_)
