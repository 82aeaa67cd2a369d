"""Sudden deaths: how many, when, and what must be whole afterwards."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from real_server import ServerProcess, server_environment

KILLS = int(os.environ.get("MOOT_CRASH_KILLS", "12"))
SEED = int(os.environ.get("MOOT_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)
TEST_KEY = "hk_test_crash_0123456789"
#: the longest anything may take that needs no time of its own
PATIENCE = 60


def kill_once(host: ServerProcess, chance: random.Random) -> None:
    """In the middle of the work, and now and then in the middle of taking it up again."""
    time.sleep(chance.uniform(0.02, 0.5))
    host.kill()
    while chance.random() < 0.2:
        host.launch()
        time.sleep(chance.uniform(0.1, 1.0))
        host.kill()
    host.start()


def verify(database: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "moot.cli", "db", "verify", str(database)],
        env=server_environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
