"""Councils longer than anybody is told: what is hidden is counted, or summed up by name."""

from itertools import pairwise
from typing import Any

import pytest

from tests.support.api.council_hall import Hall
from tests.support.model_provider import Reply
from tests.support.provider_project import Call, sensible, words


def answering(call: Call) -> Reply:
    if "Sum up what was said so far" in call.heard[-1][1]:
        return words(f"In short: a lot. #{call.number}")
    return sensible(call)


def talked(hall: Hall, **policy: Any) -> str:
    hall.models.answering = answering
    limits = {"consecutive": 500}
    whole = {"mode": "round-robin", "rounds": 10, "window": 3, "limits": limits, **policy}
    run_id = hall.convene("ada", "bo", "mo", moderator="mo", policy=whole)
    hall.until(run_id, lambda floor: floor["phase"] == "over" and not floor["speaking"])
    return run_id


def summaries(hall: Hall, run_id: str) -> list[dict[str, Any]]:
    return [turn for turn in hall.turns(run_id) if "summary" in turn.get("meta", {})]


def test_without_a_summary_it_is_said_how_much_is_hidden(hall: Hall) -> None:
    run_id = talked(hall)
    assert summaries(hall, run_id) == []
    for number, call in enumerate(hall.models.calls[:20]):
        said = [text for name, text in call.heard if name == "host"]
        if number <= 3:
            assert len(said) == 1
        else:
            assert said[0] == f"{number - 3} earlier turns of this conversation are not shown."
        assert call.heard[1 if number > 3 else 0] == ("the user", "Ship in June?")


def test_a_summary_is_a_turn_by_a_named_member_and_stands_for_what_is_hidden(hall: Hall) -> None:
    run_id = talked(hall, summarise="mo")
    found = summaries(hall, run_id)
    assert [turn["from"] for turn in found] == ["host:mo"] * len(found)
    spans = [turn["meta"]["summary"]["of"] for turn in found]
    assert spans[0] == [1, 4] and len(spans) >= 4
    for (_, until), (first, _) in pairwise(spans):
        assert first == until + 1, "each turn is summed up once"
    speakers = [who for who, _ in hall.said(run_id) if who != "host:mo"]
    assert speakers == ["host:ada", "host:bo"] * 10, "nobody loses a turn by it"
    index = found[0]["turnIndex"]
    after = next(call for call in hall.models.calls if found[0]["content"] in str(call.body))
    assert after.heard[0] == ("the user", "Ship in June?")
    assert after.heard[1] == ("Mo", f"(a summary of turns 1 to 4) {found[0]['content']}")
    shown = len(after.messages) - (0 if after.anthropic else 1) - 3
    assert shown == index - 1 - 4, "the turns after it, each once"
    most = max(len(call.messages) for call in hall.models.calls)
    assert most <= 2 * 3 + 5
    verified = hall.ask("POST", f"/v1/host/moot/runs/{run_id}:verify")
    assert verified["identical"], verified


def test_whoever_sums_up_reads_all_of_it_and_the_summary_before(hall: Hall) -> None:
    run_id = talked(hall, summarise="mo")
    calls = [call for call in hall.models.calls if "Sum up what was said" in call.heard[-1][1]]
    first, second = calls[0], calls[1]
    turns = {turn["turnIndex"]: turn["content"] for turn in hall.turns(run_id)}
    assert [text for _, text in first.heard[1:-1]] == [turns[index] for index in range(1, 5)]
    of = summaries(hall, run_id)[1]["meta"]["summary"]["of"]
    heard = str(second.body)
    assert "a summary of turns 1 to 4" in heard
    assert all(turns[index] in heard for index in range(of[0], of[1] + 1) if index != 8)


def test_a_summary_that_fails_stops_nobody(hall: Hall) -> None:
    def answer(call: Call) -> Reply:
        wanted = "Sum up what was said so far" in call.heard[-1][1]
        return Reply(words=[], refusal="No.", finish="refusal") if wanted else sensible(call)

    hall.models.answering = answer
    policy = {"mode": "round-robin", "rounds": 6, "window": 2, "summarise": "bo"}
    run_id = hall.convene("ada", "bo", policy=policy)
    hall.until(run_id, lambda floor: floor["phase"] == "over")
    spoken = [who for who, _ in hall.said(run_id) if who != "system"]
    assert spoken == ["host:ada", "host:bo"] * 6
    assert "Bo declined to answer." in hall.system(run_id)


def test_nobody_sums_up_a_blind_round_before_it_is_over(hall: Hall) -> None:
    run_id = talked(hall, summarise="mo", blind=True, window=2, rounds=4)
    decided = hall.told(run_id, "moot.participation.decided")
    rounds = [each["round"] for each in decided for wake in each["wakes"] if wake.get("of")]
    assert rounds and min(rounds) >= 2


def test_only_a_participant_can_be_asked_to_sum_up(hall: Hall) -> None:
    asked = {"question": "x", "participants": ["ada", "bo"], "policy": {"summarise": "zoe"}}
    status, answer, _ = hall.server.request("POST", "/v1/host/moot/councils", asked)
    assert (status, answer["details"]["field"]) == (400, "summarise")


@pytest.mark.parametrize("window", [2, 5])
def test_the_demo_model_sums_up_too(hall: Hall, window: int) -> None:
    policy = {"mode": "round-robin", "rounds": 10, "window": window, "summarise": "ed"}
    run_id = hall.convene("dee", "ed", policy=policy)
    hall.until(run_id, lambda floor: floor["phase"] == "over")
    assert "Where we agree" in summaries(hall, run_id)[0]["content"]
    assert hall.models.count == 0


def test_whoever_is_asked_late_to_sum_up_is_told_exactly_what_the_summary_claims(
    hall: Hall,
) -> None:
    run_id = talked(hall, window=2, rounds=8)
    policy = {"rounds": 8, "window": 2, "moderator": "host:mo", "summarise": "host:mo"}
    hall.steer(run_id, participation={"mode": "round-robin", **policy})
    before = len(hall.models.calls)
    hall.steer(run_id, **{"continue": True})
    hall.until(run_id, lambda floor: floor["phase"] == "over" and floor["atRest"])
    first = summaries(hall, run_id)[0]["meta"]["summary"]["of"]
    asked = next(c for c in hall.models.calls[before:] if "Sum up" in c.heard[-1][1])
    turns = {turn["turnIndex"]: turn["content"] for turn in hall.turns(run_id)}
    told = [text for _, text in asked.heard]
    assert first[0] == 1 and first[1] > 2 * 2 + 2
    for index in range(first[0], first[1] + 1):
        assert any(str(turns[index])[:40] in text for text in told) or "Mo" in str(turns[index])
    assert not any(str(turns[first[1] + 1]) == text for text in told)


def test_a_window_that_is_raised_shows_more_at_once(hall: Hall) -> None:
    run_id = talked(hall, window=2, rounds=8)
    hall.steer(run_id, participation={"rounds": 8, "window": 100, "moderator": "host:mo"})
    before = len(hall.models.calls)
    hall.steer(run_id, **{"continue": True})
    hall.until(run_id, lambda floor: floor["phase"] == "over" and floor["atRest"])
    told = " ".join(text for _, text in hall.models.calls[before].heard)
    early = next(turn for turn in hall.turns(run_id) if turn["turnIndex"] == 2)
    assert early["content"] in told and "not shown" not in told
