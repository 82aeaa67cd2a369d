"""A run that only a person can help on: exit code 4, what it waits for, and how to answer."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from moot.config.settings import Settings
from tests.support.cli.commands import Cli, begun
from tests.support.servers import server_environment

#: seconds until a stream shows that nothing comes
QUIET = Settings().keepalive_s


@pytest.mark.parametrize("how", ["--watch", "--no-watch"])
@pytest.mark.parametrize(
    ("flow", "said"),
    [
        ("asks", '"Ship it?" (asks/gate). Answer with: moot approve {run} (or reject)'),
        ("wonders", '"Which colour?" (wonders/question). Answer with: moot answer {run} TEXT'),
        ("talks", '"What now?" (talks/talk). Answer with: moot answer {run} TEXT'),
        ("wonders-twice", "moot answer {run} --answer colour=TEXT --answer size=TEXT"),
    ],
)
def test_a_run_that_waits_for_a_person_exits_4_and_says_how_to_answer(
    moot: Cli, flow: str, said: str, how: str
) -> None:
    begins = time.monotonic()
    done = moot("run", flow, how)
    assert time.monotonic() - begins < QUIET  # at once, not when the stream is found quiet
    assert done.code == 4
    run_id = json.loads(moot("run", "show", "@last", "--json").out)["runId"]
    line = done.err.splitlines()[-1]
    assert line.startswith(f"{run_id} waits for a person: ")
    assert line.endswith(said.format(run=run_id))


def test_all_of_its_events_are_shown_before(moot: Cli) -> None:
    events = [json.loads(line) for line in moot("run", "asks", "--watch", "--json").lines()]
    found = json.loads(moot("run", "show", "@last", "--json").out)
    assert len(events) == found["metrics"]["eventCount"]


def test_a_parent_names_the_command_that_helps_its_child(moot: Cli) -> None:
    begins = time.monotonic()
    done = moot("run", "asks-below", "--watch")
    assert time.monotonic() - begins < QUIET
    assert done.code == 4
    parent = json.loads(moot("run", "show", "@last", "--json").out)
    [child] = parent["childRuns"]
    assert f"{parent['runId']} waits for a person" in done.err
    assert f"moot approve {child['runId']}" in done.err


def test_work_beside_a_question_is_finished_before_it_exits(moot: Cli) -> None:
    done = moot("run", "asks-beside", "--watch")
    assert done.code == 4
    assert "nap" in done.out
    run_id = done.lines()[0]
    assert f"moot approve {run_id} --node gate" in done.err
    assert "1 more: moot inbox" in done.err


def test_tail_exits_4_too_and_show_does_not(moot: Cli) -> None:
    run_id = begun(moot, "asks")
    for words in ((), ("--after", 4), ("--after", 99)):
        begins = time.monotonic()
        done = moot("run", "tail", run_id, *words)
        assert time.monotonic() - begins < QUIET
        assert (done.code, f"moot approve {run_id}" in done.err) == (4, True)
    assert moot("run", "tail", run_id, "--no-follow").code == 0
    shown = moot("run", "show", run_id)
    assert (shown.code, f"moot approve {run_id}" in shown.err) == (0, True)


@contextmanager
def following(moot: Cli, *words: str) -> Iterator["subprocess.Popen[str]"]:
    watcher = subprocess.Popen(
        [sys.executable, "-m", "moot.cli", "run", *words, "--json"], cwd=moot.folder,
        env=server_environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield watcher
    finally:
        watcher.kill()
        watcher.communicate()


def test_told_to_wait_it_stays_until_somebody_has_answered(moot: Cli) -> None:
    with following(moot, "asks", "--watch", "--wait") as watcher:
        assert watcher.stdout is not None
        event = json.loads(watcher.stdout.readline())
        run_id = event["runId"]
        while event["type"] != "approval.requested":
            event = json.loads(watcher.stdout.readline())
        time.sleep(0.5)
        assert watcher.poll() is None
        assert moot("approve", run_id).code == 0
        events = [json.loads(line) for line in watcher.stdout]
        assert events[-1]["type"] == "run.completed"
        assert watcher.wait(60) == 0


def test_what_was_answered_long_ago_does_not_stop_the_tail(moot: Cli) -> None:
    run_id = begun(moot, "asks-beside", "Right?")
    moot("approve", run_id, "--node", "gate")
    waiting = moot("run", "tail", run_id)
    assert (waiting.code, '"Right?"' in waiting.err) == (4, True)
    moot("approve", run_id)
    assert moot("run", "tail", run_id).code == 0


@pytest.fixture(scope="module")
def lead(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a workflow whose supervisor asks a person."""
    nodes = {
        "boss": (
            "core.orchestrator.supervisor",
            {"plan": [{"kind": "ask-user", "prompt": "Send?"}]},
        ),
        "hands": ("core.dispatch", {}),
    }
    edges = [("boss", "hands"), ("hands", "boss")]
    flow = {
        "id": "lead", "name": "lead", "version": "1.0.0", "triggers": [], "variables": [],
        "metadata": {}, "settings": {},
        "nodes": [
            {"id": name, "name": name, "typeId": kind, "config": config, "inputs": {},
             "position": {"x": 0, "y": 0}}
            for name, (kind, config) in nodes.items()
        ],
        "edges": [{"id": a, "sourceNodeId": a, "targetNodeId": b} for a, b in edges],
    }  # fmt: skip
    file = tmp_path_factory.mktemp("lead") / "lead.json"
    file.write_text(json.dumps(flow))
    return str(file)


@pytest.mark.parametrize("how", [["--no-prompt"], ["--json"], ["--json", "--from-start"]])
def test_who_watches_a_conversation_that_nobody_leads_is_told_that_it_waits(
    moot: Cli, lead: str, how: list[str]
) -> None:
    for flow, node in ((lead, "hands"), ("talks", "talk")):
        run_id = begun(moot, flow)
        done = moot("watch", run_id, *how)
        assert done.code == 4
        assert done.err.splitlines()[-1].endswith(f"Answer with: moot answer {run_id} TEXT")
        opened = "conversation.opened" in done.out
        assert opened is ("--from-start" in how), done.out
        assert "--json" in how or f"{run_id}~{node}~1" in done.out
