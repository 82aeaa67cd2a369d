"""moot thread: lists, looks, steers and goes on, against a real server."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cli.commands import Cli
from tests.support.cli.programs import Room, until, write_programs
from tests.support.cli.terminal import Person
from tests.support.servers import ServerProcess, server_environment


@pytest.fixture(scope="module")
def inn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("threads")
    write_programs(folder)
    process = ServerProcess(folder, [], server_environment())
    yield process
    process.stop()


@pytest.fixture
def room(inn: ServerProcess) -> Iterator[Room]:
    made = Room(inn, "rex")
    yield made
    made.end()


@pytest.fixture
def moot(inn: ServerProcess) -> Cli:
    return Cli(inn.folder)


def row(moot: Cli, thread: str, *words: str) -> list[str] | None:
    lines = [line.split("\t") for line in moot("thread", "list", *words).lines()]
    return next((line for line in lines if line[0] == thread), None)


def shown(moot: Cli, thread: str) -> dict[str, Any]:
    return dict(json.loads(moot("thread", "show", thread, "--json").out))


def test_a_list_says_who_takes_part_what_was_said_last_and_what_is_new(
    room: Room, moot: Cli
) -> None:
    moot("say", room.id, "Four percent.", "--as", "rex")
    found = row(moot, room.id)
    assert found is not None
    assert found[1:6] == ["live", "1", "1", "you rex", "rex: Four percent."]
    assert found[7] == "Prices"
    moot("thread", "read", room.id)
    moot("thread", "pause", room.id)
    found = row(moot, room.id)
    assert found is not None and found[1:4] == ["paused", "1", "0"]
    moot("thread", "resume", room.id)
    moot("thread", "archive", room.id)
    assert row(moot, room.id) is None and row(moot, room.id, "--archived")
    moot("thread", "unarchive", room.id)
    moot("thread", "rename", room.id, "Tea")
    screen = moot.on_terminal("thread", "list").out
    assert "WHO" in screen and "Tea" in screen


def test_a_thread_is_shown_and_steered(room: Room, moot: Cli) -> None:
    moot("thread", "invite", room.id, "dee", "--role", "legal")
    assert moot("thread", "mute", room.id, "dee", "--for", "10m").out.endswith("10 minutes\n")
    assert moot("thread", "mute", room.id, "dee", "5m").out.endswith("5 minutes\n")
    assert shown(moot, room.id)["state"]["muted"] == ["host:dee"]
    moot("thread", "unmute", room.id, "dee")
    moot("thread", "prod", room.id, "rex")
    due = moot("wait", room.id, "--as", "rex")
    assert due.code == 0 and "prodded" in due.err
    moot("thread", "uninvite", room.id, "dee")
    moot("say", room.id, "Count.", "--to", "rex", "--task")
    text = moot("thread", "show", room.id).out
    assert "you, Rex" in text and "task" in text and "Count." in text
    assert moot("thread", "mute", room.id, "rex", "--for", "soon").code == 2


def test_a_thread_is_linked_forked_and_taken_up_again(room: Room, moot: Cli) -> None:
    moot("say", room.id, "Do we?")
    side = moot("thread", "link", room.id, "--title", "Details").lines()[0]
    assert shown(moot, room.id)["links"][0]["threadId"] == side
    assert moot("thread", "link", room.id).code == 2
    branch = moot("thread", "fork", room.id, "--note", "what if").lines()[0]
    assert [each["content"] for each in shown(moot, branch)["events"]] == ["Do we?"]
    moot("thread", "close", room.id, "--decision", "No.")
    again = moot("thread", "reopen", room.id, "--note", "after all").lines()[0]
    assert shown(moot, again)["open"] and not shown(moot, room.id)["open"]
    assert moot("thread", "reopen", again).code == 1
    ended = moot("thread", "tail", room.id)
    assert ended.code == 0 and "Closed. Decision recorded" in ended.out


def test_a_tail_tells_of_words_and_of_who_is_thinking(room: Room, moot: Cli) -> None:
    moot("say", room.id, "Before.")
    room.join("hal", "--exec", f"{sys.executable} {room.host.folder / 'hangs.py'}")
    moot("say", room.id, "Well, Hal?", "--to", "hal")
    until(lambda: room.presence()["hal"]["state"] == "thinking")
    tailing = Person(moot.folder, "thread", "tail", room.id)
    try:
        tailing.until(r"Before\.", r"Well, Hal\?", "Hal is thinking")
        moot("thread", "close", room.id)
        assert tailing.end() == 0
    finally:
        tailing.leave()
