"""moot thread: begun, steered and taken back from the command line, against a real server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cli.commands import Cli
from tests.support.cli.councils import write_agents
from tests.support.servers import ServerProcess, server_environment


@pytest.fixture(scope="module")
def inn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("control")
    write_agents(folder)
    process = ServerProcess(folder, [], server_environment())
    yield process
    process.stop()


@pytest.fixture
def moot(inn: ServerProcess) -> Cli:
    return Cli(inn.folder)


def begun(moot: Cli, *words: str) -> str:
    made = moot("thread", "new", "Tea", *words)
    assert made.code == 0, made.err
    return made.lines()[0]


def shown(moot: Cli, thread: str) -> dict[str, Any]:
    return dict(json.loads(moot("thread", "show", thread, "--json").out))


def test_a_thread_is_begun_with_a_title_with_others_and_with_words(moot: Cli) -> None:
    new = moot("key", "create", "--name", "new", "--tenant", "new", "--json")
    nothing = moot.on_terminal("thread", "list", MOOT_KEY=json.loads(new.out)["key"])
    assert "thread new TITLE" in nothing.out
    made = moot("thread", "new", "Tea", "--with", "ada, rex", "--say", "Green or black?")
    assert "no agent 'rex'" in made.err and "ada" not in made.err
    [thread] = made.lines()
    told = shown(moot, thread)
    assert told["title"] == "Tea"
    assert list(told["floor"]["members"]) == ["host:ada", "host:rex"]
    assert told["floor"]["outside"] == ["host:rex"]
    assert "Green or black?" in moot("thread", "export", thread).out
    assert moot("thread", "new", " ").code == 2


def test_what_is_said_to_nobody_is_said_with_a_warning_of_who_is_there(moot: Cli) -> None:
    thread = begun(moot, "--with", "bo,cy")
    for words in (("x", "--to", "zork"), ("@zork hi",), ("x", "--to", "zork", "--json")):
        said = moot("say", thread, *words)
        assert said.code == 0
        assert "obody here is called " in said.err + said.out
        assert "there are bo, cy" in said.err + said.out
    assert moot("say", thread, "@user, and @bo: ask bo@example.org").err == ""
    said = json.loads(moot("say", thread, "x", "--to", "Builder", "--json").out)
    assert said["to"] == "bo" and "warning" not in said


def test_a_control_that_changes_nothing_says_so_and_fails(moot: Cli) -> None:
    thread = begun(moot, "--with", "bo")
    for words in (("prod", "zz"), ("mute", "bo", "zz"), ("uninvite", "zz"), ("unmute", "cy")):
        verb, *names = words
        done = moot("thread", verb, thread, *names)
        assert done.code == 1 and done.out == "", done
        assert names[-1] in done.err
    assert moot("thread", "unmute", thread, "bo").code == 0
    asked = moot("thread", "invite", thread, "dee", "rex")
    assert asked.code == 0 and "no agent 'rex'" in asked.err and "'dee'" not in asked.err


def test_everything_a_control_can_say_is_a_command_and_can_be_taken_back(moot: Cli) -> None:
    assert "nothing to take back" in moot("thread", "undo", begun(moot)).err
    thread = begun(moot, "--with", "bo")
    before = shown(moot, thread)["state"]
    for words in (
        ("ttl", "10m"), ("discussion", "on"), ("auto", "on"), ("pause",), ("mute", "bo"),
        ("uninvite", "bo"),
    ):  # fmt: skip
        verb, *more = words
        assert moot("thread", verb, thread, *more).code == 0
        assert shown(moot, thread)["state"] != before
        taken = moot("thread", "undo", thread)
        assert taken.code == 0 and ": taken back: you " in taken.out, taken
        after = shown(moot, thread)["state"]
        after["participants"]["invited"][0] |= before["participants"]["invited"][0]
        assert after == before
    moot("thread", "mode", thread, "large")
    assert shown(moot, thread)["floor"]["mode"] == "large"
    assert shown(moot, thread)["floor"]["limits"]["consecutive"] == 12
    assert moot("thread", "ttl", thread, "soon").code == 2
    moot("thread", "ttl", thread, "10m")
    moot("thread", "ttl", thread, "off")
    assert shown(moot, thread)["state"]["ttl_until"] is None
    assert moot("thread", "done", thread).code == 0
    assert shown(moot, thread)["state"]["done"] == ["user"]


def test_a_thread_is_found_by_any_beginning_of_its_id_with_or_without_what_it_begins_with(
    moot: Cli,
) -> None:
    thread = begun(moot)
    for name in (thread, thread[:11], thread[3:], thread[3:11]):
        assert shown(moot, name)["threadId"] == thread
    lost = moot("thread", "show", "pricing")
    assert lost.code == 5 and "no thread starts with 'pricing'" in lost.err
    assert "thread list" in lost.err


def test_mistakes_are_told_in_the_words_of_the_command_line(moot: Cli, inn: ServerProcess) -> None:
    thread = begun(moot, "--with", "bo")
    [task] = moot("say", thread, "Count.", "--to", "bo", "--task").lines()
    file = str(inn.folder / "tea.bundle")
    moot("thread", "export", thread, "-f", "bundle", "-o", file)
    for words, code, said in (
        (("say", thread, "x", "--task"), 2, "--to NAME"),
        (("say", thread, "x", "--result"), 2, "--reply-to EVENT"),
        (("say", thread, "x", "--result", "--reply-to", f"{task}9"), 1, "is no open task here"),
        (("thread", "rename", thread, " "), 2, "say how it is called"),
        (("thread", "rename", thread, "x" * 257), 1, "title has at most 256 characters"),
        (("thread", "import", file), 1, f"{thread} is here already"),
        (("thread", "mute", thread, ""), 2, "is no name"),
        (("thread", "invite", thread, "a b"), 2, "is no name"),
        (("api", "POST", "/threads", "-d", '{"titel":"x"}'), 1, "Did you mean `title`?"),
    ):
        done = moot(*words)
        assert done.code == code and said in done.err + done.out, done
