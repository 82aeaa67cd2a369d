"""Lists of a thread's things that can grow: from either end, page by page, nothing left out."""

from typing import Any

from tests.support.api.caller import Api
from tests.support.api.councils import ADA, BO
from tests.support.api.questions import asked, council, refused
from tests.support.api.threads import new, posted

THREADS = "/v1/host/moot/threads"


def pages(api: Api, **query: Any) -> list[str]:
    """The ids of all pages, in their order."""
    found: list[str] = []
    while True:
        page = api.get(THREADS, params={"limit": 2, **query}).json()
        found += [each["threadId"] for each in page["threads"]]
        if "nextCursor" not in page:
            return found
        assert len(page["threads"]) == 2, "only the last page may be short"
        query["cursor"] = page["nextCursor"]


def test_what_was_put_away_and_the_rest_are_whole_lists_page_by_page(api: Api) -> None:
    made = [new(api, f"Shelf {number}") for number in range(7)]
    away = [made[number] for number in (0, 1, 2, 5, 6)]
    for thread in away:
        assert api.post(f"{THREADS}/{thread}:archive").json()["archived"] is True
    api.post(f"{THREADS}/{made[2]}:unarchive")
    away.remove(made[2])
    here = [thread for thread in made if thread not in away]
    found = pages(api, archived="true")
    assert [thread for thread in found if thread in made] == away[::-1]
    assert [thread for thread in pages(api) if thread in made] == here[::-1]
    told = [each["id"] for each in api.get("/threads").json()["threads"]]
    assert [thread for thread in told if thread in made] == here[::-1]
    one = {"archived": "true", "prefix": away[0][:12]}
    assert pages(api, **one) == [away[0]] and pages(api, prefix=away[0][:12]) == []


def test_threads_in_the_order_of_their_use_are_a_whole_list_page_by_page(api: Api) -> None:
    desk = api.with_key(api.new_key("used", tenant="used-threads", admin=True))
    made = [new(desk, f"Used {number}") for number in range(5)]
    posted(desk, made[1], "once more")
    assert pages(desk, order="active") == [made[1], made[4], made[3], made[2], made[0]]
    assert pages(desk) == made[::-1]
    query: dict[str, Any] = {"order": "active", "limit": 2}
    first = desk.get(THREADS, params=query).json()
    posted(desk, made[0], "meanwhile")
    query["cursor"] = first["nextCursor"]
    rest = desk.get(THREADS, params={**query, "limit": 9}).json()
    assert [each["threadId"] for each in rest["threads"]] == [made[3], made[2]]
    other = desk.get(THREADS, params={"limit": 2}).json()["nextCursor"]
    for wrong in ({**query, "cursor": other}, {**query, "order": "newest"}, {"order": "oldest"}):
        refused(desk.get(THREADS, params=wrong), 400, "validation_error")


def test_a_conversation_of_another_run_is_in_no_list_and_is_not_put_away(api: Api) -> None:
    run = asked(api, council(ADA, BO, prompt="A newt?"))
    refused(api.post(f"{THREADS}/{run}~convo~1:archive"), 400, "validation_error")


def test_a_thread_is_read_from_its_end_backwards(api: Api) -> None:
    thread = new(api)
    said = [posted(api, thread, f"turn {number}")["seq"] for number in range(7)]
    path = f"{THREADS}/{thread}/events"
    whole = api.get(path).json()["events"]
    found: list[dict[str, Any]] = []
    before = 2**53
    while True:
        page = api.get(path, params={"before": before, "limit": 3}).json()
        assert page["count"] == len(page["events"]) <= 3
        found = page["events"] + found
        before = page["events"][0]["seq"]
        if not page["more"]:
            break
    assert found == whole and {each["seq"] for each in found} >= set(said)
    assert api.get(path, params={"before": 0}).json() == {"events": [], "count": 0, "more": False}
