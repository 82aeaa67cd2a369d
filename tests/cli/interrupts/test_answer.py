"""moot approve, reject and answer: by number, by id, by run; and every way to be refused."""

import json
from typing import Any

import pytest

from tests.support.cli.commands import Cli, begun


def outputs(moot: Cli, run_id: str, node: str) -> Any:
    found = json.loads(moot("run", "show", run_id, "--json").out)
    assert found["status"] == "completed", found
    return found["nodeStates"][node]["outputs"]


def item_of(moot: Cli, run_id: str) -> Any:
    [item] = [row for row in json.loads(moot("inbox", "--json").out) if row["runId"] == run_id]
    return item


def test_an_approval_is_given_by_number_and_said_to_be(moot: Cli) -> None:
    run_id = begun(moot, "asks")
    done = moot("approve", item_of(moot, run_id)["number"], "--comment", "well done")
    assert done.code == 0
    assert done.out == f'Approved "Ship it?" (asks/gate): {run_id} ✓ completed\n'
    said = outputs(moot, run_id, "gate")
    assert (said["action"], said["comment"]) == ("accept", "well done")
    events = moot("run", "tail", run_id).out
    assert "⏸ asks (approval): Ship it?" in events
    assert "answered by key_" in events


def test_by_id_by_prefix_and_as_the_last_run(moot: Cli) -> None:
    named = begun(moot, "asks")
    assert moot("approve", item_of(moot, named)["id"]).code == 0
    prefixed = begun(moot, "asks")
    assert moot("approve", prefixed[:14]).code == 0
    last = begun(moot, "asks")
    answer = json.loads(moot("approve", "@last", "--json").out)
    assert (answer["runId"], answer["nodeId"], answer["status"]) == (last, "gate", "completed")
    assert answer["resumeValue"] == {"action": "accept"}


def test_an_edit_is_approved_in_place_of_what_was_shown(moot: Cli) -> None:
    run_id = begun(moot, "asks")
    done = moot("approve", run_id, "--edit", "-", stdin='{"price": 2}')
    assert done.out.startswith("Approved with the edit")
    assert outputs(moot, run_id, "gate")["editedArtifactData"] == {"price": 2}


def test_a_rejection_ends_the_run_and_a_refinement_goes_back(moot: Cli) -> None:
    rejected = begun(moot, "asks")
    assert "✗ failed" in moot("reject", rejected, "--comment", "too dear").out
    assert "too dear" in moot("run", "show", rejected).out
    refined = begun(moot, "asks")
    assert moot("reject", refined, "--refine", "cheaper").out.startswith("Sent back")
    events = map(json.loads, moot("run", "tail", refined, "--no-follow", "--json").lines())
    [received] = [event for event in events if event["type"] == "approval.received"]
    assert received["payload"]["action"] == "refine"
    assert received["payload"]["refineFeedback"] == {"scope": "whole", "text": "cheaper"}


def test_a_quorum_counts_votes_and_goes_on_waiting(moot: Cli) -> None:
    run_id = begun(moot, "asks-two")
    first = moot("approve", run_id, "--as", "bo")
    assert first.out.endswith("⏸ waiting-approval (1 of 2 have approved)\n")
    assert moot("approve", run_id, "--as", "cy").out.endswith("✓ completed\n")
    assert "granted by bo (1 of 2)" in moot("run", "tail", run_id).out


def test_one_question_is_answered_with_a_text(moot: Cli) -> None:
    run_id = begun(moot, "wonders")
    assert moot("answer", run_id, "5").out.startswith('Answered "Which colour?"')
    assert outputs(moot, run_id, "question")["answers"] == {"colour": "5"}
    piped = begun(moot, "wonders")
    assert moot("answer", piped, "-", stdin="from\nstdin").code == 0
    assert outputs(moot, piped, "question")["answers"] == {"colour": "from\nstdin"}


def test_several_questions_are_answered_by_their_names(moot: Cli) -> None:
    run_id = begun(moot, "wonders-twice")
    for words, said in (
        (("blue",), "--answer colour=TEXT --answer size=TEXT"),
        (("--answer", "colour=blue"), "not answered yet: size"),
        (("--answer", "colour=blue", "--answer", "shape=round"), "no question is called 'shape'"),
        (("--answer", "blue"), "write ID=TEXT"),
    ):
        done = moot("answer", run_id, *words)
        assert done.code == 2
        assert said in done.err
    assert moot("answer", run_id, "--answer", "colour=blue", "--answer", "size=7").code == 0
    assert outputs(moot, run_id, "question")["answers"] == {"colour": "blue", "size": 7}


def test_a_question_of_any_kind_takes_json_or_text(moot: Cli) -> None:
    for text, found in (('{"card": "ace"}', {"card": "ace"}), ("an ace", {"value": "an ace"})):
        run_id = begun(moot, "picks")
        assert moot("answer", run_id, text).code == 0
        assert outputs(moot, run_id, "pick") == found


def test_in_a_conversation_the_text_is_a_persons_turn(moot: Cli) -> None:
    run_id = begun(moot, "talks")
    assert moot("answer", run_id, "Lunch.").out.startswith('Said in "What now?" (talks/talk)')
    assert moot("answer", run_id, "Indeed.", "--as", "bo").code == 0
    events = moot("run", "tail", run_id, "--no-follow").out
    for said in ("host:ada  What now?", "user  Lunch.", "user:bo  Indeed."):
        assert said in events


def test_who_comes_too_late_learns_who_was_quicker(moot: Cli) -> None:
    run_id = begun(moot, "asks")
    name = item_of(moot, run_id)["id"]
    assert moot("approve", run_id).code == 0
    for words in (("approve", run_id), ("reject", run_id, "--node", "gate")):
        done = moot(*words)
        assert done.code == 1
        assert f"gate of {run_id} was answered by key_" in done.err
        assert "(approve)" in done.err
    gone = moot("approve", name)
    assert (gone.code, "answered already" in gone.err) == (5, True)


def test_a_lost_race_is_told_by_the_servers_details() -> None:
    from moot.cli.interrupts.questions import too_late_error
    from moot.wire.interrupts import AnsweredQuestion

    at = "2026-01-01T00:00:00.000000Z"
    last = AnsweredQuestion(node_id="gate", by="", at=at, action="rejected")
    assert "nobody had answered" in str(too_late_error("run_x", last))


def test_what_waits_for_nothing_is_said_to(moot: Cli) -> None:
    [run_id] = moot("run", "hello", "-d").lines()
    done = moot("approve", run_id)
    assert (done.code, f"nothing waits in {run_id}" in done.err) == (5, True)
    asking = begun(moot, "asks")
    wrong = moot("approve", asking, "--node", "gait")
    assert (wrong.code, "These do: gate." in wrong.err) == (5, True)
    none = moot("approve", 100_000)
    assert (none.code, "none with number 100000. See: moot inbox" in none.err) == (5, True)


def test_a_decision_is_no_answer_and_an_answer_no_decision(moot: Cli) -> None:
    asking, wondering = begun(moot, "asks"), begun(moot, "wonders")
    words = moot("answer", asking, "yes")
    assert (words.code, f"moot approve {asking}" in words.err) == (2, True)
    decision = moot("approve", wondering)
    assert (decision.code, f"moot answer {wondering} TEXT" in decision.err) == (2, True)
    assert moot("answer", wondering).code == 2
    assert moot("answer", wondering, "blue", "--as", "bo").code == 2


def test_an_action_the_gate_does_not_take_is_refused(moot: Cli) -> None:
    done = moot("reject", begun(moot, "asks-two"), "--refine", "more")
    assert (done.code, "This gate takes accept, reject." in done.err) == (1, True)


def test_where_several_wait_one_must_be_named(moot: Cli) -> None:
    run_id = begun(moot, "asks-beside", "Right?")
    several = moot("approve", run_id)
    assert several.code == 2
    for node in ("gate", "other"):
        assert f"{run_id} --node {node}" in several.err
    assert "Answer with" not in several.err
    assert moot("approve", run_id, "--node", "other").out.startswith('Approved "Right?"')
    assert moot("approve", run_id).out.startswith('Approved "Left?"')


def test_a_parents_question_is_that_of_its_child(moot: Cli) -> None:
    done = moot("run", "asks-below", "--json")
    parent = json.loads(done.out)["runId"]
    assert done.code == 4
    approved = moot("approve", parent)
    assert approved.out.startswith('Approved "Ship it?" (asks/gate)')
    assert moot("run", "tail", parent).code == 0


@pytest.mark.parametrize("command", ["approve", "reject", "answer"])
def test_a_run_nobody_knows_is_not_found(moot: Cli, command: str) -> None:
    words = ("x",) if command == "answer" else ()
    assert moot(command, "zz0", *words).code == 5
