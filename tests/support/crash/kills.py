"""Sudden deaths: how many, when, and what must be whole afterwards."""

import os
import random
import time
from pathlib import Path

from tests.support import processes
from tests.support.servers import ServerProcess, server_environment

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
        time.sleep(chance.uniform(0.01, 0.3))
        host.kill()
    host.start()


def verify(database: Path) -> None:
    found = processes.run(
        "db", "verify", database, folder=database.parent, environment=server_environment()
    )
    assert found.code == 0, found.out + found.err
