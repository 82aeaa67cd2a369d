"""What is said to, or asked of, somebody who is not there: taken, and answered with a warning."""

import pytest

from tests.support.api.caller import Api
from tests.support.api.threads import new, post, posted


@pytest.fixture
def thread(api: Api) -> str:
    """With codex and dee in it."""
    found = new(api)
    about = {"nickname": "Cody", "roles": ["builder", "critic"]}
    posted(api, found, {"invite": {"participant_id": "codex", "profile": about}}, type="control")
    critic = {"participant_id": "dee", "profile": {"roles": ["critic"]}}
    posted(api, found, {"invite": critic}, type="control")
    return found


@pytest.mark.parametrize("to", ["codex", "Codex", "host:codex", "Cody", "cody", "builder"])
def test_an_address_is_an_id_a_nickname_or_a_role(api: Api, thread: str, to: str) -> None:
    first = post(api, thread, "Well?", to=to, id="m1").json()
    assert first["event"]["to"] == "codex" and "warning" not in first
    assert post(api, thread, "Well?", to=to, id="m1").json() == first
    assert post(api, thread, "Well?", to="dee", id="m1").status_code == 409
    assert post(api, thread, "Well?", id="m1").status_code == 409


def test_who_is_not_there_is_warned_of_with_who_is(api: Api, thread: str) -> None:
    told = post(api, thread, "Well?", to="zork").json()
    assert told["warning"] == "Nobody here is called zork; there are codex, dee."
    assert told["event"]["to"] == "zork"
    told = post(api, thread, "Well, @zork and @codex?").json()
    assert told["warning"] == "Nobody here is called @zork; there are codex, dee."
    told = post(api, thread, "Well?", to="critic").json()
    assert told["warning"] == "Several could be meant by critic: codex, dee. Name one."
    for text in ("@user `@zork`", "write to me@zork.org", "@all", "no name"):
        assert "warning" not in post(api, thread, text).json()
    assert "warning" not in post(api, thread, "Well?", to="user:eve").json()
    told = post(api, new(api), "Well?", to="zork").json()
    assert told["warning"] == "Nobody here is called zork; nobody takes part yet."


def test_a_control_about_who_is_not_there_is_warned_of_by_both_doors(api: Api, thread: str) -> None:
    for content, said in (
        ({"prod": ["zz"]}, "'prod': zz takes no part here; there are codex, dee."),
        ({"mute": ["zz", "dee"]}, "'mute': zz takes no part here; there are codex, dee."),
        ({"uninvite": "zz"}, "'uninvite': zz takes no part here; there are codex, dee."),
        ({"unmute": ["codex"]}, "'unmute': codex is not muted."),
    ):
        assert post(api, thread, content, type="control").json()["warning"].endswith(said)
        body = {"content": content}
        answer = api.post(f"/v1/host/moot/threads/{thread}/controls", body).json()
        assert answer["warnings"] == [said]
    assert "warning" not in post(api, thread, {"unmute": ["dee"]}, type="control").json()
    assert api.get(f"/threads/{thread}/state").json()["state"]["prodded"] == []
