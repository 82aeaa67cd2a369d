"""A run that failed after all attempts of a node says so, is listed, and can be gone on with."""

from typing import Any

from tests.support.api.caller import Api, definition


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
