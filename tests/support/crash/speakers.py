"""Members of councils on a server that keeps dying: they speak, close, approve, and remember."""

import time
from typing import Any

from tests.support.crash.clients import Caller, chain, delay, node
from tests.support.servers import ServerProcess

AGENTS = ("host:ada", "host:bo", "host:cy")
MAIN = "main"


def councils(book: str) -> list[dict[str, Any]]:
    """Workflows: one long talk, two short ones in a row, and an approval; each goes on."""
    members = {"participants": [{"agentId": name} for name in AGENTS]}
    note = node("note", "acme.note", config={"book": book})
    return [
        chain(MAIN, node("floor", "core.conversationGate", config=members), note),
        chain("talks", node("floor", "core.conversationGate", config=members),
              node("again", "core.conversationGate"), note, delay("wait", 10)),
        chain("ask", node("gate", "core.approvalGate"), note, delay("wait", 10), node("last")),
    ]  # fmt: skip


def floor(run_id: str, node_id: str = "floor") -> str:
    return f"/v1/runs/{run_id}/interrupts/{node_id}"


class Speaker(Caller):
    """Speaks in the first of the conversations, and in the newest of the others."""

    def __init__(
        self, server: ServerProcess, name: str, seed: int, floors: list[str], named: bool
    ) -> None:
        super().__init__(server, name, seed)
        self._floors, self._named = floors, named
        self._count = 0
        #: what was said -> where, and the index it was acknowledged with
        self.acknowledged: dict[str, tuple[str, int]] = {}
        #: said once without an answer; refused because the conversation was closed
        self.unsure: dict[str, str] = {}
        self.refused: set[str] = set()

    def _once(self) -> None:
        self.say(self._chance.choice([self._floors[0], self._floors[0], self._floors[-1]]))
        time.sleep(self._chance.random() * 0.004)

    def say(self, path: str) -> None:
        self._count += 1
        content = f"{self.name}-{self._count}"
        asked = {"resumeValue": self._turn(content)}
        if not self._named:
            answer = self._ask_once("POST", path, asked)
            if answer is None:
                self.unsure[content] = path
                time.sleep(0.02)
            else:
                self._learn(content, path, *answer)
            return
        status, said = self._ask("POST", path, asked)
        self._learn(content, path, status, said)
        if status == 200 and self._chance.random() < 0.2:
            again = self._ask("POST", path, asked)
            if again != (200, said):
                self.trouble.append(f"{content}: {said}, then {again}")

    def _turn(self, content: str) -> dict[str, str]:
        named = {"messageId": content} if self._named else {}
        if self._chance.random() < 0.4:
            return {"role": "user", "from": f"user:{self.name}", "content": content, **named}
        speaker = self._chance.choice(AGENTS)
        return {"role": "agent", "speakerId": speaker, "content": content, **named}

    def _learn(self, content: str, path: str, status: int, answer: Any) -> None:
        if status == 200:
            self.acknowledged[content] = (path, answer["conversation"]["turnIndex"])
        elif status == 409:
            self.refused.add(content)
        else:
            self.trouble.append(f"{content}: {status} {answer}")


class Chair(Speaker):
    """Opens short conversations, closes them, and goes on in the next one."""

    def __init__(self, server: ServerProcess, name: str, seed: int, floors: list[str]) -> None:
        super().__init__(server, name, seed, floors, named=True)
        #: where -> the outcome it was closed with; conversations that were left open
        self.closed: dict[str, str] = {}
        self.left_open: set[str] = set()

    def _once(self) -> None:
        run_id = self._begin(f"{self.name}-{len(self.closed)}", {"workflowId": "talks"})
        for node_id in ("floor", "again"):
            path = floor(run_id, node_id)
            self._floors.append(path)
            for _ in range(self._chance.randrange(4)):
                self.say(path)
            if node_id == "again" and self._chance.random() < 0.2:
                self.left_open.add(path)
                return
            self._close(path, f"outcome of {path}")

    def _close(self, path: str, outcome: str) -> None:
        """A close has no name; who is told that it has happened already has done it himself."""
        value = {"operation": "close", "outcome": outcome}
        status, answer = self._ask("POST", path, {"resumeValue": value})
        if status == 200 or answer.get("details", {}).get("resolvedBy"):
            self.closed[path] = outcome
        else:
            self.trouble.append(f"close of {path}: {status} {answer}")


class Approver(Caller):
    """Starts runs that ask, and answers most of them."""

    ENDS = {"accept": "completed", "reject": "failed"}

    def __init__(self, server: ServerProcess, name: str, seed: int) -> None:
        super().__init__(server, name, seed)
        #: run -> the action that was acknowledged; runs that were not answered
        self.resolved: dict[str, str] = {}
        self.waiting: set[str] = set()

    def _once(self) -> None:
        number = len(self.resolved) + len(self.waiting)
        run_id = self._begin(f"{self.name}-{number}", {"workflowId": "ask"})
        if self._chance.random() < 0.1:
            self.waiting.add(run_id)
            return
        action = self._chance.choice(list(self.ENDS))
        path = f"/v1/runs/{run_id}/interrupts/gate"
        status, answer = self._ask("POST", path, {"resumeValue": {"action": action}})
        if status == 200 or answer.get("details", {}).get("action") == action:
            self.resolved[run_id] = action
        else:
            self.trouble.append(f"{run_id}: {status} {answer}")
        time.sleep(self._chance.random() * 0.01)
