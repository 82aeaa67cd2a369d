"""The list of runs knows which of them were made from another."""

from typing import Any

from tests.support.api.caller import Api, definition


def listed(api: Api, **query: Any) -> list[dict[str, Any]]:
    return list(api.get("/v1/host/moot/runs", params=query).json()["runs"])


def source_of(api: Api) -> str:
    node = {"id": "x", "typeId": "core.setVariable", "config": {"name": "x", "value": 1}}
    return str(api.run(api.register(definition("fork-listed", [node])))["runId"])


def replayed(api: Api, run_id: str, from_seq: int) -> str:
    answer = api.post(f"/v1/runs/{run_id}:fork", {"mode": "replay", "fromSeq": from_seq})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


def test_forks_are_found_by_their_source_newest_first(api: Api) -> None:
    source = source_of(api)
    forks = [replayed(api, source, sequence) for sequence in (0, 3)]
    again = replayed(api, forks[1], 1)
    assert [row["runId"] for row in listed(api, forkOf=source)] == forks[::-1]
    assert [row["runId"] for row in listed(api, forkOf=forks[1])] == [again]
    assert listed(api, forkOf=again) == []
    [row] = listed(api, forkOf=source, limit=1)
    assert row["forkedFrom"] == {"sourceRunId": source, "fromSeq": 3, "mode": "replay"}
    assert "forkedFrom" not in listed(api, prefix=source)[0]


def test_other_filters_hold_beside_it(api: Api) -> None:
    source = source_of(api)
    replayed(api, source, 0)
    assert listed(api, forkOf=source, status="failed") == []
    assert len(listed(api, forkOf=source, status="completed", workflow="fork-listed")) == 1
    assert listed(api, forkOf=source, parent=source) == []


def test_forks_of_others_are_not_there(api: Api, foreign: Api) -> None:
    source = source_of(api)
    replayed(api, source, 0)
    assert listed(foreign, forkOf=source) == []


def test_a_page_of_forks_leads_to_the_next(api: Api) -> None:
    source = source_of(api)
    forks = [replayed(api, source, 0) for _ in range(3)]
    first = api.get("/v1/host/moot/runs", params={"forkOf": source, "limit": 2}).json()
    rest = listed(api, forkOf=source, cursor=first["nextCursor"])
    assert [row["runId"] for row in (*first["runs"], *rest)] == forks[::-1]
