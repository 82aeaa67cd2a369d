"""Councils and threads: convening, reading, steering, closing with a decision."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.api.caller import Api, definition
from tests.support.api.councils import (
    ADA,
    BO,
    CY,
    THREADS,
    close,
    convened,
    join,
    key_as,
    person,
    read,
    run_of,
    state,
    steer,
    tell,
)  # fmt: skip
from tests.support.api.questions import (
    answered,
    asked,
    begun,
    gate,
    of,
    refused,
    say,
    talk,
    turns,
    unchanged,
)
from tests.support.api.threads import until

VALIDATION = "validation_error"


@pytest.fixture(scope="module")
def ann(api: Api) -> Api:
    return key_as(api, "user:ann")


@pytest.fixture(scope="module")
def ada(api: Api) -> Api:
    return key_as(api, ADA)


# -- convening -----------------------------------------------------------------------------------


def test_a_council_is_a_question_to_a_closed_roster(api: Api) -> None:
    given = {"question": "June?", "participants": ["ada", {"agentId": BO, "name": "Bo"}]}
    answer = api.post("/v1/host/moot/councils", given)
    assert answer.status_code == 201
    body = answer.json()
    thread, run_id = body["threadId"], body["runId"]
    assert (thread, body["url"]) == (run_id, f"{THREADS}/{thread}")
    assert answer.headers["location"] == body["url"]
    [opened] = of(api, run_id, "conversation.opened")
    assert opened["participants"] == [{"agentId": ADA}, {"agentId": BO, "name": "Bo"}]
    first = opened["initialTurn"]
    assert (first["content"], first["role"], first["turnIndex"]) == ("June?", "user", 0)
    found = read(api, thread)
    assert found["participants"] == [{"agentId": ADA}, {"agentId": BO}]
    assert (found["title"], found["open"], found["turns"]) == ("June?", True, 0)
    assert api.read(run_id)["status"] == "waiting-approval"


def test_an_open_council_invites(api: Api) -> None:
    thread = convened(api, "ada", BO, open=True, title="Shipping")
    found = read(api, thread)
    assert "participants" not in found and found["title"] == "Shipping"
    invited = found["state"]["participants"]["invited"]
    assert [(each["id"], each["from_turn"]) for each in invited] == [(ADA, 1), (BO, 1)]
    assert "participants" not in of(api, run_of(thread), "conversation.opened")[0]
    answered(tell(api, thread, ADA))
    details = refused(tell(api, thread, CY), 422, VALIDATION)
    assert details["code"] == "participant_not_invited" and details["speakerId"] == CY


def test_an_open_council_may_begin_with_nobody(api: Api) -> None:
    thread = convened(api, open=True)
    refused(tell(api, thread, ADA), 422, VALIDATION)
    answered(person(api, thread))
    answered(steer(api, thread, {"invite": {"participant_id": "ada", "profile": {"client": "x"}}}))
    answered(tell(api, thread, ADA))


def test_the_question_is_put_by_who_convenes(api: Api, ann: Api) -> None:
    thread = convened(ann, title="Ours")
    first = turns(api, run_of(thread))[0]
    assert first["from"] == "user:ann"
    assert read(ann, thread)["title"] == "Ours"


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"question": ""}, {"question": 1}, {"question": "x" * 100_001}, {"participants": []},
        {"participants": ["ada"]}, {"participants": ["ada", "ada"]},
        {"participants": ["ada", "host:ada"]}, {"participants": ["ada", ""]},
        {"participants": ["ada", 1]}, {"participants": ["ada", {}]}, {"participants": "ada"},
        {"participants": ["ada", {"agentId": 1}]}, {"participants": ["ada", {"agentId": "x"}]},
        {"participants": ["ada", "x" * 257]}, {"title": ""}, {"title": "x" * 257}, {"title": 1},
        {"open": "yes"}, {"more": 1}, {"open": True, "participants": ["ada", "ada"]},
        {"open": True, "participants": [f"a{n}" for n in range(33)]}, {"participants": None},
    ],
)  # fmt: skip
def test_what_is_no_council_begins_no_run(api: Api, wrong: dict[str, Any]) -> None:
    before = api.runs(limit=1)
    body = {"question": "?", "participants": ["ada", "bo"], **wrong} if wrong else {}
    refused(api.post("/v1/host/moot/councils", body), 400, VALIDATION)
    assert api.runs(limit=1) == before


def test_a_roster_that_is_too_long_says_how_long_it_may_be(api: Api) -> None:
    members = [f"a{number}" for number in range(33)]
    answer = api.post("/v1/host/moot/councils", {"question": "?", "participants": members})
    details = refused(answer, 422, VALIDATION)
    assert (details["code"], details["maxParticipants"]) == ("conversation_roster_exceeded", 32)
    convened(api, *members[:32])


def test_finer_codes_when_the_host_is_told_so(host: Callable[..., Any]) -> None:
    fine = host(MOOT_COUNCIL_ERROR_CODES="0239")
    members = [f"a{number}" for number in range(33)]
    answer = fine.post("/v1/host/moot/councils", {"question": "?", "participants": members})
    assert refused(answer, 422, "conversation_roster_exceeded")["maxParticipants"] == 32
    thread = convened(fine)
    run_id = run_of(thread)
    with unchanged(fine, run_id):
        details = refused(tell(fine, thread, CY), 422, "conversation_speaker_not_participant")
        assert (details["speakerId"], "code" in details) == (CY, False)
        refused(person(fine, thread, role="agent"), 422, VALIDATION)
        refused(person(fine, thread, role="nobody"), 400, VALIDATION)
    loose = convened(fine, "ada", open=True)
    refused(tell(fine, loose, CY), 422, "participant_not_invited")


def test_the_hosts_own_workflow_is_nobody_elses(api: Api) -> None:
    nodes = [{"id": "n", "typeId": "core.noop"}]
    for name in ("moot.thread", "moot.other"):
        refused(api.post("/v1/host/moot/workflows", definition(name, nodes)), 400, VALIDATION)
    assert of(api, run_of(convened(api)), "conversation.opened")


# -- reading -------------------------------------------------------------------------------------


def test_a_thread_is_found_by_its_id_and_by_its_run(api: Api, foreign: Api) -> None:
    thread = convened(api)
    assert read(api, run_of(thread)) == read(api, thread)
    answered(person(api, thread))
    found = read(api, thread)
    assert (found["turns"], found["lastSequence"]) == (1, len(api.events(run_of(thread))) - 1)
    unknown = ("nobody", f"{thread}~talk~2", f"{thread}:x", f"{thread}~1", ":", "~")
    for name in unknown:
        refused(api.get(f"{THREADS}/{name}"), 404, "not_found")
    for name in (thread, run_of(thread)):
        refused(foreign.get(f"{THREADS}/{name}"), 404, "not_found")
        refused(steer(foreign, name, {"done": True}), 404, "not_found")
        refused(close(foreign, name), 404, "not_found")
        refused(join(foreign, name, ADA), 404, "not_found")


def test_of_several_conversations_one_must_be_named(api: Api) -> None:
    run_id = begun(api, talk(), gate("conversationGate", "other"), edges=[])
    details = refused(api.get(f"{THREADS}/{run_id}"), 400, VALIDATION)
    names = [f"{run_id}~convo~1", f"{run_id}~other~1"]
    assert sorted(details["threadIds"]) == names
    for name in names:
        assert read(api, name)["threadId"] == name
    with unchanged(api, run_id):
        refused(steer(api, run_id, {"pause": True}), 400, VALIDATION)
        refused(close(api, run_id), 400, VALIDATION)
    answered(steer(api, names[0], {"pause": True}))
    assert (state(api, names[0])["paused"], state(api, names[1])["paused"]) == (True, False)


def test_a_conversation_of_any_workflow_is_a_thread(api: Api) -> None:
    run_id = asked(api, talk(prompt="May?"))
    answered(say(api, run_id))
    assert read(api, run_id)["turns"] == 1
    refused(api.get(f"{THREADS}/{asked(api, gate())}"), 404, "not_found")


# -- steering ------------------------------------------------------------------------------------


def test_a_muted_agent_is_refused_until_unmuted(api: Api) -> None:
    thread = convened(api)
    answered(steer(api, thread, {"mute": ["bo"]}))
    assert state(api, thread)["muted"] == [BO]
    with unchanged(api, run_of(thread)):
        details = refused(tell(api, thread, BO), 409, "participant_muted")
        assert details["participant"] == BO
    answered(tell(api, thread, ADA))
    answered(steer(api, thread, {"unmute": {"targets": [BO]}}))
    answered(tell(api, thread, BO))


def test_a_mute_may_end_by_itself(api: Api) -> None:
    thread = convened(api)
    answered(steer(api, thread, {"mute": {"targets": [BO], "seconds": 600}}))
    assert list(state(api, thread)["mutedUntil"]) == [BO]
    refused(tell(api, thread, BO), 409, "participant_muted")
    answered(steer(api, thread, {"mute": {"targets": [BO], "seconds": 0.2}}))
    until(lambda: state(api, thread)["muted"] == [])
    answered(tell(api, thread, BO))


def test_while_paused_only_people_speak(api: Api, ann: Api) -> None:
    thread = convened(api)
    answered(steer(ann, thread, {"pause": {"on": True}}))
    with unchanged(api, run_of(thread)):
        refused(tell(api, thread, ADA), 409, "thread_paused")
    answered(person(ann, thread))
    answered(steer(ann, thread, {"pause": {"on": False}}))
    answered(tell(api, thread, ADA))


def test_members_come_and_go_while_it_lasts(api: Api, ada: Api) -> None:
    thread = convened(api, "ada", open=True)
    answered(steer(ada, thread, {"invite": {"participant_id": "bo", "profile": {"model": "m"}}}))
    answered(tell(api, thread, BO))
    invited = state(api, thread)["participants"]["invited"]
    assert [(each["id"], each["invited_by"]) for each in invited] == [(ADA, "user"), (BO, ADA)]
    answered(steer(ada, thread, {"uninvite": {"participant_id": "bo"}}))
    refused(tell(api, thread, BO), 422, VALIDATION)
    with unchanged(api, run_of(thread)):
        answered(steer(api, thread, {"uninvite": {"participant_id": "bo"}}))
    answered(steer(api, thread, {"uninvite": "ada"}))
    with unchanged(api, run_of(thread)):
        refused(tell(api, thread, ADA), 422, VALIDATION)


def test_a_closed_roster_takes_nobody_and_a_full_one_nobody_else(api: Api) -> None:
    thread = convened(api)
    with unchanged(api, run_of(thread)):
        details = refused(steer(api, thread, {"invite": "cy"}), 409, "roster_closed")
        assert details["roster"] == [ADA, BO]
    full = convened(api, *(f"a{number}" for number in range(32)), open=True)
    with unchanged(api, run_of(full)):
        assert refused(steer(api, full, {"invite": "cy"}), 409, "roster_full")
    answered(steer(api, full, {"invite": {"participant_id": "a1", "profile": {"nickname": "x"}}}))
    answered(steer(api, full, {"uninvite": "a0"}))
    answered(steer(api, full, {"invite": "cy"}))


def test_everything_else_shows_in_the_state(api: Api, ada: Api) -> None:
    thread = convened(api)
    answered(steer(api, thread, {"prod": ["bo"], "ttl_seconds": 600}))
    answered(steer(api, thread, {"discussion": {"on": True, "allow_agent_mentions": False}}))
    answered(steer(api, thread, {"invited_auto": {"on": True}}))
    answered(steer(ada, thread, {"done": True}))
    found = state(api, thread)
    assert (found["prodded"], found["done"], found["invited_auto"]) == ([BO], [ADA], True)
    assert (found["discussion"], found["allow_agent_mentions"]) == (True, False)
    assert found["ttl_until"] > read(api, thread)["createdAt"]
    answered(tell(api, thread, BO))
    answered(tell(api, thread, ADA))
    assert (state(api, thread)["prodded"], state(api, thread)["done"]) == ([], [])
    sent = of(api, run_of(thread), "moot.thread.control")
    assert [each["from"] for each in sent] == ["user"] * 3 + [ADA]


@pytest.mark.parametrize("word", ["mute", "unmute", "pause", "prod", "ttl_seconds", "discussion",
                                  "invited_auto"])  # fmt: skip
def test_only_people_steer(api: Api, ada: Api, word: str) -> None:
    thread = convened(api)
    with unchanged(api, run_of(thread)):
        refused(steer(ada, thread, {word: True}), 403, "forbidden")
        refused(steer(ada, thread, {"done": True, word: [ADA]}), 403, "forbidden")
        answer = steer(ada, thread, {word: True}, **{"from": "user"})
        assert answer.status_code == 403, "nobody steers in another's name"
        assert steer(api, thread, {word: True}, **{"from": ADA}).status_code == 403


@pytest.mark.parametrize(
    "wrong",
    [
        None, [], "mute", 1, {}, {"content": None}, {"content": []}, {"content": "{}"},
        {"content": {}}, {"content": {"unknown": 1}}, {"content": {"done": True}, "from": ""},
        {"content": {"done": True}, "from": 1}, {"content": {"done": True}, "more": 1},
        {"content": {"invite": {}}}, {"content": {"invite": ""}}, {"content": {"invite": None}},
        {"content": {"invite": {"participant_id": 1}}}, {"content": {"uninvite": []}},
        {"content": {"invite": "x" * 257}},
    ],
)  # fmt: skip
def test_a_malformed_control_changes_nothing(api: Api, wrong: Any) -> None:
    thread = convened(api, "ada", open=True)
    with unchanged(api, run_of(thread)):
        answer = api.call("POST", f"{THREADS}/{thread}/controls", json=wrong)
        refused(answer, 400, VALIDATION)


# -- closing -------------------------------------------------------------------------------------

SPELLINGS: list[Any] = [
    {"decision": "June"}, {"decision": {"text": "June"}}, {"outcome": {"text": "June"}},
    {"outcome": {"decision": "June"}}, {"outcome": {"decision": {"text": "June"}}},
    {"decision": {"text": "June", "cites": [0]}}, {"outcome": {"decision": "June", "cites": [0]}},
    {"decision": {"text": "June", "votes": {ADA: "yes"}, "dissent": {BO: "too late"}}},
    {"decision": {"text": "June", "actionItems": ["tell sales"]}, "turn": {"content": "Bye"}},
]  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_decision_is_kept_and_read(api: Api, spelling: Any) -> None:
    thread = convened(api)
    body = answered(close(api, thread, **spelling))
    assert body["open"] is False
    api.until(run_of(thread), "completed")
    minutes = api.get(f"{THREADS}/{thread}/export", params={"format": "json"}).json()
    assert minutes["decision"]["text"] == "June"


@pytest.mark.parametrize("outcome", [None, 1, "June", [], {"month": "June"}, {"text": 1}])
def test_any_other_outcome_is_as_good(api: Api, outcome: Any) -> None:
    thread = convened(api)
    answered(close(api, thread, outcome=outcome))
    assert of(api, run_of(thread), "conversation.closed")[0]["outcome"] == outcome


@pytest.mark.parametrize(
    "wrong",
    [
        {"decision": ""}, {"decision": "  "}, {"decision": {}}, {"decision": {"text": ""}},
        {"decision": 1}, {"decision": []}, {"decision": "x" * 20_001}, {"outcome": {"text": ""}},
        {"decision": {"text": "x", "citedTurns": [2]}},
        {"decision": {"text": "x", "citedTurns": [-1]}}, {"turn": {}}, {"turn": "x"},
        {"decision": {"text": "x", "citedTurns": "1"}}, {"more": 1},
        {"decision": {"text": "x", "citedTurns": [True]}},
        {"decision": {"text": "x", "votes": [{"by": CY, "vote": "yes"}]}},
        {"decision": {"text": "x", "votes": {CY: "yes"}}}, {"decision": {"text": "x", "votes": 1}},
        {"decision": {"text": "x", "votes": [{"vote": "yes"}]}},
        {"decision": {"text": "x", "dissent": [{"by": CY, "text": "no"}]}},
        {"decision": {"text": "x", "dissent": [{"by": ADA}]}},
        {"decision": {"text": "x", "actionItems": [{}]}},
        {"decision": {"text": "x", "actionItems": [{"text": "y", "due": 1}]}},
        {"turn": {"role": "agent", "speakerId": CY, "content": "x"}},
        {"turn": {"role": "system", "content": "x"}},
    ],
)  # fmt: skip
def test_a_wrong_decision_closes_nothing(api: Api, wrong: dict[str, Any]) -> None:
    thread = convened(api)
    answered(tell(api, thread, ADA))
    with unchanged(api, run_of(thread)):
        answer = close(api, thread, **wrong)
        assert answer.status_code in (400, 422) and answer.json()["error"] == VALIDATION
    answered(close(api, thread))


def test_closed_is_closed(api: Api, ann: Api) -> None:
    thread = convened(api)
    run_id = run_of(thread)
    answered(close(ann, thread, decision="June"))
    with unchanged(api, run_id):
        for answer in (
            close(api, thread), close(api, thread, decision="May"), join(api, thread, ADA),
            steer(api, thread, {"mute": [BO]}), steer(api, thread, {"invite": "cy"}),
            api.post(f"{THREADS}/{thread}/speech", {"speakerId": ADA}),
        ):  # fmt: skip
            refused(answer, 409, "conversation_closed")
        for answer in (tell(api, thread, ADA), person(api, thread)):
            refused(answer, 409, "interrupt_already_resolved")
    assert read(api, thread)["open"] is False


def test_who_may_not_speak_may_not_close(api: Api, ada: Api) -> None:
    thread = convened(api, BO, CY)
    with unchanged(api, run_of(thread)):
        refused(close(ada, thread), 422, VALIDATION)
    mine = convened(api)
    answered(steer(api, mine, {"mute": [ADA]}))
    with unchanged(api, run_of(mine)):
        refused(close(ada, mine), 409, "participant_muted")
    answered(steer(api, mine, {"unmute": [ADA]}))
    answered(close(ada, mine))


def test_a_cancelled_run_is_a_closed_thread(api: Api) -> None:
    thread = convened(api)
    api.post(f"/v1/runs/{run_of(thread)}/cancel")
    api.until(run_of(thread), "cancelled")
    assert read(api, thread)["open"] is False
    with unchanged(api, run_of(thread)):
        for answer in (close(api, thread), steer(api, thread, {"done": True})):
            assert answer.status_code in (409, 422), answer.text
