"""Structured answers of the mock model: its fixtures, its key, and refusals that a replay meets."""

import hashlib
from typing import Any

import httpx2 as httpx
import pytest

from moot.core.agents.model_key import model_key, parse_semantic_request
from tests.support.api.caller import Api, definition
from tests.support.api.questions import of, refused

#: every fixture that this file is about
OURS = (
    "conformance-envelope-refusal", "conformance-envelope-retry-attempted",
    "conformance-envelope-retry-exhausted", "conformance-envelope-truncated",
    "conformance-envelope-truncation-cap-exhaustion", "conformance-phase4-nondet-tool",
    "conformance-phase4-replay-divergence",
)  # fmt: skip

NODE = "structured-call"
GOOD = {"content": '{"valid":true}', "stopReason": "end_turn"}
BAD = {"content": "not JSON at all", "stopReason": "end_turn"}
WRONG = {"content": '{"valid":"perhaps"}', "stopReason": "end_turn"}
CUT = {"content": '{"val', "stopReason": "max_tokens"}
REFUSAL = {"content": "no", "stopReason": "safety", "refusalText": "I must not do that."}


def told(api: Api, *answers: dict[str, Any], node: str = NODE) -> None:
    body = {"nodeId": node, "program": list(answers)}
    answer = api.post("/v1/host/sample/test/mock-ai/program", body)
    assert answer.status_code == 200, answer.text


def effects(api: Api, run_id: str) -> list[dict[str, Any]]:
    return of(api, run_id, "moot.effect.finished")


def fork(api: Api, run_id: str, **more: Any) -> httpx.Response:
    return api.post(f"/v1/runs/{run_id}:fork", {"mode": "replay", **more})


def test_all_of_them_are_listed(api: Api) -> None:
    listed = set(api.get("/.well-known/openwop").json()["fixtures"])
    assert set(OURS) <= listed
    assert not {name for name in listed if name.startswith("conformance-envelope")} - set(OURS)


def test_an_answer_that_fits_is_taken_and_recorded_under_its_key(api: Api) -> None:
    told(api, GOOD)
    found = api.run("conformance-phase4-replay-divergence")
    assert found["outputs"] == {"output": {"valid": True}}
    schema = {"type": "object", "required": ["valid"], "properties": {"valid": {"type": "boolean"}}}
    asked = {
        "provider": "mock", "model": "mock-mini",
        "responseFormat": {"type": "json", "schema": schema},
        "messages": [{"role": "user", "content": "Answer with the fields of the schema."}],
    }  # fmt: skip
    [effect] = effects(api, found["runId"])
    assert effect["providerKey"] == model_key(parse_semantic_request(asked))
    assert effect["result"] == GOOD
    answer = api.post("/v1/host/sample/test/llm-cache-key", asked)
    assert answer.json()["cacheKey"] == effect["providerKey"]


def test_a_model_that_was_told_nothing_answers_in_the_right_shape(api: Api) -> None:
    api.post("/v1/host/sample/test/reset", {})
    found = api.run("conformance-phase4-nondet-tool")
    assert found["outputs"] == {"output": {"valid": True}}


def test_a_refusal_is_final_and_stays_out_of_the_error(api: Api) -> None:
    told(api, REFUSAL, GOOD)
    found = api.run("conformance-envelope-refusal")
    assert (found["status"], found["error"]["code"]) == ("failed", "envelope_refused_by_provider")
    assert "must not" not in str(found["error"])
    [said] = of(api, found["runId"], "envelope.refusal")
    assert said == {
        "nodeId": NODE, "provider": "mock", "model": "mock-mini",
        "refusalText": "I must not do that.",
    }  # fmt: skip
    assert len(effects(api, found["runId"])) == 1
    assert "envelope.retry.attempted" not in api.types(found["runId"])


def test_a_refusal_does_not_repeat_the_question(api: Api) -> None:
    told(api, {**REFUSAL, "refusalText": "To 'Answer with the fields of the schema.' I say no."})
    found = api.run("conformance-envelope-refusal")
    assert (
        of(api, found["runId"], "envelope.refusal")[0]["refusalText"] == "To '[REDACTED]' I say no."
    )
    assert "Answer with" not in str(effects(api, found["runId"]))


@pytest.mark.parametrize(("first", "reason"), [(BAD, "parse-error"), (WRONG, "schema-violation")])
def test_an_answer_that_does_not_fit_is_asked_for_again(
    api: Api, first: dict[str, Any], reason: str
) -> None:
    told(api, first, GOOD)
    found = api.run("conformance-envelope-retry-attempted")
    assert found["status"] == "completed"
    [again] = of(api, found["runId"], "envelope.retry.attempted")
    assert (again["attempt"], again["reason"]) == (2, reason)
    assert "not JSON at all" not in str(again) and "perhaps" not in str(again)
    one, other = effects(api, found["runId"])
    assert one["providerKey"] != other["providerKey"], "it was corrected, so it is another request"


def test_after_some_calls_it_is_enough(api: Api) -> None:
    told(api, BAD)
    found = api.run("conformance-envelope-retry-exhausted")
    assert (found["status"], found["error"]["code"]) == ("failed", "envelope_payload_invalid")
    assert len(effects(api, found["runId"])) == 3
    [given_up] = of(api, found["runId"], "envelope.retry.exhausted")
    assert (given_up["totalAttempts"], given_up["finalReason"]) == (3, "parse-error")
    assert [said["attempt"] for said in of(api, found["runId"], "envelope.retry.attempted")] == [
        2,
        3,
    ]


def test_a_cut_answer_gets_more_room(api: Api) -> None:
    told(api, CUT, GOOD)
    found = api.run("conformance-envelope-truncated")
    assert found["status"] == "completed"
    [cut] = of(api, found["runId"], "envelope.truncated")
    assert (cut["stopReason"], cut["nodeId"]) == ("max_tokens", NODE)
    flow = api.get("/v1/workflows/conformance-envelope-truncated").json()["nodes"][0]
    asked = {
        "provider": "mock", "model": "mock-mini", "maxOutputTokens": 100,
        "messages": flow["inputs"]["messages"]["value"],
        "responseFormat": {"type": "json", "schema": flow["config"]["outputSchema"]},
    }  # fmt: skip
    keys = [effect["providerKey"] for effect in effects(api, found["runId"])]
    assert keys[1] == model_key(parse_semantic_request(asked)), (
        "twice the room, and no word of correction"
    )


def test_room_is_not_given_for_ever(api: Api) -> None:
    told(api, CUT)
    found = api.run("conformance-envelope-truncation-cap-exhaustion")
    assert found["error"]["code"] == "envelope_truncation_unrecoverable"
    types = api.types(found["runId"])
    assert types.count("envelope.truncated") == types.count("moot.effect.finished") == 3
    [given_up] = of(api, found["runId"], "envelope.retry.exhausted")
    assert given_up["finalReason"] == "truncation"
    [cap] = of(api, found["runId"], "cap.breached")
    assert (cap["kind"], cap["limit"]) == ("schema", 3)
    assert types[-5:-1] == [
        "envelope.truncated",
        "envelope.retry.exhausted",
        "cap.breached",
        "node.failed",
    ]


@pytest.mark.parametrize(
    "wrong",
    [{"provider": "other"}, {"model": ""}, {"outputSchema": {"type": 5}}, {"outputSchema": None},
     {"more": 1}, {"maxTokens": 0}],
)  # fmt: skip
def test_a_call_that_cannot_be_made_is_refused_when_it_is_registered(api: Api, wrong: Any) -> None:
    config = {"provider": "mock", "model": "m", "outputSchema": {}, **wrong}
    node = {"id": "a", "typeId": "core.ai.structuredOutput", "config": config}
    answer = api.post("/v1/host/moot/workflows", definition("bad-call", [node]))
    refused(answer, 400, "validation_error")


def test_a_call_without_a_question_fails(api: Api) -> None:
    config = {"provider": "mock", "model": "m", "outputSchema": {}}
    node = {"id": "a", "typeId": "core.ai.structuredOutput", "config": config}
    api.register(definition("no-question", [node]))
    assert api.run("no-question")["error"]["code"] == "validation_error"
    api.register(definition("a-prompt", [{**node, "config": {**config, "prompt": "Say it."}}]))
    assert api.run("a-prompt")["status"] == "completed"


# -- replays -------------------------------------------------------------------------------------


def test_a_replay_is_served_from_the_record(api: Api) -> None:
    told(api, GOOD)
    source = api.run("conformance-phase4-nondet-tool")
    answer = fork(api, source["runId"])
    copy = api.until(answer.json()["runId"])
    assert (copy["status"], copy["outputs"]) == ("completed", source["outputs"])
    assert api.types(copy["runId"]) == api.types(source["runId"])
    assert effects(api, copy["runId"]) == effects(api, source["runId"])


@pytest.mark.parametrize(
    ("first", "second", "kinds"),
    [(GOOD, REFUSAL, ("valid", "refusal")), (REFUSAL, GOOD, ("refusal", "valid"))],
)
def test_a_refusal_on_one_side_alone_ends_the_replay(
    api: Api, first: Any, second: Any, kinds: tuple[str, str]
) -> None:
    told(api, first, second)
    source = api.run("conformance-phase4-replay-divergence")
    [effect] = [e for e in api.events(source["runId"]) if e["type"] == "moot.effect.finished"]
    answer = fork(api, source["runId"], fromSeq=0)
    details = refused(answer, 422, "replay_diverged_at_refusal")
    assert details == {
        "runId": details["runId"], "atSequence": effect["sequence"], "nodeId": NODE,
        "originalEnvelopeKind": kinds[0], "replayEnvelopeKind": kinds[1],
    }  # fmt: skip
    found = api.read(details["runId"])
    assert (found["status"], found["error"]["code"]) == ("failed", "replay_diverged_at_refusal")
    [said] = of(api, details["runId"], "replay.divergedAtRefusal")
    expected = {
        "sourceRunId": source["runId"], "atSequence": effect["sequence"], "nodeId": NODE,
        "originalEventId": effect["eventId"],
        "originalEnvelopeKind": kinds[0], "replayEnvelopeKind": kinds[1],
    }  # fmt: skip
    if kinds[1] == "refusal":
        expected["refusalReason"] = "I must not do that."
    assert said == expected
    types = api.types(details["runId"])
    assert "replay.diverged" not in types and "node.completed" not in types
    again = fork(api, source["runId"])
    assert again.status_code == 201, "nothing was left to say, so the record serves"


def test_the_same_fork_sent_again_is_refused_in_the_same_way(api: Api) -> None:
    told(api, GOOD, REFUSAL)
    source = api.run("conformance-phase4-replay-divergence")["runId"]
    headers = {"Idempotency-Key": f"refusal-{source}"}
    first, again = (
        api.post(f"/v1/runs/{source}:fork", {"mode": "replay"}, headers=headers) for _ in range(2)
    )
    assert first.status_code == again.status_code == 422
    assert first.json() == again.json()


def test_what_the_source_was_never_told_is_missing_in_the_replay(api: Api) -> None:
    """The source was cancelled before its model was asked."""
    config = {"provider": "mock", "model": "m", "outputSchema": {}, "prompt": "?"}
    nodes = [{"id": "wait", "typeId": "core.delay", "config": {"ms": 60_000}},
             {"id": NODE, "typeId": "core.ai.structuredOutput", "config": config}]  # fmt: skip
    api.register(definition("never-asked", nodes))
    source = api.create("never-asked")
    api.post(f"/v1/runs/{source}/cancel")
    api.until(source, "cancelled")
    told(api, REFUSAL)
    found = api.until(fork(api, source).json()["runId"])
    assert found["nodeStates"][NODE]["error"]["code"] == "replay_source_missing"
    assert effects(api, found["runId"]) == []


def test_history_is_not_asked_about(api: Api) -> None:
    told(api, GOOD, REFUSAL)
    source = api.run("conformance-phase4-replay-divergence")["runId"]
    [place] = [e["sequence"] for e in api.events(source) if e["type"] == "moot.effect.finished"]
    assert fork(api, source, fromSeq=place + 1).status_code == 201
    refused(fork(api, source, fromSeq=place), 422, "replay_diverged_at_refusal")


def test_answers_of_one_kind_are_no_difference(api: Api) -> None:
    told(api, GOOD, {**GOOD, "content": '{"valid":false}'})
    source = api.run("conformance-phase4-replay-divergence")
    copy = api.until(fork(api, source["runId"]).json()["runId"])
    assert copy["outputs"] == source["outputs"], "the record is what counts"


def test_another_tenant_s_model_was_told_nothing(api: Api, foreign: Api) -> None:
    told(api, REFUSAL)
    config = {"provider": "mock", "model": "m", "outputSchema": {"const": 7}, "prompt": "?"}
    node = {"id": NODE, "typeId": "core.ai.structuredOutput", "config": config}
    foreign.register(definition("theirs", [node]))
    assert foreign.run("theirs")["outputs"] == {"output": 7}


def test_without_the_trial_there_is_no_such_model(host: Any) -> None:
    plain = host()
    node = {"id": "a", "typeId": "core.ai.structuredOutput", "config": {}}
    answer = plain.post("/v1/host/moot/workflows", definition("plain", [node]))
    refused(answer, 400, "unsupported_node_type")
    assert plain.post("/v1/host/sample/test/mock-ai/program", {}).status_code == 404


# -- the other seams -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [{}, {"nodeId": "a"}, {"nodeId": "a", "program": []}, {"nodeId": "", "program": [GOOD]},
     {"nodeId": "a", "program": [{"stopReason": "end_turn"}]},
     {"nodeId": "a", "program": [{**GOOD, "mode": "x"}]}],
)  # fmt: skip
def test_a_program_that_is_none_is_refused(api: Api, wrong: Any) -> None:
    refused(api.post("/v1/host/sample/test/mock-ai/program", wrong), 400, "validation_error")


def test_the_key_follows_the_recipe(api: Api) -> None:
    path = "/v1/host/sample/test/llm-cache-key"
    asked = {
        "provider": "openai",
        "model": "gpt-4",
        "messages": [{"role": "user", "content": "hi"}],
    }
    said = (
        b'{"model":"gpt-4","provider":"openai","recipe":"openwop-semantic-request-v2",'
        b'"request":{"messages":[{"content":"hi","role":"user"}]}}'
    )
    assert api.post(path, asked).json()["cacheKey"] == hashlib.sha256(said).hexdigest()
    noise = {"stream": True, "user": "u", "x-request-id": "r", "timeoutMs": 5}
    assert api.post(path, {**asked, **noise}).json() == api.post(path, asked).json()
    assert api.post(path, {**asked, "seed": 1}).json() != api.post(path, asked).json()
    refused(api.post(path, {"provider": "x"}), 400, "validation_error")


def test_a_wave_comes_together(api: Api) -> None:
    workers = ["conformance.child.a", "conformance.child.b", "conformance.child.c"]
    policy = {"mode": "wait-all", "onChildFailure": "collect"}
    body = {"nextWorkerIds": workers, "config": {"fanOutPolicy": "parallel", "joinPolicy": policy}}
    found = api.post("/v1/host/sample/dispatch/fanout", body).json()
    assert (found["joinOutcome"], len(found["children"])) == ("satisfied", 3)
    assert found["mergeOrder"] == [child["childRunId"] for child in found["children"]]
    [join] = of(api, found["runId"], "core.dispatch.join")
    assert join["mergeOrder"] == found["mergeOrder"]
    failing = [*workers[:2], "conformance-dispatch-deterministic-fail-child"]
    body["config"]["joinPolicy"]["onChildFailure"] = "fail-fast"
    again = api.post("/v1/host/sample/dispatch/fanout", {**body, "nextWorkerIds": failing}).json()
    assert again["joinOutcome"] == "failed"


def test_a_wave_that_cannot_be_is_refused(api: Api) -> None:
    path = "/v1/host/sample/dispatch/fanout"
    body = {"nextWorkerIds": ["conformance-noop"], "config": {"fanOutPolicy": "broadcast"}}
    refused(api.post(path, body), 400, "validation_error")
    refused(api.post(path, {"nextWorkerIds": []}), 400, "validation_error")


def test_inputs_of_single_workers_are_refused_rather_than_dropped(api: Api) -> None:
    path = "/v1/host/sample/dispatch/per-item"
    body = {"nextWorkerIds": ["conformance.child", "conformance.child"]}
    found = api.post(path, body).json()
    assert found["children"] == [{"inputs": {}}, {"inputs": {}}]
    items = [{"contactId": "c-1"}, {"contactId": "c-2"}]
    refused(api.post(path, {**body, "nextWorkerInputs": items}), 400, "validation_error")
