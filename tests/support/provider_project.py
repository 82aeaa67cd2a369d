"""A provider of models that outlives the server, and projects whose agents speak through it."""

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.model_provider import Asked, Reply, StandIn

KEY = "sk-stand-in-0123456789"

#: what a request wants is in the name of its schema, and of none it wants words
Answering = Callable[["Call"], Reply]


class Call:
    """One request as the provider got it, in the words of both wire formats alike."""

    def __init__(self, number: int, asked: Asked) -> None:
        self.number, self.path, self.body = number, asked.path, asked.body

    @property
    def anthropic(self) -> bool:
        return "completions" not in self.path

    @property
    def system(self) -> str:
        if self.anthropic:
            return str(self.body.get("system", ""))
        return "\n\n".join(m["content"] for m in self.messages if m["role"] == "system")

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def agent(self) -> str:
        """Who speaks, by how it is called."""
        found = re.match(r"You are ([^,.\n]+)", self.system)
        return found[1] if found else ""

    @property
    def schema(self) -> dict[str, Any] | None:
        if self.anthropic:
            found = self.body.get("output_config", {}).get("format", {}).get("schema")
        else:
            asked = self.body.get("response_format", {}).get("json_schema", {})
            found = asked.get("schema")
        return found if isinstance(found, dict) else None

    @property
    def task(self) -> str:
        names = {"raised": "hand", "next": "choose", "decision": "synthesise", "vote": "vote"}
        fields = (self.schema or {}).get("properties", {})
        return next((task for name, task in names.items() if name in fields), "speak")

    @property
    def identity(self) -> str:
        """The same for the same request, whenever it is made."""
        return json.dumps(self.body, sort_keys=True)

    @property
    def heard(self) -> list[tuple[str, str]]:
        """Speaker and text of every message in an envelope."""
        found = []
        for message in self.messages:
            if message["role"] == "user" and isinstance(message["content"], str):
                said = json.loads(message["content"])
                found.append((said["speaker"], said["text"]))
        return found


class Provider(StandIn):
    """Answers from a thread of this process, however often the server dies."""

    def __init__(self, answering: Answering) -> None:
        super().__init__(0)
        self.answering = answering
        self.calls: list[Call] = []
        self._lock = threading.Lock()

    async def replying(self, asked: Asked) -> Reply:
        """Answers may wait for something of the test: they are thought of beside the loop."""
        with self._lock:
            call = Call(len(self.calls) + 1, asked)
            self.calls.append(call)
        return await asyncio.to_thread(self.answering, call)

    @property
    def count(self) -> int:
        return len(self.calls)

    def by(self, agent: str) -> list[Call]:
        return [call for call in self.calls if call.agent == agent]


@contextmanager
def provider(answering: Answering | None = None) -> Iterator[Provider]:
    found = Provider(answering or sensible)
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
        found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await stopping.wait()
        server.close()

    stopping = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(60)
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def words(text: str, **more: Any) -> Reply:
    return Reply(words=[text], **more)


def sensible(call: Call) -> Reply:
    """What a member says: its own name and the number of the call are in it."""
    number = call.number
    match call.task:
        case "hand":
            return words(json.dumps({"raised": True, "urgency": number}))
        case "choose":
            names = [name for name in (call.schema or {})["properties"]["next"]["enum"] if name]
            said = {"next": names[number % len(names)], "stop": False, "reason": f"#{number}"}
            return words(json.dumps(said))
        case "synthesise":
            said = {"agreements": [], "disagreements": [], "decision": f"We go. #{number}"}
            return words(json.dumps(said))
        case "vote":
            return words(json.dumps({"vote": "yes", "reason": f"#{number}"}))
        case _:
            return Reply(words=[f"{call.agent} ", "says ", f"#{number}."])


def project(folder: Path, url: str, agents: dict[str, str], toml: str = "") -> None:
    """A folder to serve from: models ``it`` and ``other``, and agents as name -> front matter."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "moot.toml").write_text(
        f"""[server]
agents = "agents"
demo_wps = 0

[models.it]
url = "{url}/v1"
model = "big"
key_env = "STAND_IN_KEY"

[models.other]
provider = "anthropic"
url = "{url}"
model = "grand"
key_env = "STAND_IN_KEY"
{toml}
"""
    )
    for name, front in agents.items():
        file = folder / "agents" / f"{name}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"---\n{front}\n---\nYou say what you think.\n")
