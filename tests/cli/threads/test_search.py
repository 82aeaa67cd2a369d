"""moot search, moot thread search, read and catch-up."""

import json

import pytest

from tests.support.cli.commands import Cli
from tests.support.servers import ServerProcess


@pytest.fixture(scope="module")
def thread(host: ServerProcess) -> str:
    """A council of three turns, closed with a decision."""
    agent = {"name": "nia", "model": "demo"}
    assert host.request("POST", "/v1/host/moot/agents", agent)[0] in (200, 201)
    asked = {"question": "Is the okapi fed?", "participants": ["nia", "x"], "title": "Okapi"}
    name = str(host.request("POST", "/v1/host/moot/councils", asked)[1]["threadId"])
    for text in ("Okapi eat leaves", "Bring leaves, then"):
        turn = {"role": "agent", "speakerId": "host:nia", "content": text}
        path = f"/v1/runs/{name}/interrupts/talk"
        assert host.request("POST", path, {"resumeValue": turn})[0] == 200
    closed = {"decision": "More leaves for the okapi"}
    assert host.request("POST", f"/v1/host/moot/threads/{name}:close", closed)[0] == 200
    return name


def kinds(moot: Cli, *words: str) -> list[str]:
    done = moot(*words)
    assert done.code == 0, done.err
    return [line.split("\t")[0] for line in done.lines()]


def test_everything_with_the_words_is_listed(moot: Cli, thread: str) -> None:
    assert kinds(moot, "search", "okapi") == ["decision", "turn", "turn", "thread"]
    assert (
        kinds(moot, "search", "leav*", "--kind", "turn", "--from", "nia", "--best") == ["turn"] * 2
    )
    [line] = moot("search", '"bring leaves"', "from:nia", "--limit", "1").lines()
    assert line.split("\t")[2:] == [thread, "2", "nia", "Bring leaves, then"]
    nothing = moot("search", "nothing", "like", "that")
    assert (nothing.code, nothing.out) == (0, "")


def test_a_search_in_threads_leaves_runs_out(moot: Cli, thread: str) -> None:
    found = json.loads(moot("thread", "search", "okapi", "--in", thread[:14], "--json").out)
    assert [each["kind"] for each in found] == ["decision", "turn", "turn", "thread"]
    assert {each["threadId"] for each in found} == {thread}
    assert moot("thread", "search", "okapi", "--in", "nowhere").code == 5


def test_a_thread_is_marked_as_read(moot: Cli, thread: str) -> None:
    assert moot("thread", "read", thread, "--show").out == f"{thread}: 3 unread\n"
    assert json.loads(moot("thread", "read", thread, "--json").out)["unread"] == 0


def test_what_was_missed_is_summed_up_for_who_asks(moot: Cli, thread: str) -> None:
    done = moot("thread", "catch-up", thread, "--from", "1", "--to", "2")
    assert done.code == 0, done.err
    assert "nia (demo) on turns 1 to 2:" in done.err and done.out.strip()
    missing = moot("thread", "catch-up", thread, "--from", "0", "--author", "nobody")
    assert missing.code == 5 and "nobody" in missing.err
