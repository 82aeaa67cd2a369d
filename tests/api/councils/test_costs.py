"""What councils use up is counted whatever becomes of it, and shown; who speaks is not silent."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.api.council_hall import Hall
from tests.support.model_provider import Reply
from tests.support.provider_project import Call, sensible, words

CROWD = [f"x{number}" for number in range(10)]


@pytest.fixture
def crowd(hall: Hall) -> list[str]:
    for name in CROWD:
        body = {"name": name, "model": "it", "prompt": "Speak.", "tools": []}
        hall.ask("POST", "/v1/host/moot/agents", body)
    return CROWD


@pytest.fixture
def never(hall: Hall) -> Iterator[threading.Event]:
    """Models that do not answer before the test is over."""
    over = threading.Event()

    def hang(call: Call) -> Reply:
        over.wait(30)
        return sensible(call)

    hall.models.answering = hang
    yield over
    over.set()


def refused(hall: Hall, path: str, body: Any) -> dict[str, Any]:
    status, answer, _ = hall.server.request("POST", path, body)
    assert status == 400, (status, answer)
    return dict(answer)


def test_a_council_of_nobody_rests(hall: Hall) -> None:
    for mode in ("raise-hand", "round-robin", "moderated"):
        run_id = hall.convene(open=True, policy={"mode": mode})
        assert hall.at_rest(run_id)["speaking"] == []
        assert len(hall.log(run_id)) < 15


def test_calls_of_members_that_are_passed_over_count(hall: Hall, never: threading.Event) -> None:
    policy = {"rounds": 5, "limits": {"calls": 1, "silence": 1}}
    run_id = hall.convene("ada", "bo", "cy", policy=policy)
    floor = hall.until(run_id, lambda floor: floor["stopped"] == "calls")
    assert floor["spent"]["calls"] == 1 and len(hall.models.calls) <= 1
    while not hall.told(run_id, "moot.effect.abandoned"):
        time.sleep(0.01)
    assert hall.floor(run_id)["spent"]["tokens"] > 0, "about what it was asked"
    assert hall.ask("POST", f"/v1/host/moot/runs/{run_id}:verify")["identical"]


def test_members_at_work_at_once_share_tokens_and_the_stop_is_shown(
    hall: Hall, crowd: list[str]
) -> None:
    look = Reply(words=[], calls={"look": "{}"}, finish="tool_calls", tokens=(90, 10))
    hall.models.answering = lambda call: look
    policy = {"blind": True, "limits": {"tokens": 250, "consecutive": 100}}
    run_id = hall.convene(*crowd, policy=policy)
    assert hall.at_rest(run_id)["stopped"] == "tokens"
    assert len(hall.models.calls) <= 3 + 1
    assert hall.system(run_id)[-1].startswith("Stopped: tokens")


def test_a_form_that_is_filled_in_wrong_is_not_sent_back_when_the_tokens_are_used_up(
    hall: Hall,
) -> None:
    hall.models.answering = lambda call: words("no form", tokens=(90, 10))
    policy = {"mode": "raise-hand", "limits": {"tokens": 60}}
    run_id = hall.convene("ada", "cy", policy=policy)
    assert hall.at_rest(run_id)["stopped"] == "tokens"
    assert len(hall.models.calls) == 1


def test_who_speaks_slowly_is_not_silent(hall: Hall) -> None:
    """Twelve words, a while between them; three seconds of silence would be too long."""
    slow = Reply(words=[f"{number} " for number in range(12)], between=0.35)
    hall.models.answering = lambda call: slow if call.agent == "Ada" else sensible(call)
    run_id = hall.convene("ada", "cy", policy={"rounds": 1, "limits": {"silence": 3}})
    hall.at_rest(run_id)
    assert hall.outcomes(run_id)[0] == ("host:ada", "speak", "spoke")
    assert hall.told(run_id, "moot.participation.heard")


def test_how_many_turns_may_follow_one_another_is_as_many_as_was_said(hall: Hall) -> None:
    policy = {"rounds": 5, "limits": {"consecutive": 3}}
    run_id = hall.convene("ada", "cy", policy=policy)
    assert hall.at_rest(run_id)["stopped"] == "consecutive"
    assert len(hall.turns(run_id)) == 3 + 1
    more = hall.convene("ada", "cy", policy={"rounds": 15})
    assert hall.floor(more)["limits"]["consecutive"] == 32, "enough for all rounds"


@pytest.mark.parametrize("mode", ["declared", "addressed", "small", "large"])
def test_what_a_mode_has_no_use_for_is_refused(hall: Hall, mode: str) -> None:
    asked = {"question": "Ship?", "participants": ["ada", "cy"]}
    for more in ({"rounds": 2}, {"vote": True}, {"close": "moderator"}):
        body = {**asked, "policy": {"mode": mode, **more}}
        answer = refused(hall, "/v1/host/moot/councils", body)
        assert next(iter(more)) in answer["message"] and "round-robin" in answer["message"]
    led = {**asked, "policy": {"mode": mode}, "moderator": "ada"}
    assert "moderator" in refused(hall, "/v1/host/moot/councils", led)["message"]
    run_id = hall.convene("ada", "cy", policy={"rounds": 1})
    path = f"/v1/host/moot/threads/{run_id}/controls"
    refused(hall, path, {"content": {"participation": {"mode": mode, "vote": True}}})


def test_another_policy_in_the_middle_of_the_end_breaks_nothing(hall: Hall) -> None:
    policy = {"rounds": 1, "limits": {"consecutive": 2}}
    run_id = hall.convene("ada", "cy", "mo", moderator="mo", policy=policy)
    assert hall.at_rest(run_id)["stopped"] == "consecutive"
    hall.steer(run_id, participation={"mode": "round-robin"})
    hall.speak(run_id, "And now?")
    assert hall.at_rest(run_id)["phase"] == "over"


def test_refusals_and_answers_that_were_cut_off_are_events_of_the_protocol(hall: Hall) -> None:
    def answer(call: Call) -> Reply:
        if call.agent == "Ada":
            return Reply(words=[], refusal="I will not.", finish="refusal")
        return words("And so on and", finish="length")

    hall.models.answering = answer
    run_id = hall.convene("ada", "cy", policy={"rounds": 1})
    hall.at_rest(run_id)
    named = {"nodeId": "talk", "provider": "openai", "model": "big"}
    assert hall.told(run_id, "envelope.refusal") == [{**named, "refusalText": "I will not."}]
    assert hall.told(run_id, "envelope.truncated") == [{**named, "stopReason": "max_tokens"}]
    assert hall.ask("POST", f"/v1/host/moot/runs/{run_id}:verify")["identical"]


def test_the_price_is_recorded_with_each_call_and_the_cost_is_shown_with_the_run(
    hall: Hall,
) -> None:
    hall.models.answering = lambda call: words("So be it.", tokens=(90, 10))
    run_id = hall.convene("ada", "cy", policy={"rounds": 1})
    hall.at_rest(run_id)
    for call in hall.told(run_id, "moot.effect.finished"):
        assert call["result"]["price"]["pattern"] == "big"
        assert call["result"]["cost"] == pytest.approx(0.1)
    metrics = hall.ask("GET", f"/v1/runs/{run_id}")["metrics"]
    assert metrics["modelCalls"] == 2 and metrics["cost"] == pytest.approx(0.2)
    assert metrics["openwopCost"] == {"tokens": {"input": 180, "output": 20}, "usd": 0.2}


def test_a_control_that_says_nothing_sensible_is_answered_with_a_warning(hall: Hall) -> None:
    run_id = hall.convene("ada", "cy", policy={"mode": "large"})
    found = hall.steer(run_id, pause="perhaps", mute=["host:nobody"], fly=True)["warnings"]
    assert all(any(word in text for text in found) for word in ("pause", "nobody", "fly"))
    assert "warnings" not in hall.steer(run_id, pause=True)
