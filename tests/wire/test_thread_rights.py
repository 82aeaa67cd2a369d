"""What a key for one thread, or no key at all, does not get by way of the thread API."""


import pytest

from .api import Api
from .asking import begun, refused, talk, unchanged
from .bridging import new, post, posted
from .councils import THREADS, convened, joined, steer

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
