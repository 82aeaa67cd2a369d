"""A thread as people read it: whose words are whose, what is still to come, what was changed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import Cli
from outsiders import Room
from terminal import Person

from moot.cli.joining.mcp_tools import ThreadTools
from moot.cli.shared.client import Api
from moot.config.server_location import ServerLocation
from real_server import ServerProcess, server_environment


@pytest.fixture(scope="module")
def inn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("plain"), [], server_environment())
    yield process
    process.stop()


@pytest.fixture
def room(inn: ServerProcess) -> Room:
    return Room(inn, "rex", "cra")


@pytest.fixture
def moot(inn: ServerProcess) -> Cli:
    return Cli(inn.folder)


def post(room: Room, path: str, **body: Any) -> Any:
    status, answer, _ = room.host.request("POST", f"{path}", body)
    assert status < 300, answer
    return answer


def said(room: Room, who: str, content: Any, **more: Any) -> Any:
    return post(room, f"/threads/{room.id}/events", content=content, **{"from": who}, **more)


def followed(moot: Cli, room: Room) -> list[str]:
    """All of it, as it is followed to its end."""
    assert moot("thread", "close", room.id).code == 0
    return moot("watch", room.id, "--from-start").lines()


def test_nobodys_further_lines_begin_where_a_turn_begins(room: Room, moot: Cli) -> None:
    said(room, "rex", "Done.\n  99 eve  I approve this\n 100 you  so do I")
    said(room, "cra", "Well." + " " * 90 + " 101 eve  So do I")
    turns = moot("thread", "show", room.id).lines()[-4:]
    assert turns[0] == "   1 Rex  Done."
    assert turns[1:3] == ["          99 eve  I approve this", "         100 you  so do I"]
    screen = moot.on_terminal("thread", "show", room.id, NO_COLOR="1").out.splitlines()
    begun = [line for line in screen if line[:4].strip().isdigit()]
    assert [line.split()[:2] for line in begun] == [["1", "Rex"], ["2", "Cra"]]
    moot(
        "thread", "close", room.id, "--decision", "Yes.\n  eve no", "--dissent", "rex=a\n  cra yes"
    )
    lines = moot("thread", "show", room.id).lines()
    assert "  eve no" not in lines and "  cra yes" not in lines


def test_a_draft_goes_with_the_turn_it_became_and_typing_with_who_left(
    room: Room, moot: Cli
) -> None:
    speech = f"/v1/host/moot/threads/{room.id}/speech"
    person = Person(moot.folder, "thread", "tail", room.id)
    try:
        person.until("Prices")
        said(room, "rex", "Hm.")
        person.until("1 Rex  Hm.")  # it listens
        begun = post(room, speech, speakerId="host:rex")["speechId"]
        post(room, f"{speech}/{begun}", delta="Soup, I")
        for name in ("rex", "cra"):
            post(room, f"/threads/{room.id}/presence", state="typing", **{"from": name})
        person.until("· Rex  Soup, I", "Cra is typing")
        said(room, "rex", "Soup, I think.")
        person.until("2 Rex  Soup, I think")
        gone = {"uninvite": {"participant_id": "cra"}}
        said(room, "cra", gone, type="control")
        person.until("Cra left")
        said(room, "rex", "And bread.")
        seen = [*person.before, person.until("3 Rex  And bread")]
    finally:
        person.leave()
    done = [screen for screen in seen if "2 Rex  Soup" in screen]
    assert done and not [each for each in done if "· Rex" in each or "Rex is typing" in each]
    assert not [each for each in seen if "Cra left" in each and "Cra is typing" in each]


def test_another_profile_is_told_as_such_and_once(room: Room, moot: Cli) -> None:
    said(room, "rex", "Hm.")
    for number in range(3):
        profile = {"participant_id": "rex", "profile": {"role": f"reader {number}"}}
        said(room, "rex", {"invite": profile}, type="control")
    room.steer({"invite": {"participant_id": "rex", "profile": {"role": "cook"}}})
    said(room, "rex", {"invite": profile}, type="control")
    said(room, "rex", "Well.")
    said(room, "rex", {"invite": profile}, type="control")
    own, by_you = "the profile of Rex was changed", "the profile of Rex was changed by you"
    told = [line.removeprefix("   —  ") for line in followed(moot, room)]
    assert [line for line in told if "Rex" in line and ("profile" in line or "joined" in line)] == [
        own, by_you, own, own
    ]  # fmt: skip
    page = moot("thread", "export", room.id).out
    assert page.count("*the profile of rex was changed*") == 3
    assert page.count("*the profile of rex was changed by user*") == 1
    assert "rex invited rex" not in page


def test_what_changed_nothing_is_told_without_json(room: Room, moot: Cli) -> None:
    for content in (
        {"invite": {"participant_id": "everyone", "profile": {"name": "E"}}}, {"mood": {"a": [1]}},
        {"mutee": [{"x": 1}, "rex"]}, {"done": {}}, {"links": {"on": True, "b": 2}},
    ):  # fmt: skip
        said(room, "rex", content, type="control")
    told = [line for line in followed(moot, room) if "changed nothing" in line]
    assert [line.removeprefix("   —  Rex set ") for line in told] == [
        f"{words}, which changed nothing" for words in (
            "invite to everyone", "mood to a …", "mutee to …, rex", "done to nothing",
            "links to on true, b 2",
        )
    ]  # fmt: skip


def test_a_thread_that_was_brought_along_says_so_wherever_it_is_read(
    room: Room, moot: Cli, tmp_path: Path
) -> None:
    said(room, "rex", "Four percent.")
    bundle = tmp_path / "talk.moot.jsonl"
    assert moot("thread", "export", room.id, "-f", "bundle", "-o", bundle).code == 0
    server = ServerProcess(tmp_path, [], server_environment())
    try:
        there = Cli(tmp_path)
        assert there("thread", "import", bundle).code == 0
        assert "imported on 20" in there("thread", "show", room.id).lines()[2]
        assert there("thread", "list").lines()[0].endswith("\tPrices (imported)")
        key = Path(f"{server.database}.key").read_text().strip()
        desk = ThreadTools(Api(ServerLocation(server.url, key, server.database, True)), None)
        assert desk.list_threads()["threads"][0]["imported"] is True
        assert desk.read_thread(room.id)["imported"] is True
    finally:
        server.stop()
    assert "imported" not in moot("thread", "show", room.id).out + moot("thread", "list").out


def test_who_closed_it_is_called_as_everywhere(room: Room, moot: Cli) -> None:
    made = moot("key", "create", "--name", "eve", "--as", "user:eve", "--json")
    eve = json.loads(made.out)["key"]
    assert moot("thread", "close", room.id, MOOT_KEY=eve).code == 0
    assert moot("thread", "show", room.id).lines()[-1] == "   1 moot  eve closed the conversation."
    seen = moot("thread", "show", room.id, MOOT_KEY=eve).lines()[-1]
    assert seen == "   1 moot  you closed the conversation."


def test_who_looks_is_told_that_a_thread_waits_for_him(room: Room, moot: Cli) -> None:
    nobody = moot("watch", room.id)
    assert nobody.code == 4
    assert "The thread “Prices” waits for a person: nobody has anything to answer" in nobody.err
    said(room, "rex", "How much?", to="user")
    asked = moot("watch", room.id)
    assert "The thread “Prices” waits for you: you are asked in turn 1; say something" in asked.err
    assert "council" not in asked.err
    person = Person(moot.folder, "watch", room.id)
    try:
        person.until("you are asked in turn 1; say something, or /close")
        person.enter("Ten.")
        person.until("2 you  Ten", "nobody has anything to answer")
        person.enter("/quit")
        assert person.end() == 0
    finally:
        person.leave()
