"""moot fork: another life from an event of a run, and what becomes of it beside the first."""

import json

import pytest

from tests.support.cli.commands import Cli
from tests.support.cli.runs import (
    answered,
    events,
    finished,
    forked,
    newest,
    place,
    replayed,
    resolved,
    shown,
    supervised,
    talked,
    waiting,
)  # fmt: skip


def test_a_fork_has_the_history_up_to_the_event_and_goes_on(moot: Cli) -> None:
    source = finished(moot, "hello", name="Ada")
    before = events(moot, source)
    done = moot("fork", f"{source}@3", "--watch")
    assert done.code == 0
    run_id, said = done.lines()[0].split("\t")
    assert said == f"branch of {source} at #3"
    assert [line.split()[1] for line in done.lines()[1:4]] == ["#4", "#5", "#6"]
    told = events(moot, run_id)
    assert [event["type"] for event in told] == [event["type"] for event in before]
    assert told[0]["payload"]["forkedFrom"]["fromSeq"] == 4
    assert events(moot, source) == before
    diff = moot("diff", source, run_id, "--exit-code")
    assert (diff.code, " same     nothing differs" in diff.lines()) == (0, True)


def test_a_terminal_gets_short_ids(moot: Cli) -> None:
    source = finished(moot, "hello")
    said = moot.on_terminal("fork", f"{source[:14]}@3").out.strip()
    assert said.endswith(f"  branch of {source[:12]} at #3")
    assert len(said.split()[0]) == 12


def test_a_variable_is_set_where_they_part(moot: Cli) -> None:
    source = finished(moot, "hello", name="Ada")
    for name in ("greeting", "var.greeting"):
        made = forked(moot, f"{source}@3", "--set", f'{name}={{"x": 1}}')
        assert shown(moot, made["runId"])["outputs"] == {"greeting": {"x": 1}}
    lines = moot("diff", source, made["runId"]).lines()
    assert ' change   variable.greeting  Ada → {"x": 1}' in lines


def test_an_input_is_changed_at_the_start_and_nowhere_else(moot: Cli) -> None:
    source = finished(moot, "hello", name="Ada")
    made = forked(moot, f"{source}@0", "--set", "input.name=Bo")
    assert shown(moot, made["runId"])["outputs"] == {"greeting": "Bo"}
    lines = moot("diff", source, made["runId"]).lines()
    assert lines[:2] == [" common   #0\u2013#1  (2 events)", " change   input.name  Ada → Bo"]
    late = moot("fork", f"{source}@2", "--set", "input.name=Bo")
    assert late.code == 2
    assert f"moot fork {source}@0 --set input.name=…" in late.err


def test_another_model_is_told_by_the_diff(moot: Cli) -> None:
    source = finished(moot, "hello")
    made = forked(moot, f"{source}@1", "--set", "model.ada=demo", "--note", "a cheaper one")
    lines = moot("diff", source, made["runId"]).lines()
    assert " change   model.ada  nothing → demo" in lines
    assert ' note     "a cheaper one"' in lines
    twin = replayed(moot, made["runId"], 3)
    lines = moot("diff", source, twin).lines()
    assert f" fork     B is a replay of {made['runId']} at #2" in lines


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_an_answer_is_turned_around_by_any_of_its_events(moot: Cli, offset: int) -> None:
    source = answered(moot, "reject", comment="no")
    at = place(moot, source, "interrupt.resolved")
    done = moot("fork", f"{source}@{at + offset}", "--set", "answer=approve", "--watch")
    assert done.code == 0
    said = f"branch of {source} at #{at - 1}, with another answer at #{at}"
    assert done.lines()[0].split("\t")[1] == said
    assert "✓ completed" in done.out
    lines = moot("diff", source, "@last").lines()
    assert f" change   answer #{at}" in lines
    assert " outcome  failed (approval_rejected) → completed" in lines


def test_words_and_json_answer_other_questions(moot: Cli) -> None:
    source = waiting(moot, "wonders")
    resolved(moot, source, "question", {"answers": {"colour": "blue"}})
    at = place(moot, source, "interrupt.resolved")
    made = forked(moot, f"{source}@{at}", "--set", "answer=red")
    told = events(moot, made["runId"])[at]
    assert told["payload"]["resumeValue"] == {"answers": {"colour": "red"}}
    many = waiting(moot, "wonders-twice")
    resolved(moot, many, "question", {"answers": {"colour": "blue", "size": 7}})
    refused = moot("fork", f"{many}@{at}", "--set", "answer=red")
    assert (refused.code, '{"answers": {"colour": "…", "size": "…"}}' in refused.err) == (2, True)
    whole = '{"answers": {"colour": "red", "size": 8}}'
    made = forked(moot, f"{many}@{at}", "--set", f"answer={whole}")
    assert events(moot, made["runId"])[at]["payload"]["resumeValue"] == json.loads(whole)


def test_a_turn_is_said_otherwise(moot: Cli) -> None:
    source = talked(moot, "Two of three sources", "Good.")
    at = place(moot, source, "conversation.exchanged")
    made = forked(moot, f"{source}@{at}", "--set", "turn=Two of four sources")
    lines = moot("diff", source, made["runId"]).lines()
    assert f" change   turn #{at}" in lines
    assert f" ~ #{at}   talk  user  Two of [-three-] {{+four+}} sources" in lines
    assert any(line.startswith(f" - #{at + 1}") and line.endswith("Good.") for line in lines)


def test_a_decision_is_made_otherwise(moot: Cli) -> None:
    source = supervised(moot)
    at = place(moot, source, "runOrchestrator.decided")
    made = forked(
        moot, f"{source}@{at}", "--set", 'decision={"kind": "terminate", "reason": "enough"}'
    )
    assert shown(moot, made["runId"])["outputs"] == {"reason": "enough"}
    assert moot("tree", made["runId"]).lines()[1:] == []
    assert moot("fork", f"{source}@{at}", "--set", "decision=stop").code == 2


def test_a_note_is_shown_wherever_the_fork_is(moot: Cli) -> None:
    source = finished(moot, "hello")
    made = forked(moot, f"{source}@2", "--note", "what if")
    assert made["note"] == "what if"
    [row] = moot("tree", source).lines()[1:]
    assert row.split("\t") == [
        "1", "branch", "2", made["runId"], "hello", "completed", source, "what if",
    ]  # fmt: skip
    assert f'#2 {made["runId"][:12]}  branch  ✓ completed  "what if"' in (
        moot.on_terminal("tree", source, NO_COLOR="1").out
    )
    assert f"run started, branch of {source} at #2" in moot("why", f"{made['runId']}@3").out


def test_a_fork_that_waits_for_a_person_says_so(moot: Cli) -> None:
    source = answered(moot, "accept")
    done = moot("fork", f"{source}@4", "--watch")
    run_id = done.lines()[0].split("\t")[0]
    assert done.code == 4
    assert f"moot approve {run_id}" in done.err
    assert moot("reject", run_id).code == 0
    assert " outcome  completed → failed (approval_rejected)" in moot("diff", source, run_id).out


def test_watched_as_json_it_is_one_event_per_line(moot: Cli) -> None:
    source = finished(moot, "hello")
    done = moot("fork", f"{source}@3", "--watch", "--json")
    assert [json.loads(line)["sequence"] for line in done.lines()] == [4, 5, 6]


def test_an_answer_that_nobody_could_give_makes_no_fork(moot: Cli) -> None:
    source = answered(moot, "accept")
    at = place(moot, source, "interrupt.resolved")
    done = moot("fork", f"{source}@{at}", "--set", "answer=perhaps")
    assert (done.code, "accept" in done.err) == (1, True), done.err
    assert newest(moot) == source


# -- what is refused -----------------------------------------------------------------------------


def test_a_run_without_a_place_is_told_what_to_type(moot: Cli) -> None:
    source = finished(moot, "hello")
    done = moot("fork", "@last")
    assert done.code == 2
    assert f"name an event of the run, too: moot fork {source}@6." in done.err


@pytest.mark.parametrize(
    ("at", "words", "code", "said"),
    [
        (3, ("--set", "x"), 2, "write K=V"),
        (3, ("--set", "=x"), 2, "write K=V"),
        (3, ("--set", "modle.ada=x"), 2, "Did you mean 'model.ada'?"),
        (3, ("--set", "a.b=1"), 2, "--set var.a.b=V"),
        (3, ("--set", "answer=reject"), 2, "#3 (node.completed) is no answer."),
        (3, ("--edit",), 2, "is nothing that somebody said. These would do: #0 run.started"),
        (3, ("--set", "turn=x"), 1, "edit.turn needs a turn of a conversation at event 3"),
        (6, ("--set", "x=1"), 1, "fork before its end"),
        (9, (), 5, "its last one is #6"),
        (3, ("--set", "decision={}"), 1, "edit.decision needs a supervisor's decision"),
        (3, ("--note", "n" * 501), 1, "note"),
    ],
)  # fmt: skip
def test_what_cannot_be_forked_makes_no_run(
    moot: Cli, at: int, words: tuple[str, ...], code: int, said: str
) -> None:
    source = finished(moot, "hello")
    done = moot("fork", f"{source}@{at}", *words)
    assert (done.code, said in done.err) == (code, True), done.err
    assert newest(moot) == source
