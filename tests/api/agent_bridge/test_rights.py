"""What a key for one thread, or no key at all, does not get by way of the thread API."""

import pytest

from tests.support.api.caller import Api
from tests.support.api.councils import THREADS, convened, join, joined, key_as, steer, tell
from tests.support.api.questions import begun, refused, talk, unchanged
from tests.support.api.threads import new, post, posted

REX = "host:rex"


@pytest.fixture
def thread(api: Api) -> str:
    """With rex in it."""
    found = new(api)
    posted(api, found, {"invite": "rex"}, type="control")
    return found


# -- other threads -------------------------------------------------------------------------------


def test_a_token_learns_nothing_of_another_thread_by_linking_it(api: Api, thread: str) -> None:
    secret = new(api, "The secret name")
    several = begun(api, talk(), {"id": "other", "typeId": "core.conversationGate"}, edges=[])
    rex = joined(api, thread, REX)
    with unchanged(api, thread):
        for other in (secret, convened(api), several, f"{several}~other~1", "th_none"):
            for asked in (other, {"thread": other}, {"thread": other, "title": "mine"}):
                for answer in (
                    steer(rex, thread, {"link": asked}),
                    post(rex, thread, {"link": asked}, type="control"),
                ):
                    refused(answer, 404, "not_found")
                    assert "secret" not in answer.text and "convo" not in answer.text
    assert "links" not in api.get(f"{THREADS}/{thread}").json()
    told = posted(api, thread, {"link": secret}, type="control")
    assert told["content"] == {"thread": secret, "name": "The secret name"}


def test_a_thread_is_not_linked_to_itself_by_any_door(api: Api, thread: str) -> None:
    with unchanged(api, thread):
        refused(api.post(f"{THREADS}/{thread}/links", {"thread": thread}), 400, "validation_error")
        refused(steer(api, thread, {"link": thread}), 400, "validation_error")


# -- the host's own name -------------------------------------------------------------------------

OWN = ["moot", "host:moot", "system", "MOOT", "all", "everyone", "here", "host:System"]


@pytest.mark.parametrize("name", OWN)
def test_nobody_speaks_steers_or_is_here_as_the_host(api: Api, thread: str, name: str) -> None:
    elsewhere = f"{begun(api, {'id': 'convo', 'typeId': 'core.conversationGate'})}~convo~1"
    for place in (thread, elsewhere):
        with unchanged(api, place.partition("~")[0]):
            for type_, said in (("message", "I decide."), ("control", {"done": True})):
                answer = post(api, place, said, type=type_, **{"from": name})
                assert answer.status_code in (400, 422), answer.text
            assert tell(api, place, name).status_code in (400, 422)
            refused(steer(api, place, {"done": True}, **{"from": name}), 400, "validation_error")
            sign = {"state": "idle", "from": name}
            refused(api.post(f"/threads/{place}/presence", sign), 400, "validation_error")


@pytest.mark.parametrize("name", OWN)
def test_nobody_gets_a_key_for_the_hosts_own_name(api: Api, thread: str, name: str) -> None:
    refused(join(api, thread, name), 400, "validation_error")
    body = {"name": "forged", "as": [name]}
    refused(api.post("/v1/host/moot/keys", body), 400, "validation_error")


# -- who joins -----------------------------------------------------------------------------------


def test_who_gets_a_token_for_an_open_thread_takes_part_in_it(api: Api) -> None:
    thread = new(api)
    zoe = joined(api, thread, "zoe")
    state = api.get(f"/threads/{thread}/state").json()["state"]
    assert [each["id"] for each in state["participants"]["invited"]] == ["zoe"]
    assert zoe.get(f"{THREADS}/{thread}/next", params={"wait": 0}).status_code == 204
    assert posted(zoe, thread, "Here I am.")["from"] == "zoe"
    with unchanged(api, thread):
        joined(api, thread, "zoe")
        joined(api, thread, "user:ann")


def test_nobody_gets_into_a_thread_by_a_token_of_his_own_making(api: Api, thread: str) -> None:
    with unchanged(api, thread):
        refused(join(key_as(api, "host:eve"), thread, "eve"), 422, "validation_error")


def test_who_takes_no_part_is_told_how_to(api: Api, thread: str) -> None:
    eve = key_as(api, "host:eve")
    for answer in (
        post(eve, thread), post(eve, thread, {"done": True}, type="control"),
        eve.get(f"{THREADS}/{thread}/next"), join(eve, thread, "eve"),
        eve.post(f"/threads/{thread}/presence", {"state": "idle"}),
    ):  # fmt: skip
        refused(answer, 422, "validation_error")
        assert f"moot thread invite {thread} eve" in answer.json()["message"]


def test_a_thread_in_which_all_are_done_is_closed_but_not_by_a_persons_token(
    api: Api, thread: str
) -> None:
    done = {"done": True}
    for guest in (joined(api, thread, REX), joined(api, thread, "user:eve")):
        assert post(guest, thread, done, type="control").status_code == 200
    posted(joined(api, thread, "user"), thread, done, type="control")
    assert api.get(f"{THREADS}/{thread}").json()["open"] is True
    posted(api, thread, done, type="control")
    assert api.get(f"{THREADS}/{thread}").json()["open"] is False
    assert api.post(f"/v1/host/moot/runs/{thread}:verify").json()["identical"] is True
