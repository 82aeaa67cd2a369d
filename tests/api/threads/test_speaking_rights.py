"""Rosters of conversations, and who may speak as whom."""

from typing import Any

import pytest

from tests.support.api.caller import Api, definition
from tests.support.api.questions import (
    answered,
    asked,
    close,
    council,
    link,
    of,
    refused,
    say,
    talk,
    turns,
    unchanged,
)

VALIDATION = "validation_error"


A, B, C = "host:a", "host:b", "host:c"


def key_as(api: Api, *names: str) -> Api:
    """An ordinary key that is bound to these names."""
    return api.with_key(api.new_key("speaker", **{"as": list(names)}))


@pytest.fixture(scope="module")
def ann(api: Api) -> Api:
    return key_as(api, "user:ann")


@pytest.fixture(scope="module")
def agent(api: Api) -> Api:
    return key_as(api, A)


def test_a_roster_is_carried_unchanged(api: Api) -> None:
    members = [{"agentId": B, "name": "Bea"}, {"agentId": A}, {"agentId": C, "version": "1.0.0"}]
    run_id = asked(api, talk(participants=members))
    assert of(api, run_id, "conversation.opened")[0]["participants"] == members


@pytest.mark.parametrize(
    "members",
    [[], [A], [A, A], [A, B, A], [A, ""], [A, "x" * 257], [A, 1], [A, None]],
)
def test_a_roster_that_cannot_be_is_refused_at_creation(api: Api, members: Any) -> None:
    config = {"participants": [{"agentId": name} for name in members]}
    api.register(definition("wrong-roster", [talk(**config)]))
    answer = api.post("/v1/runs", {"workflowId": "wrong-roster"})
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"] == VALIDATION


def test_an_owner_who_is_not_on_the_roster_does_not_speak(api: Api) -> None:
    run_id = asked(api, council(A, B, agentId=C, prompt="Well?"))
    first = turns(api, run_id)[0]
    assert first["role"] != "agent"
    assert "speakerId" not in first


def test_a_roster_given_with_the_run_is_checked_too(api: Api) -> None:
    name = "asked-roster"
    api.register(definition(name, [talk()]))
    members = [{"agentId": f"host:{number}"} for number in range(33)]
    body = {"workflowId": name, "inputs": {"participants": members}}
    details = refused(api.post("/v1/runs", body), 422, VALIDATION)
    assert details == {
        "code": "conversation_roster_exceeded", "maxParticipants": 32, "participants": 33,
    }  # fmt: skip
    run_id = api.create(name, inputs={"participants": members[:32]})
    assert len(of(api, run_id, "conversation.opened")[0]["participants"]) == 32


def test_only_members_speak_as_agents(api: Api) -> None:
    run_id = asked(api, council(A, B))
    with unchanged(api, run_id):
        for name in (C, "host:A", "host:a ", "a", "acme.writer"):
            details = refused(say(api, run_id, role="agent", speakerId=name), 422, VALIDATION)
            assert details["code"] == "conversation_speaker_not_participant"
            assert (details["speakerId"], details["roster"]) == (name, [A, B])
        turn = {"content": "x", "role": "agent", "speakerId": C}
        refused(close(api, run_id, turn=turn, outcome=1), 422, VALIDATION)
    answered(say(api, run_id, role="agent", speakerId=A))
    answered(say(api, run_id, role="agent", speakerId=B, to=A))
    answered(say(api, run_id, "a person always may"))
    assert [turn.get("speakerId") for turn in turns(api, run_id)[1:]] == [A, B, None]


def test_a_group_gives_nobody_the_floor(api: Api) -> None:
    run_id = asked(api, council(A, B, groupId="g"))
    with unchanged(api, run_id):
        answer = say(api, run_id, role="agent", speakerId=C, groupId="g")
        refused(answer, 422, VALIDATION)


def test_an_agent_says_who_it_is_with_a_roster_or_without(api: Api, agent: Api) -> None:
    for node in (talk(), council(A, B)):
        run_id = asked(api, node)
        with unchanged(api, run_id):
            for caller in (api, agent):
                refused(say(caller, run_id, role="agent"), 422, VALIDATION)
                named = say(caller, run_id, role="agent", **{"from": A})
                refused(named, 422, VALIDATION)


def test_without_a_roster_any_agent_may_speak(api: Api) -> None:
    run_id = asked(api, talk())
    for name in (A, C):
        answered(say(api, run_id, role="agent", speakerId=name))
    assert "participants" not in of(api, run_id, "conversation.opened")[0]


def test_a_key_speaks_as_its_own_names_only(api: Api, agent: Api) -> None:
    run_id = asked(api, council(A, B))
    with unchanged(api, run_id):
        for name in (B, C, "host:nobody"):
            details = refused(say(agent, run_id, role="agent", speakerId=name), 403, "forbidden")
            assert (details["speakerId"], details["maySpeakAs"]) == (name, [A])
        for name in ("user", "user:ann", "user:"):
            refused(say(agent, run_id, **{"from": name}), 403, "forbidden")
        turn = {"content": "x", "role": "agent", "speakerId": B}
        refused(close(agent, run_id, turn=turn), 403, "forbidden")
    answered(say(agent, run_id, "mine", role="agent", speakerId=A))
    turn = turns(api, run_id)[1]
    keys = api.get("/v1/host/moot/keys").json()["keys"]
    assert turn["speakerId"] == turn["from"] == A
    assert next(key for key in keys if key["id"] == turn["via"])["as"] == [A]


def test_an_agents_key_is_no_person(api: Api) -> None:
    """Else it could speak where only people may, and pass for one."""
    run_id = asked(api, council(A, B))
    made = api.post("/v1/host/moot/keys", {"name": "agent", "as": [A]}).json()
    agent = api.with_key(made["key"])
    with unchanged(api, run_id):
        refused(say(agent, run_id, "as a person"), 403, "forbidden")
        refused(say(agent, run_id, "as a person", role="user"), 403, "forbidden")
        refused(say(agent, run_id, **{"from": f"user:{made['id']}"}), 403, "forbidden")


def test_an_administrator_speaks_for_others_and_it_shows(api: Api, ann: Api) -> None:
    run_id = asked(api, council(A, B))
    answered(say(api, run_id, "for A", role="agent", speakerId=A))
    answered(say(api, run_id, "for ann", **{"from": "user:ann"}))
    answered(say(ann, run_id, "herself"))
    one, two, three = turns(api, run_id)[1:]
    assert one["via"] == two["via"] != three["via"]
    assert two["from"] == three["from"] == "user:ann"


def test_people_speak_by_name(api: Api, ann: Api, live: Api) -> None:
    run_id = asked(api, council(A, B))
    bob = key_as(api, "user:bob", B)
    answered(say(ann, run_id, "I am ann"))
    answered(say(bob, run_id, "I am bob"))
    answered(say(bob, run_id, "I am his agent", role="agent", speakerId=B))
    answered(say(live, run_id, "I have no name"))
    answered(say(api, run_id, "I run this place"))
    said = [turn["from"] for turn in turns(api, run_id)[1:]]
    assert said[:3] == ["user:ann", "user:bob", B]
    assert said[3].startswith("user:key_")
    assert said[4] == "user"
    with unchanged(api, run_id):
        refused(say(ann, run_id, **{"from": "user:bob"}), 403, "forbidden")
        refused(say(live, run_id, **{"from": "user"}), 403, "forbidden")
        by_link = {"resumeValue": {"content": "x", "from": "user:ann"}}
        refused(api.with_key(None).post(link(api, run_id), by_link), 403, "forbidden")


def test_what_is_said_never_decides_who_spoke(api: Api, ann: Api) -> None:
    run_id = asked(api, talk())
    answered(say(ann, run_id, f'{A}: hello {{"from":"user:bob"}}', via="key_other"))
    turn = turns(api, run_id)[1]
    assert turn["from"] == "user:ann"
    assert turn["via"] != "key_other"


def test_a_link_speaks_as_nobody_in_particular(api: Api) -> None:
    run_id = asked(api, council(A, B))
    path = link(api, run_id)
    with unchanged(api, run_id):
        turn = {"content": "x", "role": "agent", "speakerId": A}
        answer = api.with_key(None).post(path, {"resumeValue": turn})
        refused(answer, 403, "forbidden")
    answered(api.with_key(None).post(path, {"resumeValue": {"content": "x"}}))
    assert turns(api, run_id)[1]["from"].startswith("user:link:")
