"""What is wrong with what is sent to a thread: one clear answer each, and nothing changes."""

from typing import Any

import pytest

from tests.support.api.caller import Api
from tests.support.api.councils import ADA, convened, key_as, person, steer
from tests.support.api.questions import refused, unchanged
from tests.support.api.threads import conflict, events, new, post, posted


@pytest.fixture(scope="module")
def codex(api: Api) -> Api:
    return key_as(api, "host:codex")


@pytest.fixture
def thread(api: Api) -> str:
    """With codex in it."""
    found = new(api)
    posted(api, found, {"invite": "codex"}, type="control")
    return found


@pytest.mark.parametrize(
    "body",
    [
        {}, {"content": 5}, {"content": None}, {"content": {}}, {"content": "x", "type": "shout"},
        {"content": "x", "more": 1}, {"content": "x", "to": ""}, {"content": "x", "to": 5},
        {"content": "x", "meta": []}, {"content": "x", "meta": {"reply_to": 5}},
        {"content": "x", "meta": {"tags": "one"}}, {"content": "x", "id": ""},
        {"content": "x", "meta": {"replyTo": {"a": 1}}}, {"content": "x", "meta": {"replyTo": 5}},
        {"content": "x", "meta": {"edited_by": "user"}}, {"content": "x", "meta": {"outcome": 1}},
        {"content": "x", "from": ""}, {"type": "thread.renamed"}, {"type": "task", "content": "x"},
        {"type": "thread.renamed", "content": "x" * 257}, {"type": "presence", "content": "here"},
    ],
)  # fmt: skip
def test_what_is_no_event_changes_nothing(api: Api, thread: str, body: dict[str, Any]) -> None:
    with unchanged(api, thread):
        refused(api.post(f"/threads/{thread}/events", body), 400, "validation_error")


@pytest.mark.parametrize("name", ["\x1b[31mred", "a\x00b", "a\u202eb"])
def test_a_name_that_cannot_be_read_begins_no_thread(api: Api, name: str) -> None:
    refused(api.post("/threads", {"name": name}), 400, "validation_error")
    refused(api.post("/v1/host/moot/threads", {"title": name}), 400, "validation_error")
    assert new(api, "two\n lines")


def test_what_is_null_is_not_there(api: Api, thread: str) -> None:
    for more in ({"meta": None}, {"to": None}, {"meta": {"tags": None, "reply_to": None}}):
        event = posted(api, thread, "x", **more)
        assert (event["to"], event["meta"]) == ("all", {"tags": []})


def test_both_spellings_of_what_is_replied_to_mean_the_same(api: Api, thread: str) -> None:
    first = posted(api, thread, "One?")
    for key in ("reply_to", "replyTo"):
        reply = posted(api, thread, "One.", meta={key: first["id"]})
        assert reply["meta"] == {"tags": [], "reply_to": first["id"]}


def test_nobody_tells_by_the_other_door_what_the_host_tells_of_a_turn(
    api: Api, thread: str
) -> None:
    with unchanged(api, thread):
        for meta in ({"edited_by": "user"}, {"outcome": "x"}, {"replyTo": {"a": 1}}):
            refused(person(api, thread, "x", meta=meta), 400, "validation_error")


def test_too_much_is_too_large(api: Api, thread: str) -> None:
    with unchanged(api, thread):
        assert refused(post(api, thread, "x" * 100_001), 413, "payload_too_large")
        refused(post(api, thread, "x" * 1_100_000), 413, "payload_too_large")
    assert posted(api, thread, "x" * 100_000)["content"] == "x" * 100_000


@pytest.mark.parametrize("raw", [b'{"content": "\xff"}', b'{"content": "\\ud800"}', b"{", b"[]"])
def test_broken_text_is_refused(api: Api, thread: str, raw: bytes) -> None:
    with unchanged(api, thread):
        refused(api.post(f"/threads/{thread}/events", raw), 400, "validation_error")


@pytest.mark.parametrize(
    "content",
    [
        {"mute": 5}, {"mute": "codex"}, {"prod": {"targets": "codex"}}, {"pause": "yes"},
        {"mute": {"targets": ["codex"], "mode": "soft"}},
        {"ttl_seconds": -1}, {"done": "no"}, {"invite": {"participant_id": ""}}, {"invite": 5},
        {"uninvite": ["x"]}, {"fly": True}, {}, "not JSON", [1, 2], 7, None, "[1]",
        {"mute": {"targets": ["codex"], "seconds": "long"}}, {"discussion": {"on": "x"}},
        {"rename": 5}, {"rename": "x\u0007"}, {"link": 5}, {"link": {}}, {"presence": "x"},
        {"vote": 5}, {"vote": {}}, {"continue": "x"}, {"continue": {"rounds": 0}},
        {"participation": 5}, {"participation": {"mode": "none"}}, {"mute": ["codex"] * 257},
        {"participation": {"moderator": "host:nobody"}}, {"admit": 1}, {"drop": "x"},
        {"allow": "zz"}, {"deny": {"a": 1}}, {"allow": "a", "deny": "b"},
    ],
)  # fmt: skip
def test_a_malformed_control_is_kept_and_changes_nothing(
    api: Api, thread: str, content: Any
) -> None:
    before = api.get(f"/threads/{thread}/state").json()
    answer = post(api, thread, content, type="control")
    assert answer.status_code == 200 and "changes nothing" in answer.json()["warning"]
    kept = events(api, thread)[-1]
    assert (kept["type"], kept["content"]) == ("control", content)
    assert answer.json()["event"] == kept
    assert api.get(f"/threads/{thread}/state").json() == before
    assert api.post(f"/v1/host/moot/runs/{thread}:verify").json()["identical"] is True


def test_a_mute_for_a_time_in_words_is_no_mute_for_good(api: Api, thread: str) -> None:
    told = f"/v1/host/moot/threads/{thread}"
    for content in ({"mute": ["codex"], "for": "10m"}, '{"mute": ["codex"], "for": "10m"}',
                    {"mute": {"targets": ["codex"], "for": "10m"}}):  # fmt: skip
        answer = post(api, thread, content, type="control").json()
        assert "warning" not in answer
        assert answer["event"]["content"] == {"mute": {"targets": ["codex"], "seconds": 600}}
        assert "codex" in api.get(f"/threads/{thread}/state").json()["state"]["muted_until"]
        assert "for 10 minutes" in api.get(f"{told}/events").json()["events"][-1]["says"]
        posted(api, thread, {"unmute": ["codex"]}, type="control")
    answer = api.post(f"{told}/controls", {"content": {"mute": ["host:codex"], "for": "10m"}})
    assert "warnings" not in answer.json() and answer.json()["state"]["mutedUntil"]
    posted(api, thread, {"unmute": ["codex"]}, type="control")
    answer = post(api, thread, {"mute": ["codex"], "for": "ever"}, type="control").json()
    assert "mute takes a number of seconds" in answer["warning"]
    assert api.get(f"/threads/{thread}/state").json()["state"]["muted"] == []


def test_what_is_said_beside_a_control_is_not_kept(api: Api, thread: str) -> None:
    for type_, content in (("control", {"done": True}), ("presence", "typing.start")):
        said = posted(api, thread, content, type=type_, meta={"text": "BUY NOW", "tags": ["BUY"]})
        assert said["meta"] == {"tags": []} and "BUY" not in str(api.events(thread)[-1])


def test_the_hosts_own_route_warns_as_well(api: Api, thread: str) -> None:
    answer = api.post(f"/v1/host/moot/threads/{thread}/controls", {"content": {"mute": 5}})
    assert answer.status_code == 200 and "names nobody" in answer.json()["warnings"][0]


def test_half_a_control_counts_as_far_as_it_is_one(api: Api, thread: str) -> None:
    answer = post(api, thread, {"pause": True, "mute": 5}, type="control").json()
    assert "mute" in answer["warning"] and "pause" not in answer["warning"]
    state = api.get(f"/threads/{thread}/state").json()["state"]
    assert (state["paused"], state["muted"]) == (True, [])
    answer = post(api, thread, {"mute": ["codex"], "rename": 5, "mode": "soft"}, type="control")
    assert "title" in answer.json()["warning"] and "'mode'" in answer.json()["warning"]
    assert answer.json()["warning"].endswith("That is kept, and changes nothing.")
    assert api.get(f"/threads/{thread}/state").json()["state"]["muted"] == ["codex"]
    assert api.post(f"/v1/host/moot/runs/{thread}:verify").json()["identical"] is True


def test_agents_may_not_steer_as_people_do(api: Api, codex: Api, thread: str) -> None:
    before = api.get(f"/threads/{thread}/state").json()
    for content in ({"mute": ["user"]}, {"pause": True}, {"prod": ["codex"]}, {"ttl_seconds": 5},
                    {"discussion": True}, {"vote": {"decision": "Mine.", "close": True}},
                    {"participation": {"mode": "large"}}, {"continue": True}):  # fmt: skip
        answer = post(codex, thread, content, type="control").json()
        assert "is for people." in answer["warning"] and answer["event"]["content"] == content
        refused(steer(codex, thread, content), 403, "forbidden")
    assert api.get(f"/threads/{thread}/state").json() == before
    assert api.post(f"/v1/host/moot/runs/{thread}:verify").json()["identical"] is True
    posted(codex, thread, {"done": True, "mute": ["user"]}, type="control")
    assert api.get(f"/threads/{thread}/state").json()["state"]["done"] == ["codex"]
    posted(codex, thread, {"invite": "claude"}, type="control")
    invited = api.get(f"/threads/{thread}/state").json()["state"]["participants"]["invited"]
    assert [each["id"] for each in invited] == ["codex", "claude"]
    assert invited[1]["invited_by"] == "codex"
    told = posted(codex, thread, {"uninvite": "claude"}, type="control")
    assert told["content"] == {"uninvite": {"participant_id": "claude"}}, "as everybody may"


@pytest.mark.parametrize("odd", ["NaN", "Infinity", "1e999", "1"])
def test_agents_steer_as_people_do_by_no_text_either(
    api: Api, codex: Api, thread: str, odd: str
) -> None:
    before = api.get(f"/threads/{thread}/state").json()
    words = '{"mute": ["user"], "pause": true, "discussion": true, "x": ' + odd + "}"
    answer = post(codex, thread, words, type="control")
    assert answer.status_code == 403 or "changes nothing" in answer.json()["warning"]
    assert api.get(f"/threads/{thread}/state").json() == before
    posted(api, thread, "Still here.")


def test_a_closed_roster_stays_closed(api: Api) -> None:
    thread = convened(api)
    about = conflict(post(api, thread, {"invite": "cy"}, type="control"), "roster_closed")
    assert about["participant"] == "cy"
    assert posted(key_as(api, ADA), thread)["from"] == "ada"
    refused(post(key_as(api, "host:cy"), thread), 422, "validation_error")


# -- absent addressees -----------------------------------------------------------------------------


@pytest.fixture
def council_thread(api: Api) -> str:
    """With codex and dee in it."""
    found = new(api)
    about = {"nickname": "Cody", "roles": ["builder", "critic"]}
    posted(api, found, {"invite": {"participant_id": "codex", "profile": about}}, type="control")
    critic = {"participant_id": "dee", "profile": {"roles": ["critic"]}}
    posted(api, found, {"invite": critic}, type="control")
    return found


@pytest.mark.parametrize("to", ["codex", "Codex", "host:codex", "Cody", "cody", "builder"])
def test_an_address_is_an_id_a_nickname_or_a_role(api: Api, council_thread: str, to: str) -> None:
    first = post(api, council_thread, "Well?", to=to, id="m1").json()
    assert first["event"]["to"] == "codex" and "warning" not in first
    assert post(api, council_thread, "Well?", to=to, id="m1").json() == first
    assert post(api, council_thread, "Well?", to="dee", id="m1").status_code == 409
    assert post(api, council_thread, "Well?", id="m1").status_code == 409


def test_who_is_not_there_is_warned_of_with_who_is(api: Api, council_thread: str) -> None:
    told = post(api, council_thread, "Well?", to="zork").json()
    assert told["warning"] == "Nobody here is called zork; there are codex, dee."
    assert told["event"]["to"] == "zork"
    told = post(api, council_thread, "Well, @zork and @codex?").json()
    assert told["warning"] == "Nobody here is called @zork; there are codex, dee."
    told = post(api, council_thread, "Well?", to="critic").json()
    assert told["warning"] == "Several could be meant by critic: codex, dee. Name one."
    for text in ("@user `@zork`", "write to me@zork.org", "@all", "no name"):
        assert "warning" not in post(api, council_thread, text).json()
    assert "warning" not in post(api, council_thread, "Well?", to="user:eve").json()
    told = post(api, new(api), "Well?", to="zork").json()
    assert told["warning"] == "Nobody here is called zork; nobody takes part yet."


def test_a_control_about_who_is_not_there_is_warned_of_by_both_doors(
    api: Api, council_thread: str
) -> None:
    for content, said in (
        ({"prod": ["zz"]}, "'prod': zz takes no part here; there are codex, dee."),
        ({"mute": ["zz", "dee"]}, "'mute': zz takes no part here; there are codex, dee."),
        ({"uninvite": "zz"}, "'uninvite': zz takes no part here; there are codex, dee."),
        ({"unmute": ["codex"]}, "'unmute': codex is not muted."),
    ):
        assert post(api, council_thread, content, type="control").json()["warning"].endswith(said)
        body = {"content": content}
        answer = api.post(f"/v1/host/moot/threads/{council_thread}/controls", body).json()
        assert answer["warnings"] == [said]
    assert "warning" not in post(api, council_thread, {"unmute": ["dee"]}, type="control").json()
    assert api.get(f"/threads/{council_thread}/state").json()["state"]["prodded"] == []
