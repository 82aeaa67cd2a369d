"""Councils said again and led elsewhere: a replay asks nobody, a fork asks for what is new."""

import os
import subprocess
import sys
from typing import Any

from tests.support.api.council_hall import Hall
from tests.support.model_provider import Reply
from tests.support.provider_project import Call, sensible, words
from tests.support.servers import server_environment

POLICY = {"mode": "round-robin", "rounds": 2, "vote": True, "close": "moderator"}


def held(hall: Hall, **policy: Any) -> str:
    """A council of three that has ended."""
    run_id = hall.convene("ada", "bo", "cy", "mo", moderator="mo", policy={**POLICY, **policy})
    hall.at_rest(run_id)
    return run_id


def types(hall: Hall, run_id: str) -> list[str]:
    return [event["type"] for event in hall.log(run_id)]


def diff(hall: Hall, one: str, other: str) -> dict[str, Any]:
    return dict(hall.ask("GET", f"/v1/runs/{one}:diff?against={other}"))


def verified(hall: Hall, run_id: str) -> dict[str, Any]:
    found = dict(hall.ask("POST", f"/v1/host/moot/runs/{run_id}:verify"))
    assert found["identical"], found["first"]
    return found


def seq_of_turn(hall: Hall, run_id: str, index: int) -> int:
    return next(
        int(event["sequence"])
        for event in hall.log(run_id)
        if event["type"] == "conversation.exchanged" and event["payload"]["turnIndex"] == index
    )


def test_a_replay_says_the_same_and_asks_nobody(hall: Hall) -> None:
    for policy in ({}, {"blind": True}, {"mode": "raise-hand", "rounds": 1}, {"mode": "moderated"}):
        run_id = held(hall, **policy)
        asked = hall.models.count
        again = hall.ask("POST", f"/v1/runs/{run_id}:fork", {"mode": "replay"})["runId"]
        assert hall.said(again) == hall.said(run_id)
        assert types(hall, again) == types(hall, run_id)
        found = diff(hall, run_id, again)
        assert found["divergedAtSeq"] is None, found["eventDiffs"][:1]
        verified(hall, run_id)
        verified(hall, again)
        assert hall.models.count == asked


def test_what_went_wrong_is_said_again_too(hall: Hall) -> None:
    def answer(call: Call) -> Reply:
        if call.agent == "Ada":
            return Reply(words=[], refusal="No.", finish="refusal")
        if call.agent == "Bo" and call.number < 4:
            return Reply(status=500, headers={"retry-after-ms": "1"}, error={"message": "no"})
        return words("hm") if call.task == "vote" else sensible(call)

    hall.models.answering = answer
    run_id = held(hall)
    assert hall.told(run_id, "moot.model.retried")
    asked = hall.models.count
    again = hall.ask("POST", f"/v1/runs/{run_id}:fork", {"mode": "replay"})["runId"]
    assert hall.said(again) == hall.said(run_id)
    assert types(hall, again) == types(hall, run_id)
    verified(hall, run_id)
    verified(hall, again)
    assert hall.models.count == asked


def test_a_fork_with_another_model_goes_on_with_it_from_there(hall: Hall) -> None:
    run_id = held(hall)
    asked = hall.models.count
    place = seq_of_turn(hall, run_id, 5)
    body = {"fromSeq": place + 1, "edit": {"models": {"host:cy": "other/grand"}}}
    fork = hall.ask("POST", f"/v1/host/moot/runs/{run_id}:fork", body)["runId"]
    hall.until(fork, lambda floor: floor["phase"] == "over" and not floor["speaking"])
    assert hall.said(fork)[:5] == hall.said(run_id)[:5]
    new = hall.models.calls[asked:]
    assert [call.agent for call in new][:2] == ["Cy", "Mo"]
    assert [call.anthropic for call in new if call.agent == "Cy"] == [True, True]
    turns = hall.turns(fork)
    assert turns[5]["agent"]["model"] == {"provider": "anthropic", "model": "grand"}
    assert hall.turns(run_id)[5]["agent"]["model"]["model"] == "big"
    assert [turn["turnIndex"] for turn in turns] == list(range(1, len(turns) + 1))
    assert len(new) == 5, "one turn, a synthesis, three votes"
    found = diff(hall, run_id, fork)
    places = [each["seq"] for each in found["eventDiffs"]]
    assert places[0] == 0, "the fork says which model it has instead"
    assert min(places[1:]) > place
    verified(hall, fork)


def test_the_difference_can_be_read(hall: Hall) -> None:
    run_id = held(hall)
    place = seq_of_turn(hall, run_id, 5)
    body = {"fromSeq": place + 1, "edit": {"models": {"cy": "demo"}}}
    fork = hall.ask("POST", f"/v1/host/moot/runs/{run_id}:fork", body)["runId"]
    hall.until(fork, lambda floor: floor["phase"] == "over" and not floor["speaking"])
    environment = server_environment(
        MOOT_URL=hall.server.url, MOOT_KEY=hall.server.key, NO_COLOR="1", COLUMNS="120"
    )
    shown = subprocess.run(
        [sys.executable, "-m", "moot.cli", "diff", run_id, fork],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert shown.returncode in (0, 1), shown.stderr
    said = hall.turns(fork)[5]["content"]
    assert said.split()[0] in shown.stdout
    assert hall.said(run_id)[5][1] in shown.stdout


def test_a_fork_in_the_middle_of_an_answer_does_not_ask_again_what_is_on_record(
    hall: Hall,
) -> None:
    run_id = held(hall, blind=True)
    log = hall.log(run_id)
    asked = hall.models.count
    finished = next(e for e in log if e["type"] == "moot.effect.finished")
    body = {"mode": "branch", "fromSeq": finished["sequence"] + 1}
    fork = hall.ask("POST", f"/v1/runs/{run_id}:fork", body)["runId"]
    hall.until(fork, lambda floor: floor["phase"] == "over" and not floor["speaking"])
    known = finished["payload"]["result"]["text"]
    assert known in [content for _, content in hall.said(fork)]
    speaker = finished["payload"]["providerKey"].removeprefix("model:").title()
    new = [call.agent for call in hall.models.calls[asked:] if call.task == "speak"]
    assert new.count(speaker) == 1, "in the second round; what it said in the first is known"
    verified(hall, fork)
