"""The list of runs: pages and filters."""

from typing import Any

import pytest

from tests.support.api.caller import Api, definition, sleeping
from tests.support.api.questions import refused


@pytest.fixture(scope="module")
def crowd(api: Api) -> tuple[Api, list[str]]:
    """A tenant of its own with runs of every kind, oldest first."""
    mine = api.with_key(api.new_key("crowd", tenant="crowd"))
    mine.register(sleeping("nap"))
    mine.register(definition("quick", [{"id": "a", "typeId": "core.noop"}]))
    mine.register(definition("bad", [{"id": "a", "typeId": "core.fail"}]))
    call = {"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "quick"}}
    mine.register(definition("parent", [call]))
    made = []
    for name in ("quick", "bad", "nap", "parent") * 5:
        run_id = mine.create(name)
        if name != "nap":
            mine.until(run_id)
        made.append(run_id)
    return mine, made


def listed(api: Api, **query: Any) -> list[dict[str, Any]]:
    answer = api.get("/v1/host/moot/runs", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["runs"])


def test_runs_are_listed_newest_first_in_pages(crowd: tuple[Api, list[str]]) -> None:
    mine, made = crowd
    for limit in (1, 3, 7, 500):
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            query = {"limit": limit, **cursor}
            page = mine.get("/v1/host/moot/runs", params=query).json()
            assert len(page["runs"]) <= limit
            found += [row["runId"] for row in page["runs"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert len(found) == len(set(found)) == 25
        assert [run_id for run_id in found if run_id in made] == made[::-1]


def test_runs_are_filtered(crowd: tuple[Api, list[str]]) -> None:
    mine, made = crowd
    statuses = {
        "completed": 15, "failed": 5, "running": 5, "waiting": 0, "cancelled": 0,
        "completed,failed": 20, "running,completed,failed": 25,
    }  # fmt: skip
    for status, number in statuses.items():
        rows = listed(mine, status=status)
        assert len(rows) == number, status
        assert {row["status"] for row in rows} <= set(status.split(","))
    assert {row["workflowId"] for row in listed(mine, workflow="bad")} == {"bad"}
    assert {row["errorCode"] for row in listed(mine, workflow="bad")} == {
        "conformance_test_failure"
    }
    assert listed(mine, workflow="none") == []
    parent = made[3]
    children = listed(mine, parent=parent)
    assert [row["parentRunId"] for row in children] == [parent]
    assert [row["runId"] for row in listed(mine, prefix=parent)] == [parent]
    assert [row["runId"] for row in listed(mine, prefix=parent[:12])] == [parent]
    assert len(listed(mine, prefix="run_")) == 25
    assert listed(mine, prefix="%") == listed(mine, prefix="_") == listed(mine, agent="x") == []
    both = listed(mine, status="completed", workflow="parent", limit=2)
    assert {(row["status"], row["workflowId"]) for row in both} == {("completed", "parent")}


def test_a_row_agrees_with_the_run(crowd: tuple[Api, list[str]]) -> None:
    mine, _ = crowd
    for row in listed(mine):
        found = mine.read(row["runId"])
        assert (row["status"], row["workflowId"]) == (found["status"], found["workflowId"])
        assert row["eventCount"] == found["metrics"]["eventCount"]
        assert row["startedAt"] == found["startedAt"]
        assert row.get("completedAt") == found.get("completedAt")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", "0"),
        ("limit", "501"),
        ("limit", "x"),
        ("limit", "-1"),
        ("limit", "9" * 5000),
        ("status", "asleep"),
        ("cursor", "x"),
        ("cursor", ""),
        ("cursor", "AAAA"),
        ("cursor", "ü"),
    ],
)
def test_a_wrong_list_query_is_refused(api: Api, name: str, value: str) -> None:
    refused(api.get("/v1/host/moot/runs", params={name: value}), 400, "validation_error")
