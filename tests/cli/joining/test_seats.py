"""Whose name a program takes in a thread, for how long, and what it leaves behind."""

import signal
from pathlib import Path

import pytest

from moot.cli.joining.join_key import GuestParticipant, JoinSeatTaken
from moot.cli.joining.presets import PRESETS, command_words
from moot.cli.joining.program_loop import ProgramLoop
from moot.cli.shared.client import Api
from moot.config.server_location import ServerLocation
from tests.support.cli.programs import Room, run, until
from tests.support.servers import ServerProcess, server_environment

STAND_IN = """#!/bin/sh
printf '%s\\n' "$0" "$@" > {folder}/words
cat > {folder}/told
printf '%s\\n' {said}
"""


def join(room: Room, name: str, *words: str) -> tuple[int, str]:
    done = room.moot("join", room.id, "--as", name, *(words or ("--exec", "cat")))
    return done.code, done.err


@pytest.mark.parametrize("name", ["user", "user:eve", "host:user", "User"])
def test_no_program_speaks_for_a_person(room: Room, name: str) -> None:
    code, said = join(room, name)
    assert code == 2 and "person" in said
    assert sorted(room.members()) == ["ada", "bo"]


@pytest.mark.parametrize("name", ["ada", "host:ada", "dee"])
def test_no_program_takes_the_name_of_an_agent_of_the_host(room: Room, name: str) -> None:
    code, said = join(room, name)
    assert code == 2 and "agent of this host" in said
    assert sorted(room.members()) == ["ada", "bo"], "nobody was invited, nobody left"


def test_a_name_that_begins_like_a_persons_is_one_like_others(room: Room) -> None:
    bot = room.join("userbot", "--exec", run(room, "answers"))
    assert "userbot" in room.members()
    room.moot("say", room.id, "Well?", "--to", "userbot")
    until(lambda: room.said("userbot"))
    bot.send_signal(signal.SIGINT)
    assert bot.wait(30) == 0 and "userbot" not in room.members()


def test_a_name_is_one_programs_at_a_time_and_the_next_may_take_its_place(room: Room) -> None:
    first = room.join("rex", "--exec", run(room, "hangs"))
    code, said = join(room, "rex")
    assert code == 1 and "here already, since" in said and "--replace" in said
    second = room.join("rex", "--replace", "--exec", run(room, "answers"))
    assert first.wait(60) == 1 and "has lost its place" in room.complaints()
    assert "rex" in room.members(), "who was replaced takes nobody along"
    room.moot("say", room.id, "Do we raise prices?", "--to", "rex")
    assert until(lambda: room.said("rex"))[0]["content"].startswith("I heard")
    second.send_signal(signal.SIGINT)
    assert second.wait(30) == 0


def test_who_was_invited_by_somebody_else_stays_so(room: Room) -> None:
    room.moot("thread", "invite", room.id, "rex")
    rex = room.join("rex", "--exec", run(room, "answers"))
    rex.send_signal(signal.SIGINT)
    assert rex.wait(30) == 0 and "rex" in room.members()


def guest(inn: ServerProcess, room: Room, seconds: int) -> GuestParticipant:
    place = ServerLocation(inn.url, inn.key, inn.database, named=True)
    return GuestParticipant(Api(place), room.id, "rex", {"client": "x"}, seconds=seconds)


def test_a_key_that_is_over_is_renewed_and_one_that_was_revoked_is_not(
    inn: ServerProcess, room: Room
) -> None:
    rex = guest(inn, room, seconds=2)
    seat = ProgramLoop(rex, None, 0)  # type: ignore[arg-type]
    first = rex.api.place.key
    until(lambda: seat._patiently(lambda: rex.next(None, 0)) or rex.api.place.key != first)
    rex.leave()
    assert "rex" not in room.members()
    rex = guest(inn, room, seconds=60)
    assert inn.request("DELETE", f"/v1/host/moot/keys/{rex.mark}")[0] == 204
    with pytest.raises(JoinSeatTaken):
        ProgramLoop(rex, None, 0)._patiently(rex.thread)  # type: ignore[arg-type]


def test_a_program_must_be_there_before_its_name_is_invited(room: Room) -> None:
    code, said = join(room, "rex", "--exec", "no-such-program-anywhere -x")
    assert code == 2 and "no program 'no-such-program-anywhere'" in said
    code, said = join(room, "rex", "--preset", "codex")
    assert code == 2 and "no program 'codex'" in said
    assert "rex" not in room.members()


@pytest.mark.parametrize(
    "typed", ["cat | wc -l", "cat>out", "true && cat", "sleep 1; cat", "cat &"]
)
def test_who_writes_for_a_shell_is_told_how_to_have_one(room: Room, typed: str) -> None:
    code, said = join(room, "rex", "--exec", typed)
    assert code == 2 and "No shell is between" in said and "sh -c" in said
    assert command_words((), "grep '|' \"a;b\" 'x>y'", False, None) == ["grep", "|", "a;b", "x>y"]


def test_files_of_the_folder_one_joins_from_are_found(room: Room) -> None:
    room.join("rex", "--exec", "python3 answers.py")
    room.moot("say", room.id, "Do we raise prices?", "--to", "rex")
    assert until(lambda: room.said("rex"))[0]["content"] == "I heard True [] []"


#: what each must be told to do, and how it answers
PROGRAMS = {
    "codex": (["exec", "--sandbox", "read-only", "--skip-git-repo-check", "-"], "'Yes.'"),
    "claude": (["-p"], "'Yes.'"),
    "gemini": ([], "'Yes.'"),
    "aider": (
        PRESETS["aider"].split()[1:],
        "'Aider v0.86' 'Model: m with ask format' 'Git repo: none' '' 'Yes.' ''"
        " 'Tokens: 2k sent, 4 received.'",
    ),
}


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_is_told_on_stdin_and_heard_on_stdout(
    room: Room, tmp_path: Path, name: str
) -> None:
    words, said = PROGRAMS[name]
    (tmp_path / name).write_text(STAND_IN.format(folder=tmp_path, said=said))
    (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{server_environment()['PATH']}"
    room.join("clara", "--preset", name, PATH=path)
    room.moot("say", room.id, "Do we raise prices?", "--to", "clara")
    assert until(lambda: room.said("clara"))[0]["content"] == "Yes."
    assert (tmp_path / "words").read_text().splitlines() == [str(tmp_path / name), *words]
    told = (tmp_path / "told").read_text()
    assert "You are clara" in told and "    Do we raise prices?" in told.splitlines()


def test_no_preset_gives_a_program_more_rights() -> None:
    for command in PRESETS.values():
        for word in ("danger", "bypass", "yolo", "full-auto", "skip-permissions", "yes", "allow"):
            assert word not in command
    assert "--message-file /dev/stdin" in PRESETS["aider"] and "--chat-mode ask" in PRESETS["aider"]
