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


# -- failed runs -----------------------------------------------------------------------------------


def failing(name: str, retries: int) -> dict[str, object]:
    nodes = [
        {"id": "first", "typeId": "core.noop"},
        {"id": "bad", "typeId": "core.fail",
         "config": {"code": "shop_closed", "message": "Come again.", "retryable": True},
         "settings": {"maxRetries": retries, "retryDelayMs": 1}},
    ]  # fmt: skip
    edges = [{"id": "e", "sourceNodeId": "first", "targetNodeId": "bad"}]
    return {**definition(name, nodes), "edges": edges}


def dead(api: Api, workflow: str) -> list[dict[str, Any]]:
    wanted = {"deadLettered": "true", "workflow": workflow}
    return list(api.get("/v1/host/moot/runs", params=wanted).json()["runs"])


def test_what_used_up_its_attempts_is_a_dead_letter_that_can_be_forked(api: Api) -> None:
    api.register(failing("tries-thrice", 2))
    run_id = api.run("tries-thrice")["runId"]
    *_, said, end = api.events(run_id)
    assert (said["type"], end["type"]) == ("run.dead_lettered", "run.failed")
    letter = {"runId": run_id, "nodeId": "bad", "reason": "shop_closed", "attempts": 3}
    assert said["payload"] == letter
    listed = dead(api, "tries-thrice")
    assert [(row["runId"], row["deadLetteredAfter"]) for row in listed] == [(run_id, 3)]
    fork = api.post(f"/v1/runs/{run_id}:fork", {"mode": "branch", "fromSeq": 2})
    assert fork.status_code == 201, fork.text


def test_what_is_tried_once_uses_up_nothing(api: Api) -> None:
    api.register(failing("tries-once", 0))
    run_id = api.run("tries-once")["runId"]
    assert "run.dead_lettered" not in {event["type"] for event in api.events(run_id)}
    assert dead(api, "tries-once") == []
