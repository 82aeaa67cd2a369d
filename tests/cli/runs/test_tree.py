"""moot tree: the workers and the forks of a run, theirs, and so on."""

import json
import re

from moot.cli.runs.tree import MAX_DEPTH
from tests.support.cli.commands import Cli
from tests.support.cli.runs import (
    ask,
    finished,
    place,
    replayed,
    shown,
    supervised,
    waiting,
    worker_of,
)

COLOURS = re.compile("\x1b\\[[0-9;]*m")


def test_workers_and_forks_hang_where_they_came_from(moot: Cli) -> None:
    top = supervised(moot)
    worker, at = worker_of(moot, top), place(moot, top, "node.dispatched")
    late, early = replayed(moot, top, at + 5), replayed(moot, top, 2)
    again, deep = replayed(moot, late), replayed(moot, worker, 3)
    rows = [line.split("\t") for line in moot("tree", top).lines()]
    assert [row[:4] for row in rows] == [
        ["0", "run", "-", top],
        ["1", "replay", "1", early],
        ["1", "child", str(at), worker],
        ["2", "replay", "2", deep],
        ["1", "replay", str(at + 4), late],
        ["2", "replay", "-", again],
    ]
    assert [row[4:] for row in rows[:4]] == [
        ["supervised", "completed", "-", "-"],
        ["supervised", "completed", top, "-"],
        ["hello", "completed", top, "-"],
        ["hello", "completed", worker, "-"],
    ]


def test_a_terminal_gets_a_drawing_that_fits(moot: Cli) -> None:
    top = supervised(moot)
    worker, at = worker_of(moot, top), place(moot, top, "node.dispatched")
    inner, last = replayed(moot, worker, 3), replayed(moot, top, at + 5)
    screen = COLOURS.sub("", moot.on_terminal("tree", top, columns=80).out).splitlines()
    assert screen == [
        f"{top[:12]}  supervised  ✓ completed",
        f"├─ #{at} {worker[:12]}  hello  ✓ completed",
        f"│  └─ #2 {inner[:12]}  replay  ✓ completed",
        f"└─ #{at + 4} {last[:12]}  replay  ✓ completed",
    ]
    narrow = COLOURS.sub("", moot.on_terminal("tree", top, columns=30).out).splitlines()
    assert all(len(line) <= 30 for line in narrow)


def test_the_top_says_where_it_comes_from_itself(moot: Cli) -> None:
    top = supervised(moot)
    worker = worker_of(moot, top)
    assert f"child of {top}" in moot.on_terminal("tree", worker).out
    copy = replayed(moot, worker, 3)
    assert f"replay of {worker} at #2" in moot.on_terminal("tree", copy).out


def test_json_is_nested_and_says_whether_it_is_all(moot: Cli) -> None:
    top = finished(moot, "parent")
    found = json.loads(moot("tree", top, "--json").out)
    [child] = found["below"]
    assert (found["runId"], found["kind"], found["complete"]) == (top, "run", True)
    assert (child["kind"], child["at"], child["parentRunId"]) == ("child", 2, top)
    assert (child["below"], child["complete"]) == ([], True)


def test_more_than_is_shown_is_said(moot: Cli) -> None:
    top = finished(moot, "hello")
    for _ in range(4):
        replayed(moot, top)
    done = moot("tree", top, "--limit", 3)
    assert len(done.lines()) == 3
    assert done.err == f"There are more: moot tree {top} --limit 12\n"
    whole = moot("tree", top, "--limit", 5)
    assert (len(whole.lines()), whole.err) == (5, "")
    assert "└─ …" in moot.on_terminal("tree", top, "-n", 2).out
    assert json.loads(moot("tree", top, "-n", 1, "--json").out)["complete"] is False


def test_a_run_alone_is_a_tree(moot: Cli) -> None:
    run_id = finished(moot, "hello")
    assert moot("tree", "@last").lines() == [f"0\trun\t-\t{run_id}\thello\tcompleted\t-\t-"]


def test_a_run_that_is_not_there_has_no_tree(moot: Cli) -> None:
    for name in ("zz9", "run_" + "a" * 20):
        done = moot("tree", name)
        assert (done.code, "See: moot run list" in done.err) == (5, True)


def test_a_chain_of_forks_is_followed_to_a_bound(moot: Cli) -> None:
    chain = [finished(moot, "hello")]
    for _ in range(MAX_DEPTH + 1):
        chain.append(replayed(moot, chain[-1]))
    done = moot("tree", chain[0], "-n", 1000)
    assert [line.split("\t")[3] for line in done.lines()] == chain[: MAX_DEPTH + 1]
    assert done.err == f"There are more: moot tree {chain[MAX_DEPTH]}\n"


def test_a_worker_that_lives_is_forked_with_its_parent(moot: Cli) -> None:
    top = waiting(moot, "asks-below")
    worker = worker_of(moot, top)
    last = shown(moot, top)["metrics"]["eventCount"] - 1
    branch = ask(moot, "POST", f"/v1/host/moot/runs/{top}:fork", {"fromSeq": last + 1})["runId"]
    twin, at = worker_of(moot, branch), place(moot, branch, "moot.child.forked")
    rows = [line.split("\t")[:4] for line in moot("tree", top).lines()]
    assert {row[3] for row in rows} == {top, worker, branch, twin}
    assert ["2", "child", str(at), twin] in rows
    assert [line.split("\t")[3] for line in moot("tree", worker).lines()] == [worker, twin]
    assert f"child {worker} goes on as {twin}" in moot("run", "tail", branch, "--no-follow").out
