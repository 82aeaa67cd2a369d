"""moot thread against a real server: a council is closed, written down, and taken elsewhere."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli.commands import SERVER_ARGUMENTS, Cli, begun, write_flows
from tests.support.servers import ServerProcess, server_environment

DECISION = (
    "--decision", "Pilot +8 %", "--vote", "user:bo=yes", "--vote", "user:cy=no",
    "--dissent", "user:cy=too early", "--cite", "1", "--action", "bo: measure churn",
)  # fmt: skip


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Cli]:
    """Another server."""
    write_flows(tmp_path)
    server = ServerProcess(tmp_path, SERVER_ARGUMENTS, server_environment())
    yield Cli(tmp_path)
    server.stop()


@pytest.fixture
def run_id(moot: Cli) -> str:
    """A conversation in which something was said."""
    found = begun(moot, "talks")
    assert moot("answer", found, "We raise prices.", "--as", "bo").code == 0
    return found


def test_a_decision_closes_the_thread_and_stands_in_its_minutes(moot: Cli, run_id: str) -> None:
    done = moot("thread", "close", run_id, *DECISION)
    assert done.code == 0, done.err
    assert f"{run_id}~talk~1 closed with the decision" in done.out
    assert moot("run", "tail", run_id).code == 0
    minutes = moot("thread", "export", run_id).out
    for said in ("What now?", "We raise prices.", "Pilot +8 %", "too early", "measure churn"):
        assert said in minutes
    assert moot("thread", "export", run_id, "-f", "html").out.startswith("<!doctype html>")
    told = json.loads(moot("thread", "export", run_id[:14], "--json").out)
    assert told == json.loads(moot("thread", "export", run_id, "-f", "json").out)


def test_the_last_thread_is_the_newest_in_the_list_whatever_has_run_since(moot: Cli) -> None:
    moot("thread", "new", "An older one")
    new = moot("thread", "new", "Prices").lines()[0]
    assert moot("run", "hello", "-d").code == 0 and begun(moot, "talks")
    assert json.loads(moot("thread", "show", "@last", "--json").out)["threadId"] == new
    assert moot("say", "@last", "Shall we raise them?").code == 0
    assert f"thread invite {new} rex" in moot("wait", "@last", "--as", "rex").err
    assert "Shall we" in moot("thread", "export", "@last").out
    found = moot("thread", "search", "raise", "--in", "@last", "--json").out
    assert [row["threadId"] for row in json.loads(found)] == [new]
    assert json.loads(moot("run", "show", "@last", "--json").out)["workflowId"] == "talks"


def test_where_no_thread_is_the_last_one_is_not_there(elsewhere: Cli) -> None:
    begun(elsewhere, "talks")
    done = elsewhere("thread", "show", "@last")
    assert (done.code, "there is no thread yet" in done.err) == (5, True)


def test_a_thread_is_closed_without_a_word_and_only_once(moot: Cli, run_id: str) -> None:
    answer = json.loads(moot("thread", "close", run_id, "--json").out)
    assert (answer["threadId"], answer["open"]) == (f"{run_id}~talk~1", False)
    again = moot("thread", "close", run_id)
    assert (again.code, "closed" in again.err) == (1, True)


def test_a_turn_that_is_not_there_cannot_be_cited(moot: Cli, run_id: str) -> None:
    done = moot("thread", "close", run_id, "--decision", "x", "--cite", 99)
    assert (done.code, "no turn 99" in done.err) == (1, True)


def test_a_bundle_brings_the_thread_to_another_server_once(
    moot: Cli, elsewhere: Cli, run_id: str
) -> None:
    assert moot("thread", "close", run_id, *DECISION).code == 0
    bundle = elsewhere.folder / "talk.moot.jsonl"
    assert moot("thread", "export", run_id, "-f", "bundle", "-o", bundle).code == 0
    brought = elsewhere("thread", "import", bundle)
    assert (brought.code, brought.out) == (0, f"{run_id}~talk~1\n")
    assert elsewhere("thread", "export", run_id).out == moot("thread", "export", run_id).out
    again = elsewhere("thread", "import", bundle)
    assert again.code == 1
    assert again.err.startswith("error: ")
    bundle.write_text(bundle.read_text().replace("We raise", "We lower"))
    assert elsewhere("thread", "import", bundle).code == 1


def test_minutes_are_read_from_the_file_while_no_server_runs(
    moot: Cli, run_id: str, tmp_path: Path
) -> None:
    assert moot("db", "backup", tmp_path / "moot.db").code == 0
    done = Cli(tmp_path)("thread", "export", run_id)
    assert (done.code, "We raise prices." in done.out) == (0, True)
    assert done.err == "No server runs; reading moot.db itself.\n"
    assert Cli(tmp_path)("thread", "close", run_id).code == 6


def test_a_run_that_has_no_thread_is_not_found(moot: Cli) -> None:
    [run_id] = moot("run", "hello", "-d").lines()
    assert moot("thread", "export", run_id).code == 5
    assert moot("thread", "export", run_id).code == 5


def test_a_fork_of_a_conversation_in_a_run_is_named_as_that(moot: Cli, run_id: str) -> None:
    [fork] = moot("thread", "fork", f"{run_id}~talk~1").lines()
    assert fork.endswith("~talk~1") and not fork.startswith(run_id)
    assert "We raise prices." in moot("thread", "export", fork).out
