"""Councils that would go on for ever stop where they must; the provider counts the calls."""

from typing import Any

import pytest

from tests.support.api.council_hall import Hall
from tests.support.model_provider import Reply
from tests.support.provider_project import Call, sensible, words

EVERYBODY = {f"m{number}": "model: it" for number in range(10)}
CHATTY = {"mode": "addressed", "limits": {"calls": 1000, "consecutive": 1000, "pair": 1000}}


@pytest.fixture
def crowd(hall: Hall) -> list[str]:
    """Ten agents, told to answer everything."""
    for name in EVERYBODY:
        body = {"name": name, "model": "it", "prompt": "Answer everybody, always."}
        hall.ask("POST", "/v1/host/moot/agents", body)
    return list(EVERYBODY)


def pinging(call: Call) -> Reply:
    """Whoever speaks asks the next one in a ring."""
    if call.task != "speak":
        return sensible(call)
    other = {"Ada": "cy", "Cy": "ada", "Bo": "ada", "Mo": "cy"}.get(call.agent)
    if other is None:
        number = int(call.agent[1:])
        other = f"m{(number + 1) % 10}"
    return words(f"#{call.number} What do you think, @{other}?", tokens=(90, 10))


def limited(mode: str = "addressed", **limits: Any) -> dict[str, Any]:
    rounds = {} if mode == "addressed" else {"rounds": 100}
    return {"mode": mode, **rounds, "limits": {**CHATTY["limits"], **limits}}


def stopped(hall: Hall, run_id: str) -> dict[str, Any]:
    """What stopped it, once it rests; whoever reads the thread is told."""
    floor = hall.at_rest(run_id)
    found = hall.told(run_id, "moot.participation.stopped")[-1]
    assert floor["stopped"] == found["reason"]
    assert hall.turns(run_id)[-1]["role"] == "system"
    begins = {"pair": "ada and cy have answered"}.get(found["reason"], found["reason"])
    assert hall.system(run_id)[-1].casefold().startswith(f"stopped: {begins}")
    return found


def test_two_agents_that_always_answer_one_another_stop_at_the_limit_of_the_pair(
    hall: Hall,
) -> None:
    hall.models.answering = pinging
    run_id = hall.convene("ada", "cy", policy=limited(pair=3))
    hall.speak(run_id, "What does @ada say?")
    assert stopped(hall, run_id) == {
        "conversationId": f"{run_id}:talk:1", "reason": "pair", "limit": 3, "observed": 4
    }  # fmt: skip
    assert len(hall.models.calls) == 4
    hall.speak(run_id, "Go on, @cy.")
    hall.until(run_id, lambda floor: floor["stopped"] == "pair" and not floor["speaking"])
    assert len(hall.models.calls) == 8, "a person's word lifts it, once"


@pytest.mark.parametrize("limit", [1, 7, 25])
def test_ten_agents_told_to_answer_everything_stop_at_the_limit_of_calls(
    hall: Hall, crowd: list[str], limit: int
) -> None:
    hall.models.answering = pinging
    run_id = hall.convene(*crowd, policy=limited("round-robin", calls=limit))
    assert stopped(hall, run_id)["reason"] == "calls"
    assert len(hall.models.calls) == limit


@pytest.mark.parametrize(
    "policy",
    [
        {"mode": "round-robin", "blind": True},
        {"mode": "raise-hand"},
        {"mode": "moderated"},
        {"mode": "round-robin", "rounds": 1, "vote": True},
    ],
    ids=["blind", "hands", "moderated", "votes"],
)
@pytest.mark.parametrize("limit", [3, 14])
def test_wakes_at_the_same_time_share_what_is_left(
    hall: Hall, crowd: list[str], policy: dict[str, Any], limit: int
) -> None:
    def answer(call: Call) -> Reply:
        return words("no form at all") if call.task == "vote" else pinging(call)

    hall.models.answering = answer
    whole = {**limited("round-robin", calls=limit), "moderator": "host:m0", **policy}
    run_id = hall.convene(*crowd, policy=whole)
    stopped(hall, run_id)
    assert len(hall.models.calls) <= limit + 1


@pytest.mark.parametrize("limit", [2, 5])
def test_tools_asked_for_again_and_again_count(hall: Hall, crowd: list[str], limit: int) -> None:
    look = Reply(words=[], calls={"look": "{}"}, finish="tool_calls")
    hall.models.answering = lambda call: look
    policy = {**limited("round-robin", calls=limit), "blind": True}
    run_id = hall.convene(*crowd, policy=policy)
    stopped(hall, run_id)
    assert len(hall.models.calls) <= limit + 1


def test_calls_that_are_made_again_count(hall: Hall) -> None:
    busy = Reply(status=500, headers={"retry-after-ms": "1"}, error={"message": "no"})
    hall.models.answering = lambda call: busy
    run_id = hall.convene("ada", "bo", "cy", policy=limited("round-robin", calls=6))
    stopped(hall, run_id)
    assert len(hall.models.calls) == 6


def test_one_member_does_not_use_up_what_is_everybodys(hall: Hall) -> None:
    look = Reply(words=[], calls={"look": "{}"}, finish="tool_calls")
    hall.models.answering = lambda call: look if call.agent == "Ada" else sensible(call)
    run_id = hall.convene("ada", "cy", policy=limited("round-robin", agentCalls=3))
    assert stopped(hall, run_id)["reason"] == "calls of host:ada"
    assert len(hall.models.by("Ada")) == 3


def test_tokens_are_a_hard_stop_before_the_next_call(hall: Hall, crowd: list[str]) -> None:
    hall.models.answering = pinging
    run_id = hall.convene(*crowd, policy=limited("round-robin", tokens=450))
    found = stopped(hall, run_id)
    assert (found["reason"], found["observed"]) == ("tokens", 500)
    assert len(hall.models.calls) == 5


def test_tokens_stop_a_member_between_two_of_its_own_calls(hall: Hall) -> None:
    look = Reply(words=[], calls={"look": "{}"}, finish="tool_calls", tokens=(90, 10))
    hall.models.answering = lambda call: look
    run_id = hall.convene("ada", "cy", policy=limited("round-robin", tokens=250))
    assert stopped(hall, run_id)["reason"] == "tokens"
    assert len(hall.models.calls) == 3
    assert hall.told(run_id, "moot.participation.answered")[0]["error"]["code"] == "budget_used_up"


def test_money_is_counted_where_there_is_a_price(hall: Hall) -> None:
    """A thousand for a million tokens: each turn of a hundred costs a tenth."""
    hall.models.answering = pinging
    policy = {**limited("round-robin"), "rounds": 50}
    run_id = hall.convene("ada", "cy", policy=policy, budget={"money": 0.45})
    found = stopped(hall, run_id)
    assert (found["reason"], found["limit"]) == ("money", 0.45)
    assert len(hall.models.calls) == 5
    spent = hall.floor(run_id)["spent"]
    assert abs(spent["money"] - 0.5) < 1e-9
    usage = hall.told(run_id, "moot.participation.answered")[0]["usage"]
    assert usage["price"]["pattern"] == "big"


def test_a_person_lets_a_stopped_council_go_on_and_it_stops_again(hall: Hall) -> None:
    hall.models.answering = pinging
    run_id = hall.convene("ada", "cy", policy=limited("round-robin", calls=4))
    stopped(hall, run_id)
    hall.steer(run_id, **{"continue": True})
    hall.until(run_id, lambda floor: bool(floor["stopped"]) and not floor["speaking"])
    assert len(hall.models.calls) == 8
    assert len(hall.told(run_id, "moot.participation.continued")) == 1
