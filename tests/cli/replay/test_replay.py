"""moot replay: the same again, without asking or calling anybody."""

import json
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from moot.store.hash_chain import chain_scope as where
from moot.store.hash_chain import hash_event
from tests.support.cli.commands import SERVER_ARGUMENTS, Cli, write_flows
from tests.support.cli.runs import answered, events, finished, newest, supervised, talked, waiting
from tests.support.servers import ServerProcess, server_environment


def order(moot: Cli, run_id: str) -> list[tuple[str, object]]:
    return [(event["type"], event.get("nodeId")) for event in events(moot, run_id)]


@pytest.mark.parametrize("flow", ["hello", "breaks", "mails", "parent"])
def test_a_replay_is_a_run_with_the_same_events(moot: Cli, flow: str) -> None:
    source = finished(moot, flow)
    done = moot("replay", source)
    copy, said, end = done.lines()[0].split("\t")
    assert (done.code, said) == (0, f"replay of {source}")
    assert end.startswith("✗ failed" if flow == "breaks" else "✓ completed")
    assert copy != source
    assert order(moot, copy) == order(moot, source)


def test_an_answer_is_given_again(moot: Cli) -> None:
    source = answered(moot, "reject", comment="no")
    found = json.loads(moot("replay", source, "--json").out)
    assert (found["sourceRunId"], found["mode"], found["status"]) == (source, "replay", "failed")
    assert found["diverged"] == []


def test_on_a_terminal_ids_are_short(moot: Cli) -> None:
    source = finished(moot, "hello")
    assert f"  replay of {source[:12]}  " in moot.on_terminal("replay", source).out


@pytest.mark.parametrize("flow", ["hello", "breaks", "flaky", "mails", "parent"])
def test_a_verified_run_is_identical_and_no_run_is_made(moot: Cli, flow: str) -> None:
    source = finished(moot, flow)
    count = len(events(moot, source))
    last = newest(moot)
    done = moot("replay", source, "--verify")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"replayed {count} events, 0 model calls, identical ✓\n"
    assert newest(moot) == last


def test_runs_that_wait_talk_or_have_workers_are_verified_too(moot: Cli) -> None:
    for run_id in (waiting(moot, "asks"), talked(moot, "one", "two"), supervised(moot)):
        found = json.loads(moot("replay", run_id, "--verify", "--json").out)
        assert (found["identical"], found["events"]) == (True, len(events(moot, run_id)))


def test_what_is_not_there_cannot_be_said_again(moot: Cli) -> None:
    for words in (("zz9",), ("run_" + "a" * 20,), ("run_" + "a" * 20, "--verify")):
        assert moot("replay", *words).code == 5


def meddle(file: Path, old: str, new: str, chained: bool) -> None:
    """Changes what events say in the file itself; ``chained``: and the hashes that tell."""
    with closing(apsw.Connection(str(file))) as db:
        db.execute("UPDATE events SET body = CAST(replace(body, ?, ?) AS BLOB)", (old, new))
        for n, tenant, run_id in db.execute("SELECT n, tenant, run_id FROM heads").fetchall():
            log = db.execute("SELECT sequence, body FROM events WHERE n = ? ORDER BY 1", (n,))
            mark = b""
            for sequence, body in log.fetchall() if chained else ():
                mark = hash_event(mark, where(tenant, run_id), sequence, body)
                db.execute("UPDATE events SET hash = ? WHERE (n, sequence) = (?, ?)",
                           (mark, n, sequence))  # fmt: skip
                db.execute("UPDATE heads SET hash = ? WHERE n = ?", (mark, n))


@pytest.mark.parametrize("chained", [False, True])
def test_a_log_that_is_not_as_it_was_worked_out_is_found_out(tmp_path: Path, chained: bool) -> None:
    write_flows(tmp_path)
    server = ServerProcess(tmp_path, SERVER_ARGUMENTS, server_environment())
    try:
        moot = Cli(tmp_path)
        source = finished(moot, "hello", name="Ada")
        assert server.stop() == 0
        meddle(tmp_path / "moot.db", '"next":"Ada"', '"next":"Eve"', chained)
        server.start()
        done = moot("replay", source, "--verify")
        assert (done.code, done.err) == (1, "")
        said, first, expected, found = done.lines()
        assert said == "replayed 7 events, 0 model calls, not identical ✗"
        assert first.startswith("first difference at #2: ")
        assert expected.startswith("  expected  ") and ("Ada" in expected) == chained
        assert found.startswith("  found     ") and ("Eve" in found) == chained
        told = json.loads(moot("replay", source, "--verify", "--json").out)
        assert (told["identical"], told["first"]["sequence"]) == (False, 2)
    finally:
        server.kill()


def test_a_replay_that_goes_another_way_says_where(tmp_path: Path) -> None:
    write_flows(tmp_path)
    server = ServerProcess(tmp_path, SERVER_ARGUMENTS, server_environment())
    try:
        moot = Cli(tmp_path)
        source = finished(moot, "hello", name="Ada")
        assert server.stop() == 0
        kinds = ('"type":"variable.changed"', '"type":"log.appended"')
        meddle(tmp_path / "moot.db", *kinds, chained=True)
        server.start()
        done = moot("replay", source)
        assert done.code == 1
        assert done.lines()[1] == "it went another way than its source at #2 (type-mismatch)"
    finally:
        server.kill()
