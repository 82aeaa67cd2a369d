"""moot fork --edit: an event written anew in whatever editor somebody has."""

import json
from pathlib import Path

import pytest

from tests.support.cli.commands import Cli
from tests.support.cli.runs import (
    answered,
    events,
    finished,
    forked,
    newest,
    place,
    shown,
    supervised,
    talked,
    waiting,
)  # fmt: skip


@pytest.fixture
def editor(tmp_path: Path) -> Path:
    """A program that keeps what it is given, and writes what lies beside it."""
    file = tmp_path / "editor"
    file.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/seen\ncp {tmp_path}/new "$1"\n')
    file.chmod(0o755)
    return file


def writes(editor: Path, text: str) -> dict[str, str]:
    """The environment in which this is what somebody writes."""
    (editor.parent / "new").write_text(text)
    return {"EDITOR": str(editor)}


def seen(editor: Path) -> str:
    return (editor.parent / "seen").read_text()


def test_a_turn_is_edited_as_text(moot: Cli, editor: Path) -> None:
    source = talked(moot, "Tea?\nOr coffee?")
    at = place(moot, source, "conversation.exchanged")
    made = forked(moot, f"{source}@{at}", "--edit", **writes(editor, "Coffee.\n"))
    assert seen(editor) == "Tea?\nOr coffee?\n"
    assert events(moot, made["runId"])[at]["payload"]["turn"]["content"] == "Coffee."


def test_a_decision_is_edited_as_json(moot: Cli, editor: Path) -> None:
    source = supervised(moot)
    at = place(moot, source, "runOrchestrator.decided")
    new = {"kind": "terminate", "reason": "enough"}
    made = forked(moot, f"{source}@{at}", "--edit", **writes(editor, json.dumps(new)))
    assert json.loads(seen(editor))["nextWorkerIds"] == ["hello"]
    assert events(moot, made["runId"])[at]["payload"]["decision"] == new


def test_an_answer_is_edited_by_any_of_its_events(moot: Cli, editor: Path) -> None:
    source = answered(moot, "reject", comment="no")
    at = place(moot, source, "approval.received")
    made = forked(moot, f"{source}@{at}", "--edit", **writes(editor, '{"action": "accept"}'))
    assert json.loads(seen(editor)) == {"action": "reject", "comment": "no"}
    assert shown(moot, made["runId"])["status"] == "completed"
    assert made["fromSeq"] == at - 1


def test_a_vote_of_several_is_edited(moot: Cli, editor: Path) -> None:
    source = waiting(moot, "asks-two")
    assert moot("approve", source, "--as", "ann").code == 0
    at = place(moot, source, "moot.approval.granted")
    reject = '{"action": "reject", "voter": "user:ann"}'
    made = forked(moot, f"{source}@{at}", "--edit", **writes(editor, reject))
    assert json.loads(seen(editor)) == {"action": "accept"}
    assert "moot.approval.rejected" in [event["type"] for event in events(moot, made["runId"])]


def test_inputs_and_variables_are_edited_where_they_were_set(moot: Cli, editor: Path) -> None:
    source = finished(moot, "hello", name="Ada")
    made = forked(moot, f"{source}@0", "--edit", **writes(editor, '{"name": "Bo"}'))
    assert json.loads(seen(editor)) == {"name": "Ada"}
    assert shown(moot, made["runId"])["outputs"] == {"greeting": "Bo"}
    at = place(moot, source, "variable.changed")
    made = forked(moot, f"{source}@{at}", "--edit", **writes(editor, '"Cy"'))
    assert json.loads(seen(editor)) == "Ada"
    assert shown(moot, made["runId"])["outputs"] == {"greeting": "Cy"}


def test_what_is_left_as_it_was_makes_no_fork(moot: Cli, editor: Path) -> None:
    source = finished(moot, "hello", name="Ada")
    same = writes(editor, '{\n  "name": "Ada"\n}\n')
    for environment in ({"EDITOR": "true"}, same, {"VISUAL": "true", "EDITOR": "false"}):
        done = moot("fork", f"{source}@0", "--edit", **environment)
        assert (done.code, done.err) == (1, "error: nothing changed, no fork made.\n")
    assert newest(moot) == source


def test_what_cannot_be_read_makes_no_fork(moot: Cli, editor: Path) -> None:
    source = finished(moot, "hello")
    done = moot("fork", f"{source}@0", "--edit", **writes(editor, '{"name": '))
    assert done.code == 1
    assert done.err.startswith("error: that is not JSON: ")
    assert done.err.endswith("; no fork made.\n")
    assert moot("fork", f"{source}@0", "--edit", EDITOR="false").code == 1
    assert newest(moot) == source


def test_without_a_terminal_an_editor_must_be_named(moot: Cli) -> None:
    source = finished(moot, "hello")
    done = moot("fork", f"{source}@0", "--edit", EDITOR="", VISUAL="")
    assert (done.code, "or use --set" in done.err) == (2, True)


def test_one_thing_is_not_changed_twice(moot: Cli, editor: Path) -> None:
    source = finished(moot, "hello")
    words = ("--edit", "--set", "input.name=Bo")
    done = moot("fork", f"{source}@0", *words, **writes(editor, '{"name": "Cy"}'))
    assert (done.code, "use one" in done.err) == (2, True)
