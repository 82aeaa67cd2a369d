"""What goes wrong around a program in a thread, and that nothing is lost or left behind by it."""

import shutil
import sys
from contextlib import suppress
from pathlib import Path

from tests.support.cli.programs import Room, run, until


def test_an_answer_is_not_lost_while_the_server_is_away(room: Room, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    rex = room.join("rex", "--exec", f"{run(room, 'waits')} {begun} {go}")
    asked = room.moot("say", room.id, "Well?", "--to", "rex").lines()[0]
    until(begun.exists)
    room.host.stop()
    go.touch()
    until(lambda: not _children(rex.pid))  # it has answered, and nobody hears it
    room.host.start()
    [answer] = until(lambda: room.said("rex"))
    assert answer["content"] == "At last." and answer["meta"]["reply_to"] == asked
    room.moot("say", room.id, "Again?", "--to", "rex")
    until(lambda: len(room.said("rex")) == 2)
    assert rex.poll() is None


def test_what_may_not_be_said_yet_is_said_when_it_may(room: Room, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    room.join("rex", "--exec", f"{run(room, 'waits')} {begun} {go}")
    room.moot("say", room.id, "Well?", "--to", "rex")
    until(begun.exists)
    room.steer({"mute": ["rex"]})
    begun.unlink()
    go.touch()
    until(lambda: room.presence()["rex"]["state"] == "listening")
    assert room.said("rex") == []
    room.steer({"unmute": ["rex"]})
    assert [each["content"] for each in until(lambda: room.said("rex"))] == ["At last."]
    assert not begun.exists(), "it was not asked twice"


def test_a_line_too_many_is_never_the_answer_to_another_question(room: Room) -> None:
    script = str(room.host.folder / "says-twice.py")
    room.join("bot", "--jsonl", "--", sys.executable, script)
    for number, text in enumerate(("one", "two", "three"), 1):
        room.moot("say", room.id, text, "--to", "bot")
        until(lambda number=number: len(room.said("bot")) == number)
    assert [each["content"] for each in room.said("bot")] == ["yes: one", "yes: two", "yes: three"]
    until(lambda: "nobody had asked for" in room.complaints())


def test_an_answer_that_names_another_question_is_dropped(room: Room) -> None:
    room.join("bot", "--jsonl", "--", sys.executable, str(room.host.folder / "echoes.py"))
    for number, text in enumerate(("one", "two"), 1):
        room.moot("say", room.id, text, "--to", "bot")
        until(lambda number=number: len(room.said("bot")) == number)
    assert [each["content"] for each in room.said("bot")] == ["now: one", "now: two"]


def test_whatever_a_program_has_started_ends_with_it(room: Room) -> None:
    rex = room.join("rex", "--exec", run(room, "leaves-a-child"))
    room.moot("say", room.id, "Well?", "--to", "rex")
    [said] = until(lambda: room.said("rex"))
    assert not _lives(int(said["content"])), "a session of its own is no way out"
    room.join("hal", "--exec", run(room, "hangs"))
    room.moot("say", room.id, "Well?", "--to", "hal")
    [child] = until(lambda: _children(room.joined[-1].pid))
    room.joined[-1].kill()
    until(lambda: not _lives(child))
    assert rex.poll() is None


def test_a_line_that_cannot_be_read_is_a_failure_like_others(room: Room) -> None:
    script = str(room.host.folder / "digs.py")
    bot = room.join("bot", "--restarts", "0", "--jsonl", "--", sys.executable, script)
    room.moot("say", room.id, "Well?", "--to", "bot")
    [told] = until(lambda: room.said("bot"))
    assert told["content"].startswith("Bot left (a line that is no JSON object)")
    assert bot.wait(30) == 1


def test_who_leaves_in_the_middle_of_a_word_has_said_it(room: Room) -> None:
    stammers = "sh -c 'echo I was about to; exec sleep 600'"  # which has begun in no time
    hal = room.join("hal", "--exec", stammers, "--limit", "3")
    room.moot("say", room.id, "Well?", "--to", "hal")
    [told] = until(lambda: room.said("hal"))
    assert told["content"] == "Hal left (no answer in time)\nIt had begun: I was about to"
    assert hal.wait(30) == 1
    way = f"join {room.id} --as hal --exec"
    assert "To let it come back" in room.complaints() and way in room.complaints()


def test_a_program_that_is_gone_is_missed_when_it_is_asked(room: Room, tmp_path: Path) -> None:
    copy = shutil.copy(str(shutil.which("cat")), tmp_path / "cat")
    gone = room.join("rex", "--exec", str(copy))
    Path(copy).unlink()
    room.moot("say", room.id, "Well?", "--to", "rex")
    assert gone.wait(30) == 1
    assert "cannot be started" in room.said("rex")[0]["content"]


def _lives(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            if int(stat.read_bytes().rpartition(b")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found
