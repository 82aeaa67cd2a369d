"""moot flow: files are checked without a server and registered with one."""

import json

import pytest

from tests.support.cli.commands import Cli

GOOD = "workflow: good\nsteps:\n  - delay: 1s\n"


def write(cli: Cli, name: str, text: str) -> str:
    (cli.folder / name).write_text(text)
    return name


def test_a_good_file_is_called_fine(alone: Cli) -> None:
    done = alone("flow", "check", write(alone, "good.yaml", GOOD))
    assert (done.code, done.out) == (0, "good.yaml: good is fine (2 nodes)\n")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "step.yaml",
            "workflow: x\nsteps:\n  - dely: 1s\n",
            "step.yaml:3: there is no step 'dely'",
        ),
        ("type.yaml", "workflow: x\nsteps:\n  - delay: 1s\n  - node: core.nop\n", "type.yaml:4: "),
        ("yaml.yaml", "workflow: [\n", "yaml.yaml:"),
        ("cut.json", '{"id": "x",\n', "cut.json:2: this is not JSON"),
        ("more.json", '{"id": "x",\n"colour": 1}', "more.json:2: "),
    ],
)
def test_a_mistake_is_named_with_file_and_line(alone: Cli, name: str, text: str, said: str) -> None:
    done = alone("flow", "check", write(alone, name, text))
    assert done.code == 1
    assert f"error: {said}" in done.err


def test_the_nearest_word_is_offered(alone: Cli) -> None:
    text = "workflow: x\nsteps:\n  - node: core.nop\n"
    done = alone("flow", "check", write(alone, "near.yaml", text))
    assert "Did you mean 'core.noop'?" in done.err


def test_every_file_is_checked_and_one_mistake_fails_them_all(alone: Cli) -> None:
    bad = write(alone, "bad.yaml", "steps: []")
    good = write(alone, "good.yaml", GOOD)
    done = alone("flow", "check", "missing.yaml", bad, good, "--json")
    assert done.code == 1
    assert [json.loads(line)["ok"] for line in done.lines()] == [False, False, True]


def test_every_file_of_a_folder_is_checked(alone: Cli) -> None:
    (alone.folder / "flows").mkdir()
    write(alone, "flows/good.yaml", GOOD)
    write(alone, "flows/bad.yaml", "steps: []")
    write(alone, "flows/readme.txt", "not a workflow")
    done = alone("flow", "check", "flows", "--json")
    assert done.code == 1
    found = [json.loads(line) for line in done.lines()]
    assert [row["file"] for row in found] == ["flows/bad.yaml", "flows/good.yaml"]
    (alone.folder / "empty").mkdir()
    assert alone("flow", "check", "empty").code == 5


def test_a_child_that_nobody_knows_is_warned_of(moot: Cli, alone: Cli) -> None:
    text = "workflow: outer\nsteps: [{id: inner, run: good}]"
    outer, good = write(alone, "outer.yaml", text), write(alone, "good.yaml", GOOD)
    done = alone("flow", "check", outer, "--server", "127.0.0.1:1")
    assert done.code == 0
    assert "warning: outer.yaml: it runs the workflow 'good', which is neither" in done.err
    assert alone("flow", "check", outer, good).err == ""
    assert moot("flow", "check", "flows/parent.yaml").err == ""  # the server knows its child
    added = moot("flow", "add", write(moot, "lonely.yaml", text.replace("good", "nowhere")))
    assert added.code == 0
    assert "warning: lonely.yaml: it runs the workflow 'nowhere'" in added.err


def test_nodes_of_the_users_own_are_known_when_named(moot: Cli) -> None:
    assert "acme.flaky" in moot("flow", "check", "flows/flaky.yaml").err
    assert moot("flow", "check", "flows/flaky.yaml", "--nodes", "nodes.py").code == 0


def test_a_broken_node_file_is_refused_in_a_sentence(alone: Cli) -> None:
    write(alone, "nodes.py", "import nowhere_to_be_found")
    done = alone("flow", "check", write(alone, "good.yaml", GOOD), "--nodes", "nodes.py")
    assert done.code == 1
    assert "nodes.py cannot be loaded" in done.err


def test_an_added_file_is_listed_and_shown(moot: Cli) -> None:
    write(moot, "added.yaml", "workflow: added\ndescription: Fresh.\nsteps: [{delay: 1ms}]")
    assert "added 1.0.0 registered" in moot("flow", "add", "added.yaml").out
    assert "added\t1.0.0\t2\tapi\tFresh." in moot("flow", "list").lines()
    assert "delay-1\tcore.delay\tend" in moot("flow", "show", "added").lines()
    assert json.loads(moot("flow", "show", "added", "--json").out)["id"] == "added"


def test_a_file_with_a_mistake_is_not_added(moot: Cli) -> None:
    write(moot, "broken.yaml", "workflow: broken\nsteps:\n  - dely: 1s\n")
    done = moot("flow", "add", "broken.yaml")
    assert done.code == 1
    assert "broken.yaml:3:" in done.err


def test_an_unknown_workflow_exits_5(moot: Cli) -> None:
    assert moot("flow", "show", "nothing").code == 5
