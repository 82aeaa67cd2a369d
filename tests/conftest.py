"""Fixtures for every test: real server processes on free ports."""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.support.servers import (
    STRICT,
    WORKFLOWS,
    ServerProcess,
    openwop_folder,
    server_environment,
    trial_server,
)

#: an installed Moot brings the first by itself; a tree that is not installed names it
pytest_plugins = [
    "moot.testing.plugin",
    "pytester",
    "tests.support.api.fixtures",
    "tests.support.engine.fixtures",
]

# A property holds or it does not; how long a machine takes to show it says nothing. The examples
# are the same on every machine, so that one tree gives one answer; `make explore` seeks new ones.
settings.register_profile(
    "moot", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile(
    "explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=1000
)
settings.load_profile("explore" if os.environ.get("MOOT_EXPLORE") else "moot")
if not os.environ.get("MOOT_EXPLORE"):
    # Hypothesis also tries constants that stand in the modules imported so far, and which those
    # are is a matter of the tests this process had before.
    providers._get_local_constants = lambda: providers._local_constants

# A thousand processes start in the course of all tests: each would compile all of Moot anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What a shell starts in the background is deaf to Ctrl-C, and so would be all that is started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: Files that are in memory, where there is room. Nothing here can tell it from a disk but by the
#: time that syncing takes: the tests kill processes, never the machine.
MEMORY = Path("/dev/shm")
ROOM = 1 << 30
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("TMPDIR", str(MEMORY))
    tempfile.tempdir = None  # so that it is looked up again


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not (STRICT or openwop_folder()):
        terminalreporter.write_line(
            "SKIPPED tests/published: it needs the published schemas and fixtures; "
            "set MOOT_OPENWOP_DIR to their folder."
        )


ServerFactory = Callable[..., ServerProcess]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerFactory]:
    """``server(*arguments, **environment)`` starts one more; all end with the test."""
    started: list[ServerProcess] = []

    def start(*arguments: str, folder: Path | None = None, **environment: str) -> ServerProcess:
        place = folder or tmp_path_factory.mktemp("server")
        process = ServerProcess(place, list(arguments), server_environment(**environment))
        started.append(process)
        return process

    yield start
    for process in started:
        if process.process.poll() is None:
            process.kill()


@pytest.fixture(scope="session")
def conformance_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One host under test, shared by the tests that only talk to it."""
    with trial_server(tmp_path_factory.mktemp("conformance"), WORKFLOWS) as process:
        yield process


@pytest.fixture
def within_a_day() -> None:
    """What is counted by the day (UTC) is not counted on two: whoever would begin in the last two
    minutes of one begins in the next."""
    left = 86_400 - time.time() % 86_400
    if left < 120:
        time.sleep(left + 1)
