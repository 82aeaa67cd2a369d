"""moot inbox: what waits for a person, and what comes while one looks."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.commands import SERVER_ARGUMENTS, Cli, begun, write_flows
from tests.support.servers import ServerProcess, server_environment


@pytest.fixture
def quiet(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of which nobody wants anything."""
    write_flows(tmp_path)
    server = ServerProcess(tmp_path, SERVER_ARGUMENTS, server_environment())
    yield server
    server.kill()


def test_a_program_gets_numbered_rows_and_whole_ids(moot: Cli) -> None:
    runs = [begun(moot, "asks"), begun(moot, "wonders")]
    rows = [line.split("\t") for line in moot("inbox").lines()]
    assert [row[0] for row in rows] == [str(number) for number in range(1, len(rows) + 1)]
    mine = [row for row in rows if row[4] in runs]
    assert [(row[1], row[3], *row[5:]) for row in mine] == [
        ("approval", "-", "asks/gate", "approve reject refine edit", "Ship it?"),
        ("clarification", "-", "wonders/question", "answer", "Which colour?"),
    ]
    items = json.loads(moot("inbox", "--json").out)
    assert [[str(item["number"]), item["runId"]] for item in items] == [
        [row[0], row[4]] for row in rows
    ]


def test_a_terminal_gets_a_table_that_keeps_number_and_question_when_it_is_narrow(
    moot: Cli,
) -> None:
    begun(moot, "asks-two")
    wide = moot.on_terminal("inbox", columns=160).out
    for word in ("#", "KIND", "ASKED BY", "ACTIONS", "asks-two/gate", "due in 24 h"):
        assert word in wide
    narrow = moot.on_terminal("inbox", columns=60).out
    assert "ACTIONS" not in narrow
    for word in ("#", "KIND", "RUN", "QUESTION", "Both?"):
        assert word in narrow


def test_what_is_asked_cannot_draw_on_the_screen(moot: Cli) -> None:
    title = r'"Delete all\e[2K\rKeep all\u202e?"'
    step = f"{{id: gate, node: core.approvalGate, config: {{title: {title}}}}}"
    (moot.folder / "sly.yaml").write_text(f"workflow: sly\nsteps: [{step}]")
    done = moot("run", "sly.yaml")
    assert done.code == 4, done.err
    for said in (done.err, moot("inbox").out, moot.on_terminal("inbox", columns=160).out):
        assert "Delete all\ufffd[2K Keep all" in said
        assert "\x1b[2K" not in said
        assert "\u202e" not in said
    assert moot("reject", "@last").code == 0


def test_an_empty_inbox_says_so(quiet: ServerProcess) -> None:
    moot = Cli(quiet.folder)
    assert "Nothing waits for a person." in moot.on_terminal("inbox").out
    assert moot("inbox").out == ""
    assert json.loads(moot("inbox", "--json").out) == []
    done = moot("approve", 1)
    assert (done.code, done.err) == (5, "error: the inbox is empty: nothing waits for a person.\n")


def test_watching_shows_what_comes_also_over_a_restart(quiet: ServerProcess) -> None:
    moot = Cli(quiet.folder)
    first = begun(moot, "asks")
    watcher = subprocess.Popen(
        [sys.executable, "-m", "moot.cli", "inbox", "--watch", "--json"], cwd=quiet.folder,
        env=server_environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert watcher.stdout is not None
        seen: list[Any] = [json.loads(watcher.stdout.readline())]
        second = begun(moot, "wonders")
        seen.append(json.loads(watcher.stdout.readline()))
        quiet.restart()
        assert moot("approve", first).code == 0
        third = begun(moot, "picks")
        seen.append(json.loads(watcher.stdout.readline()))
        item_id = undeliverable(moot)
        notice = json.loads(watcher.stdout.readline())
    finally:
        watcher.kill()
        watcher.communicate()
    assert [item["runId"] for item in seen] == [first, second, third]
    assert [item["number"] for item in seen] == [1, 2, 2]
    assert (notice["kind"], notice["id"]) == ("dead-letter", item_id)
    said = moot("inbox").lines()[-1]
    assert said.startswith("quotes: Not delivered: ")
    assert said.endswith(f" · moot item redeliver {item_id} / drop {item_id}")
    assert item_id in moot("item", "list", "--state", "dead").out
    assert moot("item", "drop", item_id).code == 0
    assert "Not delivered" not in moot("inbox").out


def undeliverable(moot: Cli) -> str:
    """An item that no run can be begun with."""
    flow = "workflow: picky\ninputs: {amount: int}\nsteps: [{set: {a: 1}}]\n"
    (moot.folder / "picky.yaml").write_text(flow)
    assert moot("flow", "add", "picky.yaml").code == 0
    assert moot("queue", "bind", "quotes", "--flow", "picky", "--tries", "1").code == 0
    item_id, status = moot("item", "push", "quotes", "--subject", "x").out.split()
    assert status == "dead"
    return item_id
