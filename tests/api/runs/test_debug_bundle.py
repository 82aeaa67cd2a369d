"""Artifacts and debug bundles of runs."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.api.caller import Api, definition, sleeping
from tests.support.api.questions import refused
from tests.support.servers import ROOT

NODES = str(ROOT / "tests" / "support" / "api" / "nodes.py")


def test_an_artifact_is_kept_and_read(api: Api, foreign: Api) -> None:
    emit = {
        "id": "emit",
        "typeId": "conformance.artifact.emit",
        "config": {"artifactType": "report", "data": {"x": [1, "ü"]}},
    }
    api.register(definition("artifact", [emit]))
    run_id = api.run("artifact")["runId"]
    made = next(e for e in api.events(run_id) if e["type"] == "artifact.created")["payload"]
    assert (made["artifactType"], made["nodeId"]) == ("report", "emit")
    path = f"/v1/runs/{run_id}/artifacts/{made['artifactId']}"
    body = api.get(path).json()
    assert body["data"] == {"x": [1, "ü"]}
    assert (body["artifactType"], body["runId"]) == ("report", run_id)
    refused(api.get(f"/v1/runs/{run_id}/artifacts/none"), 404, "artifact_not_found")
    refused(foreign.get(path), 404, "artifact_not_found")
    assert api.with_key(None).get(path).status_code == 401


def test_a_bundle_holds_the_run_and_its_log(api: Api) -> None:
    run_id = api.run("conformance-multi-node")["runId"]
    answer = api.get(f"/v1/runs/{run_id}/debug-bundle")
    assert answer.headers["cache-control"] == "no-store"
    bundle = answer.json()
    assert bundle["events"] == api.events(run_id)
    assert bundle["run"]["runId"] == run_id
    assert bundle["metrics"] == {"eventCount": len(bundle["events"]), "nodeCount": 3}
    assert len(bundle["spans"]) == 3
    assert all(span["endedAt"] for span in bundle["spans"])
    assert "truncated" not in bundle
    assert (bundle["redactionApplied"], bundle["redactionMode"]) == (False, "mask")


@pytest.mark.parametrize("most", [0, 1, 5])
def test_a_bundle_is_cut_openly(api: Api, most: int) -> None:
    run_id = api.run("conformance-multi-node")["runId"]
    bundle = api.get(f"/v1/runs/{run_id}/debug-bundle", params={"maxEvents": most}).json()
    assert bundle["events"] == api.events(run_id)[:most]
    assert bundle["truncated"] is True
    assert bundle["truncatedReason"]


def test_a_bundle_is_cut_at_eight_megabytes(host: Callable[..., Api]) -> None:
    busy = host("--nodes", NODES)
    flood = {"id": "a", "typeId": "wire.flood", "config": {"count": 1000, "size": 10_000}}
    busy.register(definition("flood", [flood]))
    run_id = busy.run("flood")["runId"]
    answer = busy.get(f"/v1/runs/{run_id}/debug-bundle")
    assert answer.json()["truncatedReason"] == "events_truncated_to_size_cap"
    assert 7_000_000 < len(answer.content) < 9_000_000


def test_a_bundle_of_a_living_run_narrows_its_status(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    api.post(f"/v1/runs/{run_id}:pause", {"drainPolicy": "immediate"})
    run = api.get(f"/v1/runs/{run_id}/debug-bundle").json()["run"]
    assert (run["status"], run["exactStatus"], run["endedAt"]) == ("running", "paused", None)
    api.post(f"/v1/runs/{run_id}/cancel")


@pytest.mark.parametrize("wrong", ["x", "-1", "1.5", "9" * 5000])
def test_a_bundle_of_an_impossible_size_is_refused(api: Api, wrong: str) -> None:
    run_id = api.run("conformance-noop")["runId"]
    answer = api.get(f"/v1/runs/{run_id}/debug-bundle", params={"maxEvents": wrong})
    refused(answer, 400, "validation_error")


SECRET = "my-secret-0xC0FFEE"


@pytest.mark.parametrize(
    ("mode", "kind"),
    list(itertools.product(["mask", "omit", "hash"], ["variable", "output", "channel"])),
)
def test_what_is_sensitive_leaves_the_host_nowhere(api: Api, mode: str, kind: str) -> None:
    """Snapshot, log, streams, bundle, list: none says it; the nodes themselves see it."""
    check = {
        "id": "check",
        "typeId": "core.conditional",
        "config": {},
        "inputs": {"value": {"type": "expression", "expression": "variables.seen == true"}},
    }
    echo: dict[str, Any] = {"id": "echo", "typeId": "core.identity"}
    more: dict[str, Any] = {
        "metadata": {"complianceConfig": {"maskingMode": mode}},
        "variables": [
            {"name": "secret", "type": "string", "sensitive": kind == "variable"},
            {"name": "seen", "type": "boolean"},
        ],
    }
    inputs: dict[str, Any] = {"seen": True}
    if kind == "variable":
        inputs["secret"] = SECRET
    elif kind == "output":
        echo["inputs"] = {
            "secret": {"type": "expression", "expression": "'my-secret-' + '0xC0FFEE'"}
        }
        echo["outputSensitivity"] = {"secret": True}
    else:
        echo["typeId"] = "core.channelWrite"
        echo["config"] = {"channelName": "c", "reducer": "replace"}
        echo["inputs"] = {
            "value": {"type": "expression", "expression": "'my-secret-' + '0xC0FFEE'"}
        }
        more["channels"] = {"c": {"reducer": "replace", "sensitive": True}}
    api.register(definition(f"sensitive-{mode}-{kind}", [echo, check], **more))
    found = api.run(f"sensitive-{mode}-{kind}", inputs=inputs)
    run_id = found["runId"]
    assert found["status"] == "completed", found
    bundle = api.get(f"/v1/runs/{run_id}/debug-bundle")
    assert bundle.json()["redactionApplied"] is True
    assert bundle.json()["redactionMode"] == mode
    texts = [json.dumps(found), bundle.text, json.dumps(api.events(run_id))]
    texts += [json.dumps(api.stream(run_id, streamMode=mode_)) for mode_ in ("debug", "values")]
    texts.append(api.get("/v1/host/moot/runs", params={"prefix": run_id}).text)
    assert not [text for text in texts if SECRET in text]


def test_passthrough_never_claims_to_redact(api: Api) -> None:
    more = {"metadata": {"complianceConfig": {"maskingMode": "passthrough"}}}
    more["variables"] = [{"name": "x", "type": "string", "sensitive": True}]  # type: ignore[assignment]
    api.register(sleeping("passing", 0, **more))
    run_id = api.run("passing", inputs={"x": "[REDACTED]"})["runId"]
    bundle = api.get(f"/v1/runs/{run_id}/debug-bundle").json()
    assert (bundle["redactionApplied"], bundle["redactionMode"]) == (False, "passthrough")
