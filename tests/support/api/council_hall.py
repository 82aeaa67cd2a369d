"""Councils on a real server: convening, waiting until they rest, reading what came of them."""

import time
from typing import Any

from tests.support.provider_project import Provider
from tests.support.servers import ServerProcess

AGENTS = {
    "ada": "model: it\nrole: skeptic",
    "bo": "model: other\nrole: builder",
    "cy": "model: it",
    "dee": "model: demo\nrole: measurer",
    "ed": "model: demo\nrole: skeptic",
    "mo": "model: it\nrole: moderator",
}
PATIENCE = 60.0


class Hall:
    """The administrator's view of one server."""

    def __init__(self, server: ServerProcess, models: Provider) -> None:
        self.server, self.models = server, models
        self._open: list[str] = []

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        status, answer, _ = self.server.request(method, path, body)
        assert status in (200, 201, 202, 204), (status, answer)
        return answer

    def convene(self, *names: str, question: str = "Ship in June?", **body: Any) -> str:
        """The run of a council; with a policy it is led by the host."""
        given = {"question": question, "participants": list(names), **body}
        run_id = str(self.ask("POST", "/v1/host/moot/councils", given)["runId"])
        self._open.append(run_id)
        return run_id

    def thread(self, run_id: str) -> dict[str, Any]:
        return dict(self.ask("GET", f"/v1/host/moot/threads/{run_id}"))

    def floor(self, run_id: str) -> dict[str, Any]:
        return dict(self.thread(run_id)["floor"])

    def at_rest(self, run_id: str) -> dict[str, Any]:
        """The floor once nobody has it any more, and nobody is given it by itself."""
        return self.until(run_id, lambda floor: floor["atRest"])

    def until(self, run_id: str, enough: Any) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = self.floor(run_id)
            if enough(found):
                return found
            time.sleep(0.01)
        raise AssertionError(f"never: {found}\n{self.server.log.read_text()[-2000:]}")

    def log(self, run_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            after = f"&lastSequence={found[-1]['sequence']}" if found else ""
            page = self.ask("GET", f"/v1/runs/{run_id}/events/poll?timeout=0{after}")["events"]
            if not page:
                return found
            found += page

    def told(self, run_id: str, type_: str) -> list[dict[str, Any]]:
        return [event["payload"] for event in self.log(run_id) if event["type"] == type_]

    def turns(self, run_id: str) -> list[dict[str, Any]]:
        found = [said["turn"] for said in self.told(run_id, "conversation.exchanged")]
        return found + [said["finalTurn"] for said in self.told(run_id, "conversation.closed")]

    def said(self, run_id: str) -> list[tuple[str, Any]]:
        return [(turn["from"], turn["content"]) for turn in self.turns(run_id)]

    def system(self, run_id: str) -> list[str]:
        return [turn["content"] for turn in self.turns(run_id) if turn["role"] == "system"]

    def speak(self, run_id: str, content: Any, **turn: Any) -> Any:
        path = f"/v1/runs/{run_id}/interrupts/talk"
        return self.ask("POST", path, {"resumeValue": {"content": content, **turn}})

    def steer(self, run_id: str, **content: Any) -> Any:
        path = f"/v1/host/moot/threads/{run_id}/controls"
        return self.ask("POST", path, {"content": content})

    def outcomes(self, run_id: str) -> list[tuple[str, str, str]]:
        """Member, task and outcome of every wake."""
        answered = self.told(run_id, "moot.participation.answered")
        return [(said["agentId"], said["task"], said["outcome"]) for said in answered]

    def leave(self) -> None:
        """What a test has left open must not speak in the next one."""
        for run_id in self._open:
            self.server.request("POST", f"/v1/runs/{run_id}/cancel", {})
        self._open.clear()

    def until_called(self, times: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.models.count < times and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.models.count >= times
