"""What people see of a thread: names, numbers, sentences, decisions; a real server, real keys."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cli.commands import Cli, Outcome
from tests.support.cli.programs import Room, until
from tests.support.cli.terminal import Person
from tests.support.servers import ServerProcess, server_environment


@pytest.fixture(scope="module")
def inn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("seen")
    (folder / "agents").mkdir()
    (folder / "agents" / "ada.md").write_text("---\npersona: Ada\n---\nYou question.\n")
    process = ServerProcess(folder, [], server_environment(MOOT_DEMO_WPS="0"))
    yield process
    process.stop()


@pytest.fixture
def room(inn: ServerProcess) -> Room:
    return Room(inn, "rex")


@pytest.fixture
def moot(inn: ServerProcess) -> Cli:
    return Cli(inn.folder)


@pytest.fixture(scope="module")
def eve(inn: ServerProcess) -> str:
    """The key of another person."""
    made = Cli(inn.folder)("key", "create", "--name", "eve", "--as", "user:eve", "--json")
    return str(json.loads(made.out)["key"])


def row(moot: Cli, thread: str, **environment: str) -> list[str]:
    lines = [line.split("\t") for line in moot("thread", "list", **environment).lines()]
    return next(line for line in lines if line[0] == thread)


def followed(moot: Cli, thread: str, **environment: str) -> Outcome:
    """All of a closed thread, as it is followed."""
    return moot("watch", thread, "--from-start", **environment)


def closed(moot: Cli, room: Room, *words: Any) -> None:
    assert moot("thread", "close", room.id, *words).code == 0


def test_you_are_who_looks_and_everybody_else_has_a_name(room: Room, moot: Cli, eve: str) -> None:
    moot("say", room.id, "Do we?", "--to", "rex")
    moot("say", room.id, "I do.", MOOT_KEY=eve)
    assert row(moot, room.id)[4:6] == ["you rex", "eve: I do."]
    assert row(moot, room.id, MOOT_KEY=eve)[4:6] == ["you user rex", "you: I do."]
    shown = moot("thread", "show", room.id, MOOT_KEY=eve).out
    assert "you, user, Rex" in shown
    assert "user → Rex  Do we?" in shown and "you  I do." in shown
    closed(moot, room)
    assert "you → Rex  Do we?" in followed(moot, room.id).out
    theirs = followed(moot, room.id, MOOT_KEY=eve).out
    assert "user → Rex  Do we?" in theirs and "you  I do." in theirs


def test_what_was_steered_is_a_sentence_and_what_changed_nothing_says_so(
    room: Room, moot: Cli
) -> None:
    for content in (
        {"discussion": {"on": True, "allow_agent_mentions": True}}, {"ttl_seconds": -5},
        {"ttl_seconds": 60}, {"mutee": ["rex"]}, {"wakes": [{"participant_id": "rex"}]},
    ):  # fmt: skip
        body = {"type": "control", "content": content}
        assert room.host.request("POST", f"/threads/{room.id}/events", body)[0] == 200
    moot("thread", "rename", room.id, "Tea")
    moot("thread", "link", room.id, "--title", "Cups")
    closed(moot, room)
    lines = followed(moot, room.id).out.replace("   —  ", "").splitlines()
    sentences = [
        "you let agents wake one another",
        "you set ttl_seconds to -5, which changed nothing",
        "you let agents go on by themselves for 60 seconds",
        "you set mutee to rex, which changed nothing",
        "you set wakes to rex, which changed nothing",
        "you renamed the thread to “Tea”",
        "the thread “Cups” was linked by you",
    ]
    assert [line for line in lines if line in sentences] == sentences
    path = f"/v1/host/moot/threads/{room.id}/events"
    told = [each.get("says") for each in room.host.request("GET", path)[1]["events"]]
    theirs = [line.replace("you", "user") for line in sentences]
    assert [line for line in told if line in theirs] == theirs


def test_minutes_call_people_by_name_and_tell_no_title_twice(room: Room, moot: Cli) -> None:
    moot("thread", "invite", room.id, "ada")
    room.steer(
        {"invite": {"participant_id": "cla", "profile": {"name": "REX", "model": "unknown"}}}
    )
    moot("say", room.id, "Four percent.", "--as", "rex", "--to", "cla")
    moot("thread", "mute", room.id, "ada")
    moot("thread", "rename", room.id, "Tea")
    closed(moot, room, "--decision", "No.", "--vote", "ada=no")
    page = moot("thread", "export", room.id).out
    assert "- Participants: rex, Ada (demo), cla\n" in page
    assert "*user muted Ada*" in page and "*user renamed the thread to “Tea”*" in page
    assert "| Ada | no |" in page and "**[1] rex** to cla · 20" in page
    assert "host:" not in page and "[0]" not in page and "> Prices" not in page
    assert ".0" not in page.partition("## Transcript")[2]  # times have no fractions


def test_a_turn_has_one_number_wherever_people_read_it(room: Room, moot: Cli) -> None:
    moot("say", room.id, "First words.")
    moot("thread", "prod", room.id, "rex")
    moot("say", room.id, "Second.", "--to", "rex")
    assert "   1 you  First words." in moot("thread", "show", room.id).out
    assert "[2] user to rex:" in moot("wait", room.id, "--as", "rex").out
    assert moot("thread", "read", room.id, "--up-to", "1", "--json").code == 0
    read = json.loads(moot("thread", "read", room.id, "--show", "--json").out)
    assert read["turnIndex"] == 1
    branch = moot("thread", "fork", room.id, "--at", "2").lines()[0]
    assert "First words." in moot("thread", "show", branch).out
    assert "Second." not in moot("thread", "show", branch).out
    assert moot("thread", "fork", room.id, "--at", "9").code == 2
    closed(moot, room)
    assert " 2 you → Rex  Second." in followed(moot, room.id).out


def test_as_many_turns_are_shown_as_were_asked_for(room: Room, moot: Cli) -> None:
    moot("say", room.id, "First words.")
    for _ in range(6):
        room.steer({"pause": True})
        room.steer({"pause": False})
    moot("say", room.id, "Second.", "--to", "rex")
    for _ in range(6):
        room.steer({"pause": True})
        room.steer({"pause": False})
    for words in (("-n", "2"), ("-n", "2", "--json")):
        shown = moot("thread", "show", room.id, *words).out
        assert "First words." in shown and "Second." in shown
    assert "First words." not in moot("thread", "show", room.id, "-n", "1").out


def test_a_title_is_no_turn_and_what_a_fork_begins_with_is_no_news(
    room: Room, moot: Cli, eve: str
) -> None:
    assert row(moot, room.id)[2:6] == ["0", "0", "you rex", "-"]
    assert "live · 0 turns · " in moot("thread", "show", room.id).out
    moot("thread", "rename", room.id, "Quizzaciously")
    found = [line.split("\t")[0] for line in moot("search", "Quizzaciously").lines()]
    assert found == ["thread"]
    begun = room.host.request("POST", "/v1/host/moot/threads", {"title": "Zyxnoid"})[1]["threadId"]
    found = [line.split("\t")[0] for line in moot("search", "Zyxnoid").lines()]
    assert found == ["thread"] and row(moot, begun)[2] == "0"
    moot("say", room.id, "Four percent.", "--as", "rex")
    assert row(moot, room.id)[2:4] == ["1", "1"]
    branch = moot("thread", "fork", room.id).lines()[0]
    assert row(moot, branch, MOOT_KEY=eve)[2:4] == ["1", "0"]
    moot("say", branch, "Five.", "--as", "rex")
    assert row(moot, branch, MOOT_KEY=eve)[2:4] == ["2", "1"]


def test_a_decision_is_seen_where_the_thread_is(room: Room, moot: Cli) -> None:
    closed(moot, room, "--decision", "Churn is fine", "--vote", "rex=no", "--dissent", "rex=why?",
           "--action", "eve: measure")  # fmt: skip
    shown = moot("thread", "show", room.id).out
    assert "Decision: Churn is fine\n  Rex no\n  dissent: Rex: why?\n" in shown
    assert "to do: eve: measure" in shown
    assert row(moot, room.id)[5] == "Decision: Churn is fine"


def test_a_thread_says_where_it_comes_from_and_where_it_goes_on(room: Room, moot: Cli) -> None:
    side = moot("thread", "link", room.id, "--title", "Cups").lines()[0]
    assert moot("thread", "close", side).code == 0
    again = moot("thread", "reopen", side, "--note", "after all").lines()[0]
    assert f"goes on from {side} (after all)" in moot("thread", "show", again).out
    assert f"goes on in {again} (after all)" in moot("thread", "show", side).out
    shown = moot("thread", "show", room.id).out
    assert f"linked: {side} Cups (closed)\ngoes on in {again} (after all)" in shown
    assert row(moot, again)[7] == f"Cups (from {side}: after all)"


def test_the_inbox_has_the_words_of_who_asks(room: Room, moot: Cli) -> None:
    moot("thread", "rename", room.id, "Lunch")
    moot("say", room.id, "Which colour, person?", "--as", "rex", "--to", "user")
    items = json.loads(moot("inbox", "--json").out)
    [mine] = [item for item in items if item["runId"] == room.id]
    assert mine["question"] == "rex asks user in “Lunch”: Which colour, person?"
    assert (mine["askedBy"], mine["turnIndex"]) == ("host:rex", 1)
    lines = [line.split("\t") for line in moot("inbox").lines()]
    assert [line[5] for line in lines if line[4] == room.id] == ["rex"]
    assert moot("answer", mine["number"], "green").out == f'Said in "Lunch" ({room.id}).\n'
    assert all(item["runId"] != room.id for item in json.loads(moot("inbox", "--json").out))


def test_an_open_thread_is_live_in_the_list_of_runs(room: Room, moot: Cli) -> None:
    def status() -> str:
        lines = [line.split("\t") for line in moot("run", "list").lines()]
        return next(line[2] for line in lines if line[0] == room.id)

    assert status() == "live"
    shown = moot("run", "show", room.id)
    assert "● live" in shown.out and shown.err == ""
    closed(moot, room)
    assert status() == "completed"


def test_a_thread_is_announced_by_its_title_and_who_answers(room: Room, moot: Cli) -> None:
    moot("thread", "invite", room.id, "ada")
    closed(moot, room)
    head = followed(moot, room.id).lines()[0]
    about = "Prices · 1 agent, 1 program + you · all answer what is said to all"
    assert head == f"Thread {room.id} · {about}"
    crowd = Room(room.host, "ada", "a", "b", "c", "d")
    closed(moot, crowd)
    head = followed(moot, crowd.id).lines()[0]
    assert head.endswith("1 agent, 4 programs + you · who is named answers: @NAME")


def test_what_a_person_has_seen_is_read_and_what_is_new_is_marked(room: Room, moot: Cli) -> None:
    moot("say", room.id, "One.", "--as", "rex")
    assert "One." in moot("thread", "show", room.id).out  # a program reads
    assert row(moot, room.id)[2:4] == ["1", "1"]
    first = moot.on_terminal("thread", "show", room.id).out
    assert "One." in first and "New since" not in first
    assert row(moot, room.id)[2:4] == ["1", "0"]
    moot("say", room.id, "Two.", "--as", "rex")
    moot("say", room.id, "Three.", "--as", "rex")
    shown = moot.on_terminal("thread", "show", room.id).out.replace("\r", "")
    assert "One.\n" in shown.partition("New since you left · 2 turns")[0]
    assert row(moot, room.id)[2:4] == ["3", "0"]
    moot("say", room.id, "Four.", "--as", "rex")
    closed(moot, room)
    tailed = moot.on_terminal("thread", "tail", room.id).out
    assert "Three." in tailed.partition("New since you left · 2 turns")[0]
    assert row(moot, room.id)[2:4] == ["5", "0"]


def test_what_is_watched_is_read_and_who_comes_back_is_shown_what_is_new(
    room: Room, moot: Cli
) -> None:
    me = Person(room.host.folder, "watch", room.id)
    try:
        me.until("Thread th_")
        moot("say", room.id, "One.", "--as", "rex")
        me.until("1 Rex  One.")
        until(lambda: row(moot, room.id)[2:4] == ["1", "0"])
    finally:
        me.leave()
    moot("say", room.id, "Two.", "--as", "rex")
    back = Person(room.host.folder, "watch", room.id)
    try:
        back.until("New since you left · 1 turn", "2 Rex  Two.")
    finally:
        back.leave()


def test_a_list_has_what_was_used_last_first_and_is_for_programs_in_a_pipe(
    room: Room, moot: Cli
) -> None:
    newer = Room(room.host)
    words = "Four percent, and five in the north where it was cold. " * 2
    moot("say", room.id, words, "--as", "rex")
    lines = [line.split("\t") for line in moot("thread", "list").lines()]
    assert [line[0] for line in lines][:2] == [room.id, newer.id]
    assert lines[0][5] == f"rex: {words.strip()}" and lines[0][6].endswith("Z")
    screen = moot.on_terminal("thread", "list", columns=200).out
    assert re.search(r"● live +1 \(1 new\) +you rex +rex: Four percent, and", screen)
    assert f"rex: {words}" not in screen
    assert room.host.request("GET", "/v1/host/moot/threads?order=old")[0] == 400
    assert moot("thread", "list", "--archived").code == 0


def test_a_search_in_vain_says_in_a_pipe_how_to_find_more(moot: Cli, room: Room) -> None:
    moot("thread", "rename", room.id, "Zorblats")
    done = moot("search", "Zorblat")
    assert (done.out, "Zorblat*" in done.err) == ("", True)
    found = moot("search", "Zorblat*")
    assert "Zorblats" in found.out and found.err == ""


def test_a_task_is_seen_to_be_one_and_says_what_is_to_be_done(room: Room, moot: Cli) -> None:
    task = moot("say", room.id, "Count the cups.", "--to", "rex", "--task").lines()[0]
    shown = moot("thread", "show", room.id).out
    assert f"task {task} for Rex (turn 1): Count the cups." in shown
    assert "1 you → Rex · task  Count the cups." in shown
    moot("say", room.id, "Nine.", "--as", "rex", "--result", "--reply-to", task)
    closed(moot, room)
    told = followed(moot, room.id).out
    assert "1 you → Rex · task  Count" in told and "2 Rex · result  Nine." in told
    page = moot("thread", "export", room.id).out
    assert re.search(r"\[1\] user\*\* to rex · .* UTC · task\n", page) and "· result\n" in page


def test_who_leaves_is_told_once_with_the_way_back(room: Room, moot: Cli) -> None:
    events = f"/threads/{room.id}/events"
    said = {"from": "rex", "content": "Rex left (exit 7)", "meta": {"tags": ["left"]}}
    assert room.host.request("POST", events, said)[0] == 200
    gone = {"type": "control", "from": "rex", "content": {"uninvite": {"participant_id": "rex"}}}
    assert room.host.request("POST", events, gone)[0] == 200
    closed(moot, room)
    told = followed(moot, room.id).lines()
    assert [line for line in told if "left" in line] == [" 1 Rex  Rex left (exit 7)"]
    assert f"   —  let it come back: moot join {room.id} --as rex --exec CMD" in told


def test_what_was_done_is_said_in_plain_words(room: Room, moot: Cli) -> None:
    for words, said in (
        (("mute", room.id, "rex"), "muted rex"), (("unmute", room.id, "rex"), "unmuted rex"),
        (("invite", room.id, "dee"), "invited dee"), (("pause", room.id), "paused"),
        (("archive", room.id), "archived"), (("rename", room.id, "Tea"), "renamed to “Tea”"),
    ):  # fmt: skip
        assert moot("thread", *words).out == f"{room.id}: {said}\n"


def test_what_a_program_had_begun_to_say_is_not_lost(room: Room, moot: Cli) -> None:
    room.join("hal", "--exec", "sh -c 'echo four; echo hm >&2; sleep 60'", "--limit", "3")
    moot("say", room.id, "Well?", "--to", "hal")
    [told] = until(lambda: room.said("hal"))
    assert told["content"] == "Hal left (no answer in time)\nhm\nIt had begun: four"
    room.end()


def test_who_borrows_an_agents_name_is_seen(room: Room, moot: Cli, eve: str) -> None:
    moot("thread", "invite", room.id, "ada")
    moot("say", room.id, "As Ada.", "--as", "ada")
    moot("say", room.id, "As Rex.", "--as", "rex")  # a program has no other voice
    assert "Ada · said by you  As Ada." in moot("thread", "show", room.id).out
    assert "Ada · said by user  As Ada." in moot("thread", "show", room.id, MOOT_KEY=eve).out
    [told] = room.said("ada")
    assert told["meta"]["spoken_by"] == "user" and "spoken_by" not in room.said("rex")[0]["meta"]
    forged = {"content": "x", "meta": {"spoken_by": "user:ann"}}
    assert room.host.request("POST", f"/threads/{room.id}/events", forged)[0] == 200
    assert "spoken_by" not in room.said()[-1]["meta"]
    moot("say", room.id, "Your own words, please.", "--to", "ada")
    answer = until(lambda: room.said("ada")[1:])[0]
    assert "spoken_by" not in answer["meta"]
    closed(moot, room)
    assert "Ada · said by you  As Ada." in followed(moot, room.id).out
    assert re.search(r"\] Ada\*\* · .* · said by user\n", moot("thread", "export", room.id).out)
