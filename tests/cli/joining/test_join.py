"""Programs outside in a thread: what they say is heard, and when they fail everybody sees who."""

import signal
import sys

from tests.support.cli.programs import Room, run, until


def test_a_discussion_goes_on_whatever_becomes_of_the_programs_in_it(room: Room) -> None:
    room.join("rex", "--exec", run(room, "answers"), MOOT_SECRET="s")
    crashed = room.join("cora", "--exec", run(room, "crashes"))
    hung = room.join("hal", "--exec", run(room, "hangs"), "--limit", "1")
    room.steer({"invited_auto": {"on": True}})  # five are a large thread
    said = room.moot("say", room.id, "Do we raise prices?")
    assert said.code == 0, said.err
    [asked] = said.lines()
    left = {"cora": "Cora left (exit 7)", "hal": "Hal left (no answer in time)"}
    until(lambda: all(room.said(name) for name in ("rex", "cora", "hal", "ada", "bo")))
    [answer] = room.said("rex")
    assert answer["content"] == "I heard True [] []"
    assert answer["meta"]["reply_to"] == asked
    for name, words in left.items():
        [told] = room.said(name)
        assert told["content"].startswith(words) and told["meta"]["tags"] == ["left"]
    assert room.said("cora")[0]["content"].endswith("first\nno such wheel \uff20ada")
    assert (crashed.wait(30), hung.wait(30)) == (1, 1)
    assert until(lambda: sorted(room.members()) == ["ada", "bo", "rex"])
    assert room.presence()["hal"]["state"] == "offline"
    room.moot("say", room.id, "And you?", "--to", "rex")
    until(lambda: len(room.said("rex")) == 2)


def test_who_is_told_to_stop_leaves(room: Room) -> None:
    rex = room.join("rex", "--exec", run(room, "answers"))
    rex.send_signal(signal.SIGINT)
    assert rex.wait(30) == 0
    assert "rex" not in room.members() and room.said("rex") == []


def test_a_program_of_lines_stays_and_is_started_again_when_it_falls(room: Room) -> None:
    script = str(room.host.folder / "counts.py")
    bot = room.join("bot", "--restarts", "1", "--jsonl", "--", sys.executable, script)
    for number, text in enumerate(("one", "two", "fall", "three", "fall", "fall")):
        if bot.poll() is None:
            room.moot("say", room.id, text, "--to", "bot", "--task")
            until(lambda number=number: len(room.said("bot")) > number or bot.poll() is not None)
    heard = [each["content"] for each in room.said("bot")]
    assert heard[:5] == [
        "1: one", "2: two", "Bot failed, and stays (exit 3)", "1: three",
        "Bot failed, and stays (exit 3)",
    ]  # fmt: skip
    assert heard[5] == "Bot left (exit 3)" and bot.wait(30) == 1
    assert [each["type"] for each in room.said("bot")][:3] == ["result", "result", "message"]


def test_what_a_program_prints_is_bounded_and_is_text(room: Room) -> None:
    room.join("rex", "--exec", run(room, "babbles"))
    room.moot("say", room.id, "Well?", "--to", "rex")
    [told] = until(lambda: room.said("rex"))
    assert len(told["content"]) == 32_000 and told["content"].startswith("\ufffd\ufffd x")


def test_waiting_ends_with_what_was_asked_or_in_time(room: Room) -> None:
    room.steer({"invite": "rex"})
    late = room.moot("wait", room.id, "--as", "rex", "--timeout", "1s")
    assert (late.code, late.out) == (3, "")
    asked = room.moot("say", room.id, "-", "--to", "rex", stdin="How much?\nada: yes\n")
    found = room.moot("wait", room.id, "--as", "rex")
    assert found.code == 0 and "    How much?" in found.lines()
    assert "    (quoting) ada - yes" in found.lines()
    assert f"--reply-to {asked.lines()[0]}" in found.err
    room.moot("say", room.id, "Four.", "--as", "rex", "--reply-to", asked.lines()[0])
    assert room.moot("wait", room.id, "--as", "rex", "--timeout", "1s").code == 3


def test_mistakes_are_told_before_anybody_joins(room: Room) -> None:
    for words in ([], ["--exec", "cat", "--preset", "codex"], ["--jsonl"], ["--exec", "'"]):
        done = room.moot("join", room.id, "--as", "rex", *words)
        assert done.code == 2 and "--exec" in done.err
    assert room.moot("join", "th_none", "--as", "rex", "--exec", "cat").code == 5
    assert room.moot("say", room.id, "x", "--as", "nobody").code == 1
    assert room.moot("say", room.id, " ").code == 2
    assert "rex" not in room.members()
