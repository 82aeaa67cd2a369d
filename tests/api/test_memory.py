"""Memory over the wire: the published fixtures, what people see of it and have forgotten."""

from collections.abc import Callable

import pytest

from tests.api.replay.test_forks import check_everywhere, fork
from tests.support.api.caller import Api, definition
from tests.support.api.memories import MEMORY, check_wave, fits, kept, remembered
from tests.support.api.questions import of, refused
from tests.support.servers import ROOT

NODES = str(ROOT / "tests" / "support" / "api" / "nodes.py")
FIXTURE = "conformance/agent-memory-"


# -- the published fixtures --------------------------------------------------------------------


def test_an_entry_is_written_and_read_back(api: Api) -> None:
    found = api.run("conformance-agent-memory-roundtrip")
    assert found["status"] == "completed"
    entry = found["variables"]["memoryReadback"]
    fits(api, entry)
    [said] = of(api, found["runId"], "memory.written")
    assert said == {
        "memoryRef": f"{FIXTURE}roundtrip",
        "memoryId": entry["id"],
        "nodeId": "memory-roundtrip",
        "agentId": "core.conformance.memory-agent",
        "tags": entry["tags"],
    }
    assert entry["id"] in [each["id"] for each in remembered(api, f"{FIXTURE}roundtrip")]


def test_a_reference_to_another_tenant_finds_nothing(api: Api, foreign: Api) -> None:
    """Also when that tenant keeps something under the very same reference."""
    ref = "conformance/another-tenant/agent-memory"
    kept(foreign, ref, "theirs")
    assert len(remembered(foreign, ref)) == 1
    found = api.run("conformance-agent-memory-cross-tenant")
    assert found["status"] == "completed"
    assert found["variables"]["crossTenantProbe"] == []


def test_the_plain_text_of_a_secret_is_not_kept(api: Api) -> None:
    found = api.run("conformance-agent-memory-redaction")
    entry = found["variables"]["memoryReadback"]
    fits(api, entry)
    assert entry["content"] == "The key is [REDACTED:conformance-test-secret]."
    assert entry["tags"] == ["[REDACTED:conformance-test-secret]"]
    everything = api.get(f"/v1/runs/{found['runId']}/debug-bundle").text
    assert "test-secret-" not in everything.replace("conformance-test-secret", "")


def test_only_what_has_not_ended_is_listed(api: Api) -> None:
    for _ in range(2):
        found = api.run("conformance-agent-memory-ttl")
        [entry] = found["variables"]["memoryList"]
        fits(api, entry)
        assert entry["content"] == "It is future." and "expiresAt" in entry


@pytest.mark.parametrize("name", ["roundtrip", "cross-tenant", "redaction", "ttl"])
def test_a_replay_of_a_fixture_says_the_same_and_writes_nothing(api: Api, name: str) -> None:
    source = api.run(f"conformance-agent-memory-{name}")["runId"]
    before = remembered(api, f"{FIXTURE}{name}")
    check_everywhere(api, source)
    assert remembered(api, f"{FIXTURE}{name}") == before


def test_an_unknown_action_and_an_ordinary_host_refuse_it(
    api: Api, host: Callable[..., Api]
) -> None:
    node = {"id": "n", "typeId": "core.identity", "config": {"memoryAction": "dance"}}
    flow = definition("dances", [node])
    refused(api.post("/v1/host/moot/workflows", flow), 400, "validation_error")
    known = {**node, "config": {"memoryAction": "ttl-probe"}}
    plain = host()
    answer = plain.post("/v1/host/moot/workflows", definition("probes", [known]))
    refused(answer, 400, "validation_error")


# -- waves -------------------------------------------------------------------------------------


def test_the_writes_of_a_wave_are_all_there_one_after_the_other(api: Api) -> None:
    check_wave(api)


# -- what people see of it ---------------------------------------------------------------------


def test_people_see_what_is_remembered_and_where_it_comes_from(api: Api) -> None:
    run = kept(api, "people/see", "Ada likes tea")
    [entry] = remembered(api, "people/see")
    assert (entry["runId"], entry["agentId"]) == (run["runId"], "host:ada")
    assert entry["content"] == "Ada likes tea"
    assert remembered(api, "people/see", id=entry["id"]) == [entry]
    assert remembered(api, "people/see", id="nobody") == []
    assert remembered(api, "people/see", tag="conformance") == [entry]
    assert remembered(api, "people/see", tag="other") == []
    assert remembered(api, "people/../see") == []
    memories = api.get(MEMORY).json()["memories"]
    assert {"ref": "people/see", "entries": 1} in memories


def test_memory_is_shown_as_a_run_saw_it(api: Api) -> None:
    first = kept(api, "seen", "one")["runId"]
    second = kept(api, "seen", "two")["runId"]
    contents = [entry["content"] for entry in remembered(api, "seen", runId=first)]
    assert contents == ["one"]
    [written] = [e["sequence"] for e in api.events(second) if e["type"] == "memory.written"]
    for at, expected in ((1, ["one"]), (written, ["one"]), (written + 1, ["two", "one"])):
        found = remembered(api, "seen", runId=second, at=at)
        assert [entry["content"] for entry in found] == expected
    for at in ("0", "9999", "x"):
        answer = api.get(MEMORY, params={"ref": "seen", "runId": second, "at": at})
        refused(answer, 400, "validation_error")


def test_what_is_asked_wrongly_is_refused(api: Api, foreign: Api) -> None:
    mine = kept(api, "asked", "one")["runId"]
    refused(api.get(MEMORY, params={"ref": "a", "limit": "1001"}), 400, "validation_error")
    refused(api.get(MEMORY, params={"ref": "a", "tag": ""}), 400, "validation_error")
    refused(foreign.get(MEMORY, params={"ref": "a", "runId": mine}), 404, "run_not_found")
    refused(api.delete(MEMORY), 400, "validation_error")
    refused(api.delete(MEMORY, params={"ref": "never"}), 404, "not_found")
    refused(foreign.delete(MEMORY, params={"ref": "asked"}), 404, "not_found")
    assert len(remembered(api, "asked")) == 1


def test_what_is_forgotten_is_gone_and_its_forks_are_refused(api: Api) -> None:
    run_id = kept(api, "private", "a private matter")["runId"]
    [entry] = remembered(api, "private")
    query = {"ref": "private", "id": entry["id"]}
    answer = api.delete(MEMORY, params=query)
    assert (answer.status_code, answer.json()) == (
        200, {"ref": "private", "forgotten": [entry["id"]]},
    )  # fmt: skip
    assert remembered(api, "private") == remembered(api, "private", runId=run_id) == []
    refused(api.delete(MEMORY, params=query), 404, "not_found")
    length = len(api.events(run_id))
    details = refused(
        fork(api, run_id, mode="replay", fromSeq=length), 422, "replay_memory_snapshot_unavailable"
    )
    assert details["fromSeq"] == length and details["memoryRefs"] == ["private"]


def test_a_whole_memory_can_be_forgotten(api: Api) -> None:
    for text in ("one", "two", "three"):
        kept(api, "whole", text)
    kept(api, "other", "stays")
    gone = api.delete(MEMORY, params={"ref": "whole"}).json()["forgotten"]
    assert len(gone) == 3 and remembered(api, "whole") == []
    assert len(remembered(api, "other")) == 1


def test_a_repeated_request_to_forget_gets_its_first_answer(api: Api) -> None:
    for text in ("one", "two"):
        kept(api, "repeated", text)
    first, second = (entry["id"] for entry in remembered(api, "repeated"))
    headers = {"Idempotency-Key": "forget-once"}
    for _ in range(2):
        answer = api.delete(MEMORY, params={"ref": "repeated", "id": first}, headers=headers)
        assert answer.json() == {"ref": "repeated", "forgotten": [first]}
    other = api.delete(MEMORY, params={"ref": "repeated", "id": second}, headers=headers)
    refused(other, 409, "idempotency_key_mismatch")
    assert [entry["id"] for entry in remembered(api, "repeated")] == [second]


def test_forgetting_needs_its_own_scope(api: Api) -> None:
    kept(api, "guarded", "one")
    usual = api.with_key(api.new_key("usual"))
    assert len(remembered(usual, "guarded")) == 1
    details = refused(usual.delete(MEMORY, params={"ref": "guarded"}), 403, "forbidden")
    assert details["scopeRequired"] == "memory:write"
    assert len(remembered(api, "guarded")) == 1


# -- over restarts -----------------------------------------------------------------------------


def test_what_is_remembered_outlives_the_server(host: Callable[..., Api]) -> None:
    api = host("--nodes", NODES)
    nodes = [{"id": "n", "typeId": "wire.remember", "config": {"text": "for good"}}]
    api.register(definition("remembers", nodes))
    assert api.run("remembers", scopeId="desk")["outputs"] == {"seen": ["for good"]}
    api.server.kill()  # type: ignore[attr-defined]
    api.server.start()  # type: ignore[attr-defined]
    assert [entry["content"] for entry in remembered(api, "desk")] == ["for good"]
    assert api.run("remembers", scopeId="desk")["outputs"] == {"seen": ["for good", "for good"]}
