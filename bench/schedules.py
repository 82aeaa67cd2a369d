"""How late schedules fire, from when a slot falls due until its run is on disk.

``python -m bench.schedules FILE COUNT SECONDS SPREAD`` measures one host in a process of its own.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import uvloop

from bench.lab import ROOT, Figures, Lab, node, of, workflow
from bench.table import Row, row

COUNT = 10_000
#: a slot that is on disk within this is on time for whoever reads a clock
SOON_MS = 250.0
AT_ONCE = 64


def measure(lab: Lab) -> list[Row]:
    count = COUNT // 10 if lab.quick else COUNT
    seconds = 10 if lab.quick else 30
    spread = _turned(lab, count, seconds, "spread")
    herd = _turned(lab, count, seconds, "herd")
    name = f"{count:,} schedules, each once a minute"
    return [
        row(f"{name}: fires", "1/s", of([spread], "rate")),
        row("  lateness, median", "ms", of([spread], "p50"), better="less"),
        row("  lateness, p99", "ms", of([spread], "p99"), better="less", goal=SOON_MS),
        row(f"{count:,} schedules, all at one instant: fires", "1/s", of([herd], "rate")),
        row("  lateness, p99", "ms", of([herd], "p99"), better="less"),
    ]


def _turned(lab: Lab, count: int, seconds: int, how: str) -> Figures:
    arguments = [str(lab.path("schedules.db")), str(count), str(seconds), how]
    done = subprocess.run(
        [sys.executable, "-m", "bench.schedules", *arguments],
        cwd=ROOT, env=lab.environment, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


async def _one_host(file: str, count: int, seconds: int, how: str) -> Figures:
    from moot.api.server import build_services
    from moot.clock import SystemClock
    from moot.config.settings import Settings
    from moot.core.events import iso
    from moot.store.sqlite import SqliteStore

    clock = SystemClock()
    store = await SqliteStore.open(file)
    settings = Settings(database=file, agents=str(Path(file).parent))
    services = await build_services(settings, store, clock)
    flow = workflow("bench-tick", [node("tick", "core.noop")])
    await services.host.flows.register("bench", json.dumps(flow).encode())
    late = _watched(store, clock)
    body: dict[str, Any] = {"workflowId": "bench-tick"}
    at = clock.millis() + 60_000
    if how == "spread":
        body |= {"kind": "cron", "cronExpr": "* * * * *", "jitterSeconds": 59, "overlap": "allow"}
    else:
        body |= {"kind": "once", "at": iso(at * 1000)}
    await _made(services.triggers.schedules, json.dumps(body).encode(), count)
    services.triggers.start()
    if how == "spread":
        await asyncio.sleep(62 - clock.millis() % 60_000 / 1000)  # until the first minute has begun
        late.clear()
        await asyncio.sleep(seconds)
        took = float(seconds)
    else:
        while len(late) < count:
            await asyncio.sleep(0.05)
        took = (clock.millis() - at) / 1000
    found = sorted(late)
    await services.aclose()
    return {
        "rate": len(found) / took,
        "p50": found[len(found) // 2],
        "p99": found[len(found) * 99 // 100],
    }


def _watched(store: Any, clock: Any) -> list[float]:
    """Milliseconds after its time at which each run was on disk."""
    from moot.triggers.schedules.fire_rows import fire_from_row

    late: list[float] = []
    commit = store.commit

    async def kept(batch: Any) -> None:
        await commit(batch)
        now = clock.micros() / 1000
        started = (letter for letter in batch.deliveries if letter.state == "delivered")
        late.extend(now - fire_from_row(letter).due for letter in started)

    store.commit = kept
    return late


async def _made(schedules: Any, body: bytes, count: int) -> None:
    left = iter(range(count))

    async def some() -> None:
        for _ in left:
            await schedules.make("bench", body, "bench")

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


if __name__ == "__main__":
    _, file, count, seconds, how = sys.argv
    print(json.dumps(uvloop.run(_one_host(file, int(count), int(seconds), how))))
