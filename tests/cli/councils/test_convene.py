"""Councils from the command line: in pipes, left and come back to, over restarts, at limits."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cli.commands import Cli
from tests.support.cli.councils import (
    ALL,
    QUESTION,
    events,
    json_lines,
    last,
    thread,
    threads,
    write_agents,
)
from tests.support.servers import ServerProcess, server_environment

ServerFactory = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Agents that say everything at once; ./agents is found by itself."""
    folder = tmp_path_factory.mktemp("hall")
    write_agents(folder)
    process = ServerProcess(folder, [], server_environment(MOOT_DEMO_WPS="0"))
    yield process
    process.stop()


@pytest.fixture
def moot(hall: ServerProcess) -> Cli:
    return Cli(hall.folder)


@pytest.fixture
def slow(server: ServerFactory, tmp_path: Path) -> ServerProcess:
    """Agents one can interrupt."""
    write_agents(tmp_path)
    return server(folder=tmp_path, MOOT_DEMO_WPS="30")


def following(host: ServerProcess, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "moot.cli", *words], cwd=host.folder, env=server_environment(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def line_with(process: "subprocess.Popen[str]", wanted: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if wanted in line:
            return line
    raise AssertionError(f"no line with {wanted}")


def test_a_council_in_a_pipe_is_whole_turns_in_plain_lines_to_its_minutes(moot: Cli) -> None:
    done = moot("convene", QUESTION, *ALL, "--vote", "--close", "moderator", "--budget",
                "20k-tokens")  # fmt: skip
    assert done.code == 0
    assert "\x1b" not in done.out
    head, *lines = done.lines()
    assert re.fullmatch(
        r"Thread th_\w{20} · 3 agents \+ you · order: round-robin · moderator: Mo · 2 rounds"
        r" · at most 20 000 tokens", head,
    )  # fmt: skip
    turns = [line for line in lines if re.match(r" ?\d+ ", line)]
    speakers = [line.split()[1] for line in turns]
    assert speakers == ["you", "Ada", "Bo", "Cy", "Ada", "Bo", "Cy", "Mo", "Mo"]
    assert [line.split()[0] for line in turns] == [str(number) for number in range(9)]
    assert all(re.search(r"\[\S+ m?s · demo · \d+ tok\]$", line) for line in turns[1:7])
    assert any(line.startswith("   —  vote: Ada ") for line in lines)
    assert re.fullmatch(
        r"Closed\. Decision recorded \(turn 8\)\. Minutes: moot thread export th_\w+ -f md",
        lines[-1],
    )  # fmt: skip
    minutes = moot(*lines[-1].partition("Minutes: moot ")[2].split())
    assert "## Decision" in minutes.out
    assert "Ada (skeptic, demo)" in minutes.out


def test_a_council_that_only_a_person_can_end_says_so_and_how(moot: Cli) -> None:
    done = moot("convene", QUESTION, "--with", "ada,bo", "--rounds", "1")
    assert done.code == 4
    assert "waits for a person: all is said" in done.err
    command = re.search(r"moot (thread close \S+ --decision) TEXT", done.err)
    assert command is not None
    assert moot(*command[1].split(), "We wait.").code == 0


@pytest.mark.parametrize(
    ("budget", "reason"),
    [("1-turns", "consecutive"), ("100-tokens", "tokens"), ("150-tokens,9-minutes", "tokens")],
)
def test_a_limit_is_a_turn_of_the_host_and_a_way_on(moot: Cli, budget: str, reason: str) -> None:
    done = moot("convene", QUESTION, "--with", "ada,bo", "--budget", budget)
    assert done.code == 4
    assert re.search(rf" moot  Stopped: {reason} reached its limit of \d+\..*/continue", done.out)
    assert f"stopped at its limit ({reason})" in done.err


def test_what_was_typed_wrong_is_refused_with_the_way_out(moot: Cli) -> None:
    done = moot("convene", QUESTION, "--with", "ada,bo", "--budget", "many")
    assert done.code == 2
    assert "20k-tokens, 30-turns, 5-minutes or 2-usd" in done.err
    assert moot("convene", QUESTION).code == 2
    assert moot("convene", QUESTION, "--with", " , ").code == 2
    few = moot("convene", QUESTION, "--with", "ada")
    assert few.code == 1 and "at least two participants" in few.err
    misspelt = moot("convene", QUESTION, "--with", "adaa")
    assert misspelt.code == 1 and "adaa" in misspelt.err and "'ada'" in misspelt.err
    alone = moot("convene", QUESTION, "--with", "ada,bo", "--server", "127.0.0.1:1")
    assert alone.code == 6


def test_who_would_be_waited_for_in_vain_is_not_seated(moot: Cli, hall: ServerProcess) -> None:
    done = moot("convene", QUESTION, "--with", "ada,boo", "--detach")
    assert done.code == 1 and done.out == ""
    assert "'boo' is no agent of this host" in done.err
    assert "Did you mean 'bo'?" in done.err and "--as host:boo" in done.err
    assert moot("convene", " ", "--with", "ada,bo").code == 2
    assert moot("key", "create", "--name", "boo", "--as", "host:boo").code == 0
    seated = moot("convene", QUESTION, "--with", "ada,boo", "--detach")
    assert seated.code == 0, seated.err
    moot("thread", "close", seated.lines()[0])


def test_json_is_one_event_a_line(moot: Cli, hall: ServerProcess) -> None:
    done = moot("convene", QUESTION, *ALL, "--rounds", "1", "--close", "moderator", "--json")
    assert done.code == 0
    found = json_lines(done.out)
    kinds = [event["type"] for event in found]
    assert kinds[-1] == "conversation.closed"
    assert kinds.count("conversation.exchanged") == 4
    assert found[0]["runId"] == last(hall)


def test_blind_open_and_other_ways_are_told_to_the_server(moot: Cli, hall: ServerProcess) -> None:
    moot("convene", QUESTION, *ALL, "--policy", "moderated", "--blind", "--open", "--title",
         "Prices", "--budget", "2-usd", "--budget", "30-minutes", "-d")  # fmt: skip
    shown = thread(hall, last(hall))
    assert shown["title"] == "Prices"
    assert (shown["floor"]["mode"], shown["floor"]["limits"]["money"]) == ("moderated", 2.0)
    assert shown["floor"]["limits"]["minutes"] == 30
    assert [one["id"] for one in shown["state"]["participants"]["invited"]][-1] == "host:mo"
    begun = events(hall, last(hall))[0]["payload"]["inputs"]
    assert begun["participation"]["blind"] is True


def test_a_council_goes_on_when_who_convened_it_is_gone(slow: ServerProcess) -> None:
    watcher = following(slow, "convene", QUESTION, *ALL, "--vote", "--close", "moderator")
    line_with(watcher, " 1 Ada")
    watcher.send_signal(signal.SIGKILL)
    watcher.communicate()
    thread_id = last(slow)
    assert thread(slow, thread_id)["open"]
    done = Cli(slow.folder)("watch", thread_id)
    assert done.code == 0
    assert "Closed. Decision recorded" in done.out
    assert " 1 Ada" not in done.out  # from now on
    again = Cli(slow.folder)("watch", thread_id, "--from-start")
    assert again.code == 0
    assert len(re.findall(r"^ \d (Ada|Bo|Cy|Mo|you)", again.out, re.M)) == 9


def test_a_council_that_talks_is_followed_to_its_end_as_a_run_too(slow: ServerProcess) -> None:
    moot = Cli(slow.folder)
    made = moot("convene", QUESTION, *ALL, "--rounds", "1", "--close", "moderator", "--detach")
    thread_id = made.lines()[0]
    assert moot("run", "list").lines()[0].split("\t")[2] == "talking"
    shown = moot("run", "show", thread_id)
    assert "talking" in shown.out and "waits for a person" not in shown.err
    followed = moot("run", "tail", thread_id)
    assert followed.code == 0, followed.err
    assert "waits for a person" not in followed.err
    assert followed.lines()[-1].startswith("{") or "completed" in followed.out
    assert QUESTION in moot("run", "list").lines()[0]
    assert moot("fork", f"{thread_id}@turn2", "--note", "again").code == 0
    beyond = moot("why", f"{thread_id}@turn99")
    assert beyond.code == 5 and "it has turns 0 to " in beyond.err


def test_ctrl_c_leaves_politely_and_says_how_to_come_back(slow: ServerProcess) -> None:
    watcher = following(slow, "convene", QUESTION, *ALL)
    line_with(watcher, " 1 Ada")
    watcher.send_signal(signal.SIGINT)
    _, said = watcher.communicate()
    assert watcher.returncode == 130
    thread_id = last(slow)
    assert said == f"You left; the council goes on. Come back: moot watch {thread_id}\n"
    assert thread(slow, thread_id)["open"]


def test_a_watcher_goes_on_over_a_restart_of_the_server_without_a_gap(slow: ServerProcess) -> None:
    watcher = following(slow, "convene", QUESTION, *ALL, "--vote", "--close", "moderator")
    line_with(watcher, " 1 Ada")
    slow.kill()
    line_with(watcher, "the server is away")
    slow.start()
    rest, said = watcher.communicate(timeout=90)
    assert watcher.returncode == 0, said
    assert "the server is back" in rest
    numbers = [int(found) for found in re.findall(r"^ (\d) (?:Ada|Bo|Cy|Mo)  ", rest, re.M)]
    assert numbers == [2, 3, 4, 5, 6, 7, 8]
    calls = [event for event in events(slow, last(slow))
             if event["type"] == "moot.effect.finished"]  # fmt: skip
    assert len({event["payload"]["invocationId"] for event in calls}) == len(calls) == 10


def test_watch_follows_runs_and_tells_what_is_closed(moot: Cli, hall: ServerProcess) -> None:
    thread_id = threads(hall, "--rounds", "1", "--close", "moderator")
    assert moot("watch", thread_id[:12], "--wait").code == 0
    done = moot("watch", thread_id)
    assert done.code == 0
    assert "is closed. Read it: moot watch" in done.err
    flow = hall.folder / "nap.yaml"
    flow.write_text("workflow: nap\nsteps: [{set: {said: hello}}]\n")
    run_id = moot("run", str(flow), "-d").lines()[0]
    done = moot("watch", run_id, "--from-start")
    assert done.code == 0
    assert "run completed" in done.out
    assert moot("watch", "run_nobody").code == 5


def test_a_question_to_one_agent_is_answered_and_kept(moot: Cli, hall: ServerProcess) -> None:
    done = moot("ask", "ada", "Is tea better than coffee?")
    assert done.code == 0
    assert done.out.strip()
    assert "\x1b" not in done.out
    kept = thread(hall, last(hall))
    assert (kept["open"], kept["title"]) == (False, "Is tea better than coffee?")
    assert moot("run", "show", "@last", "--json").out.count(done.out.strip()) >= 1
    piped = moot("ask", "host:bo", "-", "--json", stdin="And milk?")
    found = json_lines("".join(piped.out.split("\n")))[0]
    assert found["agentId"] == "host:bo"
    assert found["meta"]["model"] == "demo"


def test_who_cannot_be_asked_is_said(moot: Cli) -> None:
    done = moot("ask", "adda", "Hello?")
    assert (done.code, "Did you mean 'ada'?" in done.err) == (5, True)
    assert moot("ask", "Bad name!/?", "Hello?").code == 5
    assert moot("ask", "ada", "-").code == 2


def test_the_words_of_an_answer_come_to_a_terminal_as_they_are_spoken(moot: Cli) -> None:
    done = moot.on_terminal("ask", "ada", "Is tea better than coffee?")
    assert done.code == 0
    text = done.out.replace("\r\n", "\n")
    assert text.count("\n") == 1
    assert text.endswith((".\n", "?\n"))


def test_agents_are_listed_and_shown(moot: Cli) -> None:
    assert [line.split("\t")[:4] for line in moot("agent", "list").lines()] == [
        ["ada", "Ada", "skeptic", "demo"], ["bo", "Bo", "builder", "demo"],
        ["cy", "Cy", "measurer", "demo"], ["dee", "Dee", "legal", "demo"],
        ["mo", "Mo", "moderator", "demo"],
    ]  # fmt: skip
    shown = moot("agent", "show", "ada")
    assert shown.lines()[0] == "Ada · skeptic"
    assert shown.lines()[-1] == "Two sentences."
    assert moot("agent", "show", "adda").code == 5
    assert moot("agent", "list", "--json").out.startswith("[")


def test_a_mistake_in_an_agents_file_is_named_by_file_and_line(alone: Cli) -> None:
    (alone.folder / "agents").mkdir()
    (alone.folder / "agents" / "ada.md").write_text("---\nrole: skeptic\nmodle: demo\n---\n")
    done = alone("doctor")
    assert done.code == 1
    assert "agents/ada.md:3: 'modle' is not known here; did you mean 'model'?" in done.out
    (alone.folder / "agents" / "ada.md").write_text("---\nrole: skeptic\n---\n")
    assert re.search(r"agents +agents: ada$", alone("doctor").out, re.M)
    assert alone("serve", "--agents", "elsewhere").code == 2
