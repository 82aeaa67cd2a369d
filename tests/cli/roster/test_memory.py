"""moot memory: listed, shown, forgotten."""

import json

from tests.support.cli.commands import Cli


def remembers(moot: Cli, ref: str, text: str = "Ada likes tea") -> None:
    done = moot("run", "remembers", "--input", f"ref={ref}", "--input", f"text={text}")
    assert done.code == 0, done.err


def test_memories_and_their_entries_are_listed(moot: Cli) -> None:
    remembers(moot, "list/one")
    assert "list/one\t1" in moot("memory", "list").lines()
    [line] = moot("memory", "list", "list/one").lines()
    name, _, tags, content = line.split("\t")
    assert (name, tags, content) == ("note", "tea", "Ada likes tea")
    [entry] = json.loads(moot("memory", "list", "list/one", "--json").out)
    assert entry["content"] == "Ada likes tea"
    assert moot("memory", "list", "list/one", "--tag", "coffee").out == ""
    assert moot("memory", "list", "nowhere").code == 0


def test_memory_is_listed_as_a_run_saw_it(moot: Cli) -> None:
    remembers(moot, "list/seen", "one")
    first = json.loads(moot("run", "list", "--limit", "1", "--json").out)[0]["runId"]
    remembers(moot, "list/seen", "two")
    assert "two" in moot("memory", "list", "list/seen").out
    assert "one" in moot("memory", "list", "list/seen", "--run", first).out


def test_one_entry_is_shown_with_where_it_comes_from(moot: Cli) -> None:
    remembers(moot, "show")
    done = moot("memory", "show", "show", "note")
    assert done.out == "Ada likes tea\n"
    assert "note by run_" in done.err and "tags tea" in done.err
    assert json.loads(moot("memory", "show", "show", "note", "--json").out)["tags"] == ["tea"]
    missing = moot("memory", "show", "show", "nothing")
    assert missing.code == 5 and "no entry 'nothing'" in missing.err


def test_an_entry_is_forgotten_and_a_whole_memory_only_when_said_so(moot: Cli) -> None:
    remembers(moot, "forget")
    assert moot("memory", "forget", "forget").code == 2
    assert moot("memory", "forget", "forget", "note").out == "note is forgotten\n"
    assert moot("memory", "list", "forget").out == ""
    assert moot("memory", "forget", "forget", "note").code == 5
    remembers(moot, "forget")
    done = moot("memory", "forget", "forget", "--all", "--json")
    assert json.loads(done.out) == {"ref": "forget", "forgotten": ["note"]}
