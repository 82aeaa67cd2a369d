"""Nobody else's text draws on the screen; files and pipes get it to the byte."""

import json
import re
from pathlib import Path

import pytest

from tests.support.cli.commands import Cli, begun

#: erase the line, in the long and in the short form; go back; turn the writing around
SLY = "a\x1b[2Kb\x9b2Kc\rd\u202ee"
IN_YAML = r'"a\e[2Kb\x9b2Kc\rd\u202ee"'
OUR_COLOURS = re.compile("\x1b\\[[0-9;]*m")


def harmless(screen: str) -> bool:
    """No more than lines and our own colours. A terminal ends each line with CR LF."""
    text = OUR_COLOURS.sub("", screen).replace("\r\n", "\n")
    return not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sly")
    talk = f"{{prompt: {IN_YAML}, agentId: host:ada}}"
    for name, step in (
        ("sly-talks", f"{{id: talk, node: core.conversationGate, config: {talk}}}"),
        ("sly-fails", f"{{id: stop, fail: {{code: out_of_milk, message: {IN_YAML}}}}}"),
        ("sly-sets", f"{{set: {{said: {IN_YAML}}}}}"),
    ):
        (folder / f"{name}.yaml").write_text(f"workflow: {name}\nsteps: [{step}]\n")
    return folder


@pytest.fixture
def sly(moot: Cli, flows: Path) -> Cli:
    assert moot("flow", "add", flows).code == 0
    return moot


@pytest.mark.parametrize("form", ["md", "html", "json"])
def test_minutes_are_harmless_on_a_screen_and_exact_in_a_pipe(sly: Cli, form: str) -> None:
    run_id = begun(sly, "sly-talks")
    screen = sly.on_terminal("thread", "export", run_id, "-f", form).out
    assert harmless(screen)
    assert "b" in screen
    sly("thread", "export", run_id, "-f", form, "-o", "minutes", "--force")
    written = (sly.folder / "minutes").read_bytes().decode()
    assert "\u202e" in written
    # the helper reads with universal newlines, and this text has a bare carriage return in it
    assert sly("thread", "export", run_id, "-f", form).out == written.replace("\r", "\n")
    sly("thread", "close", run_id)


def test_a_workflows_name_is_harmless(sly: Cli) -> None:
    node = {"id": "nap", "typeId": "core.noop", "config": {}, "name": "n", "inputs": {},
            "position": {"x": 0, "y": 0}}  # fmt: skip
    body = {"id": "sly-name", "name": SLY, "version": "1.0.0", "nodes": [node], "edges": [],
            "triggers": [], "variables": [], "metadata": {}, "settings": {}}  # fmt: skip
    assert sly("api", "POST", "/v1/host/moot/workflows", "-d", json.dumps(body)).code == 0
    screen = sly.on_terminal("flow", "show", "sly-name").out
    assert harmless(screen)
    assert "sly-name" in screen


def test_why_a_run_failed_is_harmless(sly: Cli) -> None:
    done = sly.on_terminal("run", "sly-fails")
    assert done.code == 1
    assert harmless(done.out)
    assert "out_of_milk: a\ufffd[2Kb\ufffd2Kc d\ufffde" in done.out.splitlines()[-1]
    assert "\x9b" in sly("run", "sly-fails").err


@pytest.mark.parametrize("words", ["why {0}@3", "diff {0} {1}", "tree {0}", "fork {0}@3"])
def test_looking_back_is_harmless(sly: Cli, words: str) -> None:
    flows = ("sly-sets", "hello")
    runs = [json.loads(sly("run", flow, "--json").out)["runId"] for flow in flows]
    assert sly("fork", f"{runs[0]}@2", "--note", SLY, "--set", f"said={SLY}").code == 0
    done = sly.on_terminal(*words.format(*runs).split())
    assert done.code == 0
    assert harmless(done.out)
    assert len(sly(*words.format(*runs).split()).out.split("\x1b")) == 1


@pytest.mark.parametrize("words", ["run show @last --json", "run tail @last --json"])
def test_json_is_harmless_on_a_screen_and_still_says_all(sly: Cli, words: str) -> None:
    assert sly("run", "sly-sets").code == 0
    screen = sly.on_terminal(*words.split()).out
    assert harmless(screen)
    assert "\\u009b2K" in screen
    assert "\\u202e" in screen
    assert "\x9b" in sly(*words.split()).out


def test_an_answer_of_the_server_is_harmless_on_a_screen(sly: Cli) -> None:
    run_id = sly("run", "sly-sets", "-d").lines()[0]
    for words in (["GET", f"/v1/runs/{run_id}", "-i"], ["GET", f"/v1/runs/{run_id}/events"]):
        screen = sly.on_terminal("api", *words).out
        assert harmless(screen)
        assert "2K" in screen
    assert "\x9b" in sly("api", "GET", f"/v1/runs/{run_id}").out
