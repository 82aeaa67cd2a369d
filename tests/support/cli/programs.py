"""Programs that join threads, for tests: written to a folder, started as people start them."""

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support import processes
from tests.support.cli.commands import Cli
from tests.support.servers import ServerProcess, server_environment

PATIENCE = 60.0
THREADS = "/v1/host/moot/threads"

PROGRAMS = {
    "answers": "import os, sys\ntold = sys.stdin.read()\n"
    "print('I heard', 'Do we raise prices?' in told, os.listdir('.'),"
    " [n for n in os.environ if n.startswith('MOOT')])\n",
    "crashes": "import sys\nsys.stderr.write('first\\nno such wheel @ada\\n')\nsys.exit(7)\n",
    "hangs": "import time\ntime.sleep(600)\n",
    "babbles": "import sys\nsys.stdout.buffer.write(b'\\xff\\xfe ' + b'x' * 300000)\n",
    "waits": "import pathlib, sys, time\ntold = sys.stdin.read()\n"
    "pathlib.Path(sys.argv[1]).touch()\n"
    "while not pathlib.Path(sys.argv[2]).exists():\n    time.sleep(0.02)\nprint('At last.')\n",
    "leaves-a-child": "import subprocess, sys\nsys.stdin.read()\n"
    "nothing = dict.fromkeys(('stdin', 'stdout', 'stderr'), subprocess.DEVNULL)\n"
    "child = subprocess.Popen(['sleep', '600'], start_new_session=True, **nothing)\n"
    "print(child.pid)\n",
    "says-twice": "import json, sys\nfor line in sys.stdin:\n"
    "    text = json.loads(line)['event']['content']\n"
    "    print(json.dumps({'content': f'yes: {text}'}))\n"
    "    print(json.dumps({'content': f'and: {text}'}), flush=True)\n",
    "echoes": "import json, sys\nlate = ''\nfor line in sys.stdin:\n"
    "    told = json.loads(line)\n"
    "    said = {'seq': told['seq'], 'content': 'now: ' + told['event']['content']}\n"
    "    print(late + json.dumps(said), flush=True)\n"
    "    late = json.dumps({**said, 'content': 'late'}) + '\\n'\n",
    "digs": "import sys\nfor line in sys.stdin:\n    print('[' * 200000, flush=True)\n",
    "counts": "import json, sys\nfor number, line in enumerate(sys.stdin, 1):\n"
    "    told = json.loads(line)\n"
    "    if 'fall' in told['event']['content']:\n        sys.exit(3)\n"
    "    text = told['event']['content']\n"
    "    print(json.dumps({'content': f'{number}: {text}'}), flush=True)\n",
}


def run(room: "Room", name: str) -> str:
    """How one of them is started."""
    return f"{sys.executable} {room.host.folder / name}.py"


def write_programs(folder: Path) -> None:
    for name, text in PROGRAMS.items():
        (folder / f"{name}.py").write_text(text)


def until(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError("it never came")


class Room:
    """A thread on a server, and programs in it."""

    def __init__(self, host: ServerProcess, *agents: str) -> None:
        self.host, self.moot = host, Cli(host.folder)
        body = {"title": "Prices", "participants": list(agents)}
        self.id = str(self._call("POST", THREADS, body)["threadId"])
        self.joined: list[Any] = []
        self._complaints = host.folder / f"{self.id}.log"

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        given = None if body is None else json.dumps(body).encode()
        status, answer, _ = self.host.request(method, path, given)
        assert status < 300, answer
        return answer

    def join(self, name: str, *words: str, **environment: str) -> Any:
        """Started, and there: it has been invited and asks what is next."""
        with self._complaints.open("a") as told:
            made = processes.start(
                "join", self.id, "--as", name, *words, folder=self.host.folder,
                files=(processes.NOTHING, processes.NOTHING, told.fileno()),
                environment=server_environment(**environment),
            )  # fmt: skip
        self.joined.append(made)
        until(lambda: name in self.presence())
        return made

    def complaints(self) -> str:
        """What those who joined have told where they were started."""
        return self._complaints.read_text()

    def steer(self, content: dict[str, Any]) -> None:
        self._call("POST", f"{THREADS}/{self.id}/controls", {"content": content})

    def presence(self) -> dict[str, Any]:
        return dict(self._call("GET", f"/threads/{self.id}/presence")["presence"])

    def said(self, name: str | None = None) -> list[dict[str, Any]]:
        found = self._call("GET", f"/threads/{self.id}/events")["events"]
        turns = [each for each in found if each["type"] in ("message", "task", "result")]
        return [each for each in turns if name in (None, each["from"])]

    def members(self) -> list[str]:
        state = self._call("GET", f"/threads/{self.id}/state")["state"]
        return [each["id"] for each in state["participants"]["invited"]]

    def end(self) -> None:
        for each in self.joined:
            each.send_signal(signal.SIGTERM)  # with what they run
        for each in self.joined:
            each.wait(30)
