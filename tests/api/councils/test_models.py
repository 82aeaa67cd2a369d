"""Whatever models do, a council shows it and goes on: both wire formats, and the demo model."""

import json
import threading
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.api.council_hall import Hall
from tests.support.model_provider import Reply
from tests.support.provider_project import Call, sensible, words

ONE_ROUND = {"mode": "round-robin", "rounds": 1}
#: one agent behind each wire format
KINDS = ("ada", "bo")


def once(first: Reply) -> Callable[[Call], Reply]:
    """The first call gets this, all others something sensible."""
    left = [first]

    def answer(call: Call) -> Reply:
        return left.pop() if left else sensible(call)

    return answer


class Listener(threading.Thread):
    """What somebody hears who listens to the thread."""

    def __init__(self, hall: Hall, run_id: str) -> None:
        super().__init__(daemon=True)
        self._request = urllib.request.Request(
            f"{hall.server.url}/v1/host/moot/threads/{run_id}/stream",
            headers={"Authorization": f"Bearer {hall.server.key}"},
        )
        self.frames: list[tuple[str, dict[str, Any]]] = []
        self.ready = threading.Event()
        self.start()
        assert self.ready.wait(60)

    def run(self) -> None:
        with urllib.request.urlopen(self._request, timeout=60) as stream:
            self.ready.set()
            name = ""
            for line in stream:
                if line.startswith(b"event: "):
                    name = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    self.frames.append((name, json.loads(line[6:])))

    def heard(self, *names: str, most: float = 60.0) -> list[dict[str, Any]]:
        """Frames of these names, once the turn has come."""
        deadline = time.monotonic() + most
        while time.monotonic() < deadline:
            if any(name == "conversation.exchanged" for name, _ in self.frames):
                return [data for name, data in self.frames if name in names]
            time.sleep(0.01)
        raise AssertionError(f"no turn came: {self.frames}")


@pytest.mark.parametrize("name", KINDS)
def test_words_are_heard_as_they_are_spoken_and_are_the_turn(hall: Hall, name: str) -> None:
    go = threading.Event()

    def answer(call: Call) -> Reply:
        go.wait(60)
        return Reply(words=["One ", "two ", "three."], tokens=(40, 3))

    hall.models.answering = answer
    run_id = hall.convene(name, "ed", policy=ONE_ROUND)
    listener = Listener(hall, run_id)
    go.set()
    heard = listener.heard("speech.delta")
    speech = heard[0]["speechId"]
    assert "".join(f["delta"] for f in heard if f["speechId"] == speech) == "One two three."
    hall.at_rest(run_id)
    turn = hall.turns(run_id)[0]
    assert (turn["from"], turn["content"]) == (f"host:{name}", "One two three.")
    assert (turn["meta"]["inputTokens"], turn["meta"]["outputTokens"]) == (40, 3)
    assert turn["agent"]["model"]["model"] == {"ada": "big", "bo": "grand"}[name]


@pytest.mark.parametrize("name", KINDS)
def test_a_busy_provider_is_asked_again_in_the_open(hall: Hall, name: str) -> None:
    busy = {"type": "rate_limit_error", "message": "slow down"}
    hall.models.answering = once(Reply(status=429, headers={"retry-after": "0.4"}, error=busy))
    run_id = hall.convene(name, "ed", policy=ONE_ROUND)
    hall.at_rest(run_id)
    [retried] = hall.told(run_id, "moot.model.retried")
    assert (retried["agentId"], retried["attempt"]) == (f"host:{name}", 1)
    assert retried["error"]["code"] == "model_rate_limited"
    assert retried["waitMs"] >= 400
    assert hall.turns(run_id)[0]["from"] == f"host:{name}"
    assert len(hall.models.calls) == 2
    spent = hall.told(run_id, "moot.participation.answered")[0]["usage"]
    assert spent["calls"] == 2, "each attempt is a call"


@pytest.mark.parametrize("name", KINDS)
def test_a_provider_that_keeps_failing_is_given_up_and_the_council_goes_on(
    hall: Hall, name: str
) -> None:
    broken = Reply(status=500, error={"type": "api_error", "message": "on fire"})
    hall.models.answering = lambda call: broken if call.agent != "Cy" else sensible(call)
    run_id = hall.convene(name, "cy", policy=ONE_ROUND)
    hall.at_rest(run_id)
    assert hall.outcomes(run_id)[0] == (f"host:{name}", "speak", "failed")
    assert len(hall.told(run_id, "moot.model.retried")) == 3
    first, second = hall.turns(run_id)
    assert first["role"] == "system" and "could not answer" in first["content"]
    assert second["from"] == "host:cy"


@pytest.mark.parametrize("name", KINDS)
def test_words_of_a_broken_answer_are_taken_back(hall: Hall, name: str) -> None:
    go = threading.Event()
    broken = Reply(words=["This ", "is ", "void."], cut_after=2)
    first = [broken]

    def answer(call: Call) -> Reply:
        go.wait(60)
        return first.pop() if first else words("This holds.")

    hall.models.answering = answer
    run_id = hall.convene(name, "ed", policy=ONE_ROUND)
    listener = Listener(hall, run_id)
    go.set()
    ended = listener.heard("speech.ended")
    deltas = listener.heard("speech.delta")
    voided = [frame["speechId"] for frame in ended if frame.get("void")]
    assert len(voided) == 1
    assert all(f["delta"] in ("This ", "is ") for f in deltas if f["speechId"] == voided[0])
    hall.at_rest(run_id)
    assert hall.said(run_id)[0] == (f"host:{name}", "This holds.")
    assert hall.told(run_id, "moot.model.retried")[0]["error"]["code"] == "model_disconnected"


@pytest.mark.parametrize("name", KINDS)
def test_a_refusal_is_a_refusal_and_nothing_takes_its_place(hall: Hall, name: str) -> None:
    hall.models.answering = lambda call: (
        Reply(words=[], refusal="I would rather not.", finish="refusal")
        if call.agent != "Cy"
        else sensible(call)
    )
    run_id = hall.convene(name, "cy", policy=ONE_ROUND)
    hall.at_rest(run_id)
    assert hall.outcomes(run_id) == [
        (f"host:{name}", "speak", "refused"), ("host:cy", "speak", "spoke")
    ]  # fmt: skip
    assert [turn["role"] for turn in hall.turns(run_id)] == ["system", "agent"]
    assert hall.system(run_id) == [f"{name.title()} declined to answer."]
    assert len([call for call in hall.models.calls if call.agent != "Cy"]) == 1
    completed = hall.told(run_id, "agent.invocation.completed")[0]
    assert completed["outcome"] == "refused"


@pytest.mark.parametrize("name", KINDS)
def test_a_form_filled_in_wrong_is_sent_back_once_then_its_writer_is_passed_over(
    hall: Hall, name: str
) -> None:
    def answer(call: Call) -> Reply:
        wrong = call.agent == name.title() and call.task == "vote"
        return words("I vote yes!") if wrong else sensible(call)

    hall.models.answering = answer
    policy = {**ONE_ROUND, "vote": True, "close": "moderator"}
    run_id = hall.convene(name, "cy", "mo", moderator="mo", policy=policy)
    hall.at_rest(run_id)
    votes = [call for call in hall.models.by(name.title()) if call.task == "vote"]
    assert len(votes) == 2
    assert "not JSON" in json.dumps(votes[1].messages[-1])
    assert (f"host:{name}", "vote", "failed") in hall.outcomes(run_id)
    assert any("could not answer" in text for text in hall.system(run_id))
    [closed] = hall.told(run_id, "conversation.closed")
    recorded = {vote["by"]: vote["vote"] for vote in closed["outcome"]["votes"]}
    assert recorded == {f"host:{name}": "abstain", "host:cy": "yes"}


def test_a_form_that_fits_the_second_time_is_taken(hall: Hall) -> None:
    def answer(call: Call) -> Reply:
        told = "Answer again" in json.dumps(call.messages[-1])
        return words("hm") if call.task == "synthesise" and not told else sensible(call)

    hall.models.answering = answer
    run_id = hall.convene("ada", "mo", moderator="mo", policy=ONE_ROUND)
    hall.at_rest(run_id)
    assert hall.outcomes(run_id)[-1] == ("host:mo", "synthesise", "spoke")
    assert hall.floor(run_id)["proposal"].startswith("We go.")


@pytest.mark.parametrize("name", KINDS)
def test_a_model_that_does_not_begin_is_passed_over_when_its_silence_is_over(
    hall: Hall, name: str
) -> None:
    late = threading.Event()

    def answer(call: Call) -> Reply:
        return Reply(pause=lambda: late.wait(30))

    hall.models.answering = answer
    run_id = hall.convene(name, "ed", policy={**ONE_ROUND, "limits": {"silence": 3}})
    hall.until(run_id, lambda floor: floor["phase"] == "over")
    late.set()
    assert hall.outcomes(run_id)[0] == (f"host:{name}", "speak", "silent")
    assert hall.system(run_id) == [f"{name.title()} was silent for 3 s and is passed over."]
    assert [speaker for speaker, _ in hall.said(run_id)] == ["system", "host:ed"]


@pytest.mark.parametrize("name", KINDS)
def test_an_answer_that_was_cut_off_says_so(hall: Hall, name: str) -> None:
    hall.models.answering = once(Reply(words=["And so it"], finish="length"))
    run_id = hall.convene(name, "ed", policy=ONE_ROUND)
    hall.at_rest(run_id)
    turn = hall.turns(run_id)[0]
    assert (turn["content"], turn["meta"]["truncated"]) == ("And so it", True)


@pytest.mark.parametrize("name", KINDS)
def test_a_tool_that_an_agent_was_not_given_is_refused_to_it_visibly(hall: Hall, name: str) -> None:
    asks = Reply(words=["Let me look."], calls={"look": '{"at": 1}'}, finish="tool_calls")
    hall.models.answering = once(asks)
    run_id = hall.convene(name, "ed", policy=ONE_ROUND)
    hall.at_rest(run_id)
    [returned] = hall.told(run_id, "agent.toolReturned")
    assert (returned["toolName"], returned["status"]) == ("look", "forbidden")
    content = hall.turns(run_id)[0]["content"]
    assert content.endswith("says #2.") and "Let me look" not in content
    assert "may not use" in json.dumps(hall.models.calls[1].messages[-1])


def test_the_same_council_holds_on_the_demo_model(hall: Hall) -> None:
    policy = {"mode": "round-robin", "rounds": 2, "vote": True, "close": "moderator"}
    names = ("dee", "ed")
    run_id = hall.convene(*names, "mo", moderator="mo", policy=policy)
    hall.until(run_id, lambda floor: floor["phase"] == "over")
    spoken = [speaker for speaker, _ in hall.said(run_id)]
    assert spoken == ["host:dee", "host:ed"] * 2 + ["host:mo", "host:mo"]
    assert all(turn["meta"]["demo"] for turn in hall.turns(run_id)[:4])
    assert {call.agent for call in hall.models.calls} == {"Mo"}
