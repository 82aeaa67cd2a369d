"""Bare SQLite with full sync: what one commit per append gives, and what sharing commits gives."""

import asyncio
from time import perf_counter

import uvloop

from bench.bare import Writer
from bench.lab import Figures, Lab, of
from bench.table import Row, row

ROW = b"x" * 320  # a usual event


def measure(lab: Lab) -> list[Row]:
    def at(clients: int, grouped: bool) -> Figures:
        file = str(lab.path("commits.db"))
        return uvloop.run(_appends(file, clients, grouped, lab.seconds / 2))

    alone, shared = lab.in_turn(lambda: at(64, False), lambda: at(64, True))
    return [
        row("bare SQLite, a commit for each append", "appends/s", of(alone, "rate")),
        row("bare SQLite, 64 share commits", "appends/s", of(shared, "rate")),
    ]


async def _appends(file: str, clients: int, grouped: bool, seconds: float) -> Figures:
    writer = Writer(file, grouped)
    await writer.append([ROW])
    count = 0
    until = perf_counter() + seconds

    async def client() -> None:
        nonlocal count
        while perf_counter() < until:
            await writer.append([ROW])
            count += 1

    started = perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    elapsed = perf_counter() - started
    writer.close()
    return {"rate": count / elapsed}
