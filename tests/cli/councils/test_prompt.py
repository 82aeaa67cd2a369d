"""A person at the prompt of a council: what is typed, what the screen shows, how one leaves."""

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.commands import Cli
from tests.support.cli.councils import ALL, QUESTION, last, thread, threads, write_agents
from tests.support.cli.terminal import MARK, Person
from tests.support.servers import ServerProcess, server_environment

At = Callable[..., Person]


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("hall")
    write_agents(folder)
    process = ServerProcess(folder, [], server_environment(MOOT_DEMO_WPS="60"))
    yield process
    process.stop()


@pytest.fixture
def slow(server: Callable[..., ServerProcess], tmp_path: Path) -> ServerProcess:
    """Its agents can be interrupted, also by somebody who is slow."""
    write_agents(tmp_path)
    return server(folder=tmp_path, MOOT_DEMO_WPS="4")


@pytest.fixture
def person(hall: ServerProcess) -> Iterator[At]:
    here: list[Person] = []

    def sits(*words: str, folder: Path | None = None, **more: Any) -> Person:
        here.append(Person(folder or hall.folder, *words, **more))
        return here[-1]

    yield sits
    for one in here:
        one.leave()


def settled(screen: str) -> list[str]:
    """The numbers of the turns on the screen, in their order."""
    return re.findall(r"^ ?(\d+) (?:you|Ada|Bo|Cy|Dee|Mo|moot)\b", screen, re.M)


def test_a_person_takes_part_steers_and_closes_with_a_vote(person: At, hall: ServerProcess) -> None:
    me = person("convene", QUESTION, *ALL)
    me.until(r"^ 0 you  Do we raise", r"^ 1 Ada  ")
    me.enter("@cy what number would change your mind?")
    me.until(r"you → Cy  what number would change your mind\?")
    me.enter("/mute bo 10m")
    me.until("—  you muted Bo for 10 minutes")
    me.enter("/pause")
    me.until("—  you paused the agents; /resume to go on")
    state = thread(hall, last(hall))["state"]
    assert (state["paused"], state["muted"]) == (True, ["host:bo"])
    me.enter("/unmute bo")
    me.enter("/prod ada")
    me.enter("/resume")
    me.until("you unmuted Bo", "you asked Ada to speak once", "all is said; /close ends it")
    me.enter('/close --decision "Pilot +8 % on 200 accounts" --vote')
    code = me.end()
    screen = me.glass.text
    assert code == 0
    assert "you put to the vote: Pilot +8 % on 200 accounts" in screen
    assert re.search(r"vote: Ada \w+ .*· Bo \w+ .*· Cy \w+", re.sub(r"\s+", " ", screen))
    assert "decision: Pilot +8 % on 200 accounts" in screen
    assert re.search(r"Closed. Decision recorded \(turn \d+\)", screen)
    numbers = settled(screen)
    assert numbers == [str(number) for number in range(len(numbers))]
    run = hall.request("GET", f"/v1/runs/{last(hall)}")[1]
    votes = run["outputs"]["outcome"]["votes"]
    assert {vote["by"] for vote in votes} == {"host:ada", "host:bo", "host:cy"}


def test_words_stream_above_the_line_that_is_being_typed(slow: ServerProcess, person: At) -> None:
    me = person("convene", QUESTION, "--with", "ada,bo", "--rounds", "1", columns=70,
                folder=slow.folder)  # fmt: skip
    me.until(f"^{MARK}")
    me.type("half a thought")
    me.until(r" · (Ada|Bo)  \w+", f"{MARK} half a thought$")
    for _ in range(7):
        me.type("\x1b[D")  # to the left, behind "half a"
    me.type("\x0bgood idea")
    me.until("all is said", f"{MARK} half a good idea$")
    assert me.glass.lines[-1].startswith(f"{MARK} half a good idea")
    assert me.glass.column == len(f"{MARK} half a good idea")
    assert settled(me.glass.text) == ["0", "1", "2"]
    me.type("\x15")
    me.enter("/quit")
    assert me.end() == 0


def test_tab_completes_names_and_commands_and_arrows_bring_back_lines(person: At) -> None:
    me = person("convene", QUESTION, "--with", "ada,bo", "--policy", "addressed")
    me.until("nobody has anything to answer")
    me.type("@")
    me.type("\t")
    me.until("@ada  @bo", f"{MARK} @$")
    me.type("b\twhy?\r")
    me.until(r"1 you → Bo  why\?", r"2 Bo ")
    me.type("/pa\t")
    me.until(f"{MARK} /pause$")
    me.type("\x15\x1b[A")
    me.until(rf"{MARK} @bo why\?$")
    me.type("\x04")  # the end of the keyboard means nothing in the middle of a line
    me.type("\x15\x04")
    assert me.end() == 0
    assert "You left; it waits for a person. Come back: moot watch th_" in me.glass.text


def test_mistakes_are_sentences_and_help_lists_what_there_is(person: At) -> None:
    me = person("convene", QUESTION, "--with", "ada,bo", "--policy", "addressed")
    me.until("nobody has anything to answer")
    me.enter("/muet bo")
    me.until(r"There is no command /muet\. Did you mean /mute\?")
    me.enter("/mute zed")
    me.until(r"Nobody here is called 'zed'\. There are Ada, Bo\.")
    me.enter("/admit")
    me.until(r"Nothing waits for that\.")
    me.enter("/invite dee --role legal")
    me.until(r"The roster of this conversation is closed", r"^moot fork th_\w+@0")
    me.enter("/invite adda")
    me.until(r"!  .*'adda'.*Did you mean 'ada'\?")
    assert me.glass.text.count("moot fork") == 1
    me.enter("/help")
    me.until(r"/close \[--decision TEXT\] \[--vote\] +end it")
    me.enter("/close")
    assert me.end() == 0
    assert "Closed without a decision." in me.glass.text


def test_somebody_is_invited_into_an_open_council_and_speaks(person: At) -> None:
    me = person("convene", QUESTION, "--with", "ada,bo", "--policy", "addressed", "--open")
    me.until("nobody has anything to answer")
    me.enter("First of all: hello.")
    me.until("1 you  First of all")
    me.enter("/invite dee --role counsel")
    me.until(r"you invited Dee \(sees turns 0 to 1\)")
    me.enter("@counsel, what do you say?")
    me.until("2 you → Dee  what do you say", "3 Dee  ")
    me.enter("/close --decision It depends")
    assert me.end() == 0


def test_the_moderators_proposal_is_offered_and_can_be_changed(
    person: At, hall: ServerProcess
) -> None:
    me = person("convene", QUESTION, *ALL, "--rounds", "1", "--vote")
    me.until(r"   —  vote: Ada ", "all is said")
    me.enter("/close")
    me.until("the moderator proposes this; change it or press Enter")
    me.enter("")
    assert me.end() == 0
    outcome = hall.request("GET", f"/v1/runs/{last(hall)}")[1]["outputs"]["outcome"]
    assert outcome["text"].endswith("look at it again in two weeks.")
    assert len(outcome["votes"]) == 3


def test_a_turn_that_was_held_back_is_let_in(slow: ServerProcess, person: At) -> None:
    me = person("convene", QUESTION, "--with", "ada,bo", "--rounds", "1", folder=slow.folder)
    me.until(r" · Ada  \w+")
    me.enter("/mute ada")
    me.until(r"Ada tried to speak while muted \(1 turn held\) · /admit \d+")
    me.enter("/admit")
    me.until("you let a held turn in", r"^ ?\d Ada  ")


def test_a_limit_is_lifted_at_the_prompt(person: At) -> None:
    me = person("convene", QUESTION, "--with", "ada,bo", "--rounds", "1", "--budget", "1-turns")
    me.until("Stopped: consecutive reached its limit of 1", r"stopped at its limit \(consecutive\)")
    me.enter("/continue")
    me.until("you let it go on", r"\d Bo  ")
    me.enter("/continue 2")
    me.until("2 more rounds")
    me.enter("/quit")
    assert me.end() == 0


def test_ctrl_c_leaves_the_terminal_as_it_was(person: At, slow: ServerProcess) -> None:
    me = person("convene", QUESTION, *ALL, folder=slow.folder)
    me.until(r" · Ada  \w+")
    me.type("something half")
    me.until("something half")
    me.type("\x03")
    assert me.end() == 130
    assert "something half" not in me.glass.text
    assert "You left; the council goes on." in me.glass.text
    assert thread(slow, last(slow))["open"]


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_terminal_is_put_right_whoever_ends_the_watching(person: At, end: signal.Signals) -> None:
    me = person("convene", QUESTION, *ALL)
    me.until("1 Ada")
    assert not me.echoes
    me.process.send_signal(end)
    me.end()
    assert me.echoes


def test_a_shell_that_took_the_terminal_gives_it_back(person: At) -> None:
    me = person("convene", QUESTION, "--with", "ada,bo", "--policy", "addressed")
    me.until("nobody has anything to answer")
    me.process.send_signal(signal.SIGSTOP)
    me.echo()
    me.process.send_signal(signal.SIGCONT)
    while me.echoes:
        assert me.process.poll() is None
    me.enter("/close")
    assert me.end() == 0


def test_who_comes_back_has_the_prompt_again(person: At, hall: ServerProcess) -> None:
    thread_id = threads(hall, "--policy", "addressed")
    me = person("watch", thread_id[:14])
    me.until("1 turn so far", "nobody has anything to answer")
    me.enter("@mo, well?")
    me.until("1 you → Mo", "2 Mo ")
    me.enter("/close")
    assert me.end() == 0


def test_nothing_that_is_said_draws_on_the_screen(person: At, hall: ServerProcess) -> None:
    sly = "a\x1b[2Kb\x9b2Kc\rd\u202ee"
    thread_id = threads(hall, "--policy", "addressed")
    path = f"/v1/runs/{thread_id}/interrupts/talk"
    assert hall.request("POST", path, {"resumeValue": {"content": sly}})[0] == 200
    me = person("watch", thread_id, "--from-start")
    me.until("1 you  a\ufffd\\[2Kb\ufffd2Kc\ufffdd\ufffde")
    me.enter("/close")
    assert me.end() == 0


def test_without_colours_and_on_a_dumb_terminal_it_reads_the_same(
    person: At, hall: ServerProcess
) -> None:
    thread_id = threads(hall, "--rounds", "1", "--close", "moderator")
    Cli(hall.folder)("watch", thread_id, "--wait")
    plain = person("watch", thread_id, "--from-start", NO_COLOR="1")
    assert plain.end() == 0
    dumb = person("watch", thread_id, "--from-start", TERM="dumb")
    assert dumb.end() == 0
    assert settled(plain.glass.text) == settled(dumb.glass.text) == list("012345")


def test_a_person_takes_back_renames_gives_a_task_and_catches_up(
    person: At, hall: ServerProcess
) -> None:
    moot = Cli(hall.folder)
    [name] = moot("thread", "new", "Tea", "--with", "ada,bo", "--say", "Green or black?").lines()
    me = person("watch", name)
    me.until(r"Bo  ")
    me.enter("/mute bo")
    me.until("you muted Bo")
    me.enter("/undo")
    me.until("you unmuted Bo")
    me.enter("/rename Green tea")
    me.until("you renamed the thread to “Green tea”")
    me.enter("/task bo count the cups")
    me.until("→ Bo.* count the cups")
    me.enter("/catchup")
    me.until("on turns .* for you alone:")
    me.enter("/quit")
    assert me.end() == 0
    found = thread(hall, name)
    assert found["title"] == "Green tea" and found["state"]["muted"] == []
