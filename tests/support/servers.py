"""Real server processes on free ports, and what tests say when something is not here."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.support import processes
from tests.support.processes import ROOT as ROOT
from tests.support.processes import server_environment as server_environment

#: the workflows of a host under trial: what the protocol's fixtures do, in the project's own words
WORKFLOWS = ROOT / "tests" / "support" / "workflows"
#: whether a missing component fails a test instead of skipping it
STRICT = os.environ.get("MOOT_STRICT") == "1"
BOOT_KEY = "hk_test_boot_0123456789"
#: guards against hanging; how quick a machine is says nothing
START_SECONDS = 60
STOP_SECONDS = 45


def component_missing(reason: str) -> NoReturn:
    """Skips the test; under MOOT_STRICT=1, where everything must be there, fails it."""
    if STRICT:
        pytest.fail(f"{reason} (and MOOT_STRICT=1 allows no skipping)")
    pytest.skip(reason)


def openwop_folder() -> Path | None:
    """The published schemas and fixtures, if they are at hand."""
    given = os.environ.get("MOOT_OPENWOP_DIR")
    folder = Path(given) if given else ROOT.parent / "shared" / "openwop"
    return folder.resolve() if (folder / "fixtures").is_dir() else None


class ServerProcess:
    """A real ``moot serve``. It keeps its port and its file over kill, stop and restart."""

    def __init__(self, folder: Path, arguments: list[str], environment: dict[str, str]) -> None:
        self.folder = folder
        self.database = folder / "moot.db"
        self.log = folder / "server.log"
        self._banner = folder / "banner.txt"
        self._arguments = arguments
        self._environment = environment
        self.port = self._reserved()
        self.start()

    def start(self) -> None:
        """Returns when /healthz answers."""
        self.launch()
        self.url = self._until(lambda: _address(self._banner.read_text()), "print its address")
        self.port = int(self.url.rsplit(":", 1)[1])
        self._until(lambda: self._healthy(), "answer /healthz")

    def _reserved(self) -> int:
        """A free port that nobody else is given, not even while this server is down: it is bound
        here and never listened on, which a listener that may reuse addresses does not mind."""
        if sys.platform != "linux":
            return 0
        place = socket.socket()
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", 0))
        weakref.finalize(self, place.close)
        return int(place.getsockname()[1])

    def launch(self) -> None:
        """Starts the process and waits for nothing."""
        words = ["serve", self.database, "--port", self.port, *self._arguments]
        with self._banner.open("w") as out, self.log.open("a") as log:
            self.process = processes.start(
                *words, folder=self.folder, environment=self._environment,
                files=(processes.NOTHING, out.fileno(), log.fileno()),
            )  # fmt: skip

    @property
    def key(self) -> str:
        """The local administrator's key, or the bootstrap key where one was given."""
        given = self._environment.get("MOOT_BOOTSTRAP_KEY")
        return given or Path(f"{self.database}.key").read_text().strip()

    def stop(self, seconds: float = STOP_SECONDS) -> int:
        """SIGTERM; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """SIGKILL: nothing is tidied up."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Stop if it runs, then start on the same port and file."""
        self.stop()
        self.start()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        key: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, parsed body and headers of one call."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        call = urllib.request.Request(
            self.url + path,
            method=method,
            data=data.encode() if isinstance(data, str) else data,
            headers={"Authorization": f"Bearer {key or self.key}", **(headers or {})},
        )
        try:
            with urllib.request.urlopen(call, timeout=60) as answer:
                return answer.status, _parsed(answer.read()), dict(answer.headers)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, _parsed(refusal.read()), dict(refusal.headers)

    def _healthy(self) -> bool:
        try:
            return self.request("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def _until(self, probe: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if found := probe():
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        self.process.kill()
        self.process.wait()
        pytest.fail(f"The server did not {what}. Its log:\n{self.log.read_text()[-4000:]}")


@contextlib.contextmanager
def trial_server(folder: Path, workflows: Path) -> Iterator[ServerProcess]:
    """A host under trial that offers the workflows of a folder."""
    environment = server_environment(
        MOOT_BOOTSTRAP_KEY=BOOT_KEY, MOOT_DEMO_WPS="0", MOOT_OPENWOP_DIR=str(workflows)
    )
    process = ServerProcess(folder, ["--conformance"], environment)
    yield process
    process.stop()


def _address(banner: str) -> str | None:
    words = banner.split()
    return next((word for word in words if word.startswith("http://")), None)


def _parsed(body: bytes) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(body)
    return body
