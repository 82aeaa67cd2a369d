"""What the bench measures of threads: each part once, for a moment. How fast it was is no test."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from real_server import ROOT


def test_messages_into_threads_and_their_deliveries_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from bench import lab, table, threads

    short = lab.Lab(tmp_path, quick=True)
    short.rounds, short.seconds = 1, 0.0
    monkeypatch.setattr(threads, "THREADS", (1, 65))
    monkeypatch.setattr(threads, "STREAMS", (1, 3))
    rows = threads.measure(short)
    named = {row.name for row in rows}
    assert {
        "messages, 64 clients, 1 thread",
        "messages, 64 clients, 65 threads",
        "messages, 64 clients, 1 thread, no key",
        "post to receipt, 1 stream of a thread, p50",
        "post to receipt, 3 streams of a thread, p50",
    } <= named
    assert all(row.median >= 0 and row.ratio is not None for row in rows)
    assert "deliver" in table.text(rows)


def test_two_trees_are_measured_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from bench import comparison, lab, table

    short = lab.Lab(tmp_path, quick=True, beside=ROOT / "src")
    short.rounds, short.seconds = 1, 0.0
    pairs = comparison.compare(short, ["runs"], bar=0.0)
    assert [pair.name for pair in pairs] == [
        "noop runs, 64 client(s), rate",
        "noop runs, 64 client(s), server CPU",
        "noop runs, 1 client(s), rate",
        "noop runs, 1 client(s), server CPU",
    ]
    assert all(pair.met == "yes" and pair.low <= pair.ratio <= pair.high for pair in pairs)
    assert "spread" in table.pair_text(pairs)


def test_a_bar_is_missed_only_when_the_whole_spread_is_below_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from bench.table import pair

    assert pair("rate", "/s", [90, 100, 80], [100, 100, 100], "more", 0.95).met == "spread"
    assert pair("rate", "/s", [90, 94, 80], [100, 100, 100], "more", 0.95).met == "NO"
    assert pair("cost", "µs", [100, 100], [100, 90], "less", 0.95).met == "yes"
    assert pair("start", "s", [0.7, 0.7, 0.5], [1.0, 1.0, 1.0], "less", 0.95, 0.6).met == "spread"


async def test_a_script_that_is_over_before_its_connection_is_made_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from bench import wire

    def over() -> Generator[bytes, bytes, None]:
        yield from ()

    def nobody(reader: Any, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(nobody, "127.0.0.1", 0)
    async with server, asyncio.timeout(60):
        await wire.play(server.sockets[0].getsockname()[1], [over(), over()])
