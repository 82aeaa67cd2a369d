"""moot run: start, follow, look, act."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli.commands import SERVER_ARGUMENTS, Cli, write_flows
from tests.support.servers import ServerProcess, server_environment


def test_a_completed_run_exits_0_and_shows_its_outputs(moot: Cli) -> None:
    done = moot("run", "hello", "--input", "name=Ada")
    assert done.code == 0
    assert "✓ completed" in done.err
    assert json.loads(done.out) == {"greeting": "Ada"}


def test_a_failed_run_exits_1_and_says_why(moot: Cli) -> None:
    done = moot("run", "breaks")
    assert done.code == 1
    assert done.out == ""
    assert "✗ failed" in done.err
    assert "out_of_milk: no milk" in done.err


def test_a_misspelt_input_is_warned_of_and_the_run_starts_all_the_same(moot: Cli) -> None:
    done = moot("run", "hello", "-i", "nmae=Ada")
    assert done.code == 0
    assert "warning: hello declares no input 'nmae'. Did you mean 'name'?" in done.err
    assert "warning" not in moot("run", "hello", "-i", "name=Ada").err


def test_help_shows_the_options_of_starting(moot: Cli) -> None:
    said = moot("run", "--help").out
    for option in ("--input", "--watch", "--detach", "--timeout", "cancel"):
        assert option in said


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("5", 5), ("true", True), ("[1, 2]", [1, 2]), ('"5"', "5"), ("a=b", "a=b"), ("", "")],
)
def test_a_value_is_json_if_it_can_be_and_text_otherwise(
    moot: Cli, typed: str, meant: object
) -> None:
    done = moot("run", "hello", "--no-watch", "--json", "-i", f"name={typed}")
    assert json.loads(done.out)["inputs"] == {"name": meant}


def test_inputs_come_from_files_and_stdin_and_the_last_one_wins(moot: Cli, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"name": "file"}')
    given = ["run", "hello", "--no-watch", "--json", "-i", f"@{tmp_path}/in.json"]
    assert json.loads(moot(*given).out)["inputs"] == {"name": "file"}
    done = moot(*given, "-i", "-", stdin='{"name": "stdin"}')
    assert json.loads(done.out)["inputs"] == {"name": "stdin"}


@pytest.mark.parametrize(
    ("typed", "said"),
    [("name", "write K=V"), ("@nowhere.json", "cannot be read"), ("-", "is not JSON")],
)
def test_an_input_that_cannot_be_read_is_a_usage_mistake(moot: Cli, typed: str, said: str) -> None:
    done = moot("run", "hello", "-i", typed)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert said in done.err


def test_watching_shows_nodes_retries_and_progress(moot: Cli) -> None:
    done = moot("run", "flaky", "--watch")
    assert done.code == 0
    assert "try" in done.out
    assert "RuntimeError" in done.out or "not yet" in done.out
    assert "again in" in done.out
    assert "started again (attempt 2)" in done.out
    assert "[2 of 2]" in done.out


def test_watching_as_json_gives_one_event_per_line(moot: Cli) -> None:
    events = [json.loads(line) for line in moot("run", "hello", "--watch", "--json").lines()]
    assert [event["sequence"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "run.completed"


def test_on_a_terminal_events_are_shown_without_asking(moot: Cli) -> None:
    assert "[1 of 2]" in moot.on_terminal("run", "hello").out
    assert "[1 of 2]" not in moot("run", "hello").out


def test_detached_prints_nothing_but_the_id(moot: Cli) -> None:
    done = moot("run", "slow", "--detach", "--tag", "night")
    [run_id] = done.lines()
    found = json.loads(moot("run", "show", run_id, "--json").out)
    assert found["tags"] == ["night"]
    assert moot("run", "cancel", run_id).code == 0


def test_a_timeout_exits_3_and_leaves_the_run_alone(moot: Cli) -> None:
    done = moot("run", "slow", "--timeout", "0.3")
    assert done.code == 3
    run_id = done.err.split("moot run tail ")[1].strip()
    assert json.loads(moot("run", "show", run_id, "--json").out)["status"] == "running"
    assert moot("run", "cancel", run_id).code == 0


def test_an_unknown_workflow_exits_5_with_the_nearest_name(moot: Cli) -> None:
    done = moot("run", "helo")
    assert done.code == 5
    assert "Did you mean 'hello'?" in done.err


def test_a_mistyped_command_is_recognised(moot: Cli) -> None:
    assert "moot run show" in moot("run", "shwo").err


def test_a_workflow_called_like_a_command_is_started_with_start(moot: Cli) -> None:
    assert "like-a-command" in moot("run", "start", "list", "--watch").out


def test_a_file_is_registered_and_run(moot: Cli, tmp_path: Path) -> None:
    (tmp_path / "new.yaml").write_text("workflow: brand-new\nsteps: [{set: {x: 1}}]")
    done = moot("run", f"{tmp_path}/new.yaml", "--json")
    assert json.loads(done.out)["workflowId"] == "brand-new"


def test_any_unique_prefix_and_last_name_a_run(moot: Cli) -> None:
    [run_id] = moot("run", "hello", "-d").lines()
    for name in (run_id, run_id[:12], run_id[4:14], "@last"):
        assert json.loads(moot("run", "show", name, "--json").out)["runId"] == run_id


def test_a_prefix_of_several_runs_or_of_none_is_refused(moot: Cli) -> None:
    moot("run", "hello", "-d")
    moot("run", "hello", "-d")
    several = moot("run", "show", "run_")
    assert (several.code, "several runs" in several.err) == (2, True)
    none = moot("run", "show", "zz0")
    assert (none.code, "See: moot run list" in none.err) == (5, True)


def test_a_run_can_be_paused_resumed_and_cancelled(moot: Cli) -> None:
    [run_id] = moot("run", "slow", "-d").lines()
    assert "⏸ paused" in moot("run", "pause", run_id, "--now", "--reason", "lunch").out
    assert "run paused (lunch)" in moot("run", "tail", run_id, "--no-follow").out
    assert "running" in moot("run", "resume", run_id).out
    again = moot("run", "resume", run_id)
    assert again.code == 1
    assert again.err.startswith("error: The run")
    assert "pauses once" in moot("run", "pause", run_id, "--reason", "tea").out
    assert "⏸ running, pausing" in moot("run", "show", run_id).out
    assert f"{run_id}\tslow\trunning, pausing\t" in moot("run", "list").out
    events = moot("run", "tail", run_id, "--no-follow").out
    assert "run will pause once its running nodes are done (tea)" in events
    assert "✗ cancelled" in moot("run", "cancel", run_id, "--reason", "too late").out
    assert "run cancelled (too late)" in moot("run", "tail", run_id, "--no-follow").out
    assert "reason    too late" in moot("run", "show", run_id).out


def test_cancel_takes_several_runs_and_answers_with_a_line_for_each(moot: Cli) -> None:
    runs = [moot("run", "slow", "-d").lines()[0] for _ in range(2)]
    done = moot("run", "cancel", *runs, "--json")
    assert [json.loads(line)["status"] for line in done.lines()] == ["cancelled"] * 2
    assert moot("run", "tail", runs[0]).code == 1


def test_the_list_is_filtered_and_paged(moot: Cli) -> None:
    for _ in range(3):
        moot("run", "hello", "-d")
    rows = [line.split("\t") for line in moot("run", "list", "--flow", "hello", "-n", 2).lines()]
    assert [row[1] for row in rows] == ["hello", "hello"]
    assert (
        json.loads(moot("run", "list", "--flow", "hello", "--status", "waiting", "--json").out)
        == []
    )
    assert "is not a status" in moot("run", "list", "--status", "sleepy").err


def test_children_are_listed_by_their_parent(moot: Cli) -> None:
    parent = json.loads(moot("run", "parent", "--json").out)["runId"]
    rows = moot("run", "list", "--parent", parent).lines()
    assert [row.split("\t")[1] for row in rows] == ["hello"]
    assert rows[0].split("\t")[7] == parent


def test_last_is_the_parent_and_a_finished_node_waits_for_nothing(moot: Cli) -> None:
    parent = json.loads(moot("run", "parent", "--json").out)["runId"]
    said = moot("run", "show", "@last").out
    assert said.startswith(parent)
    assert "child\tcompleted" in said
    assert "waits for" not in said


def test_tail_shows_the_past_and_can_start_anywhere(moot: Cli) -> None:
    moot("run", "hello")
    events = moot("run", "tail", "@last", "--json", "--after", 4).lines()
    assert [json.loads(line)["sequence"] for line in events] == [5, 6]
    assert moot("run", "tail", "@last", "--json", "--no-follow").lines()[5:] == events


def test_tail_shows_a_long_past_to_its_end(moot: Cli) -> None:
    assert moot("run", "chatty", "-q").code == 0
    shown = moot("run", "tail", "@last", "--no-follow", "--json").lines()
    events = [json.loads(line) for line in shown]
    assert [event["sequence"] for event in events] == list(range(len(events)))
    assert (len(events) > 1200, events[-1]["type"]) == (True, "run.completed")


def test_following_goes_on_over_a_crash_and_restart_of_the_server(tmp_path: Path) -> None:
    write_flows(tmp_path)
    (tmp_path / "flows" / "short.yaml").write_text("workflow: short\nsteps: [{delay: 2s}]")
    server = ServerProcess(tmp_path, SERVER_ARGUMENTS, server_environment())
    watcher = subprocess.Popen(
        [sys.executable, "-m", "moot.cli", "run", "short", "--watch", "--json"],
        cwd=tmp_path, env=server_environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert watcher.stdout is not None
        seen = [json.loads(watcher.stdout.readline())]
        server.kill()
        server.start()
        seen += [json.loads(line) for line in watcher.stdout]
        assert [event["sequence"] for event in seen] == list(range(len(seen)))
        assert seen[-1]["type"] == "run.completed"
        assert watcher.wait(60) == 0
    finally:
        watcher.kill()
        watcher.communicate()
        server.kill()


def test_ctrl_c_leaves_the_run_alone_and_says_how_to_come_back(moot: Cli) -> None:
    watcher = subprocess.Popen(
        [sys.executable, "-m", "moot.cli", "run", "slow", "--watch"], cwd=moot.folder,
        env=server_environment(PYTHONUNBUFFERED="1"), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert watcher.stdout is not None
    run_id = watcher.stdout.readline().strip()
    while "waits" not in watcher.stdout.readline():
        pass
    watcher.send_signal(signal.SIGINT)
    _, said = watcher.communicate(timeout=60)
    assert watcher.returncode == 130
    assert f"moot run tail {run_id}" in said
    assert "✗ cancelled" in moot("run", "cancel", run_id).out
