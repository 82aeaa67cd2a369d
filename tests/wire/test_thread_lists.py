"""Lists of a thread's things that can grow: from either end, page by page, nothing left out."""

from typing import Any

from .api import Api
from .bridging import new, posted

THREADS = "/v1/host/moot/threads"


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
