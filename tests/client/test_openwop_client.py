"""The published client, unchanged, against a real host. What it receives is validated too."""

import io
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import openwop_client
import pytest
from openwop_client import (
    BulkCancelRunsRequest,
    CancelRunRequest,
    CreateRunRequest,
    ForkRunRequest,
    OpenwopClient,
    PauseRunRequest,
    ResumeRunRequest,
    WopError,
)

from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import TERMINAL, Api, in_time


@pytest.fixture
def client(api: Api, answers: AnswerChecks, monkeypatch: pytest.MonkeyPatch) -> OpenwopClient:
    """A client whose every answer is validated on its way in."""

    def urlopen(request: urllib.request.Request, timeout: float) -> Any:
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                status, headers, body = answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as refusal:
            with refusal:
                status, headers, body = refusal.code, refusal.headers, refusal.read()
        media = headers.get("content-type", "").partition(";")[0]
        path = urlsplit(request.full_url).path
        answers.answer(request.get_method(), path, status, media, body)
        if status >= 400:
            raise urllib.error.HTTPError(request.full_url, status, "", headers, io.BytesIO(body))
        return Answer(body, headers)

    monkeypatch.setattr("openwop_client.client.urlopen", urlopen)
    assert api.key is not None
    return OpenwopClient(api.url, api.key)


class Answer(io.BytesIO):
    def __init__(self, body: bytes, headers: Any) -> None:
        super().__init__(body)
        self.headers = headers


def ended(client: OpenwopClient, run_id: str) -> Any:
    """The snapshot at the end, found by polling as the client does it."""
    last = -1
    while True:
        page = client.runs_poll_events(run_id, last_sequence=last, timeout_seconds=5)
        last = page.events[-1].sequence if page.events else last
        if page.isComplete:
            return client.runs_get(run_id)


def speaking(tokens: int, delay_ms: int = 0) -> dict[str, Any]:
    config = {"tokens": [f"t{n} " for n in range(tokens)], "delayMsPerToken": delay_ms}
    return {"mockProvider": {"id": "stream-text", "config": config}}


def test_discovery(client: OpenwopClient) -> None:
    found = client.discovery_capabilities()
    assert found.protocolVersion.startswith("1.")
    assert found.limits.maxNodeExecutions
    assert found.implementation
    assert client.discovery_openapi()["openapi"] == "3.1.0"


def test_a_workflow_is_read(client: OpenwopClient) -> None:
    assert client.workflows_get("conformance-noop")["id"] == "conformance-noop"
    with pytest.raises(WopError) as refusal:
        client.workflows_get("none")
    assert refusal.value.status == 404
    assert refusal.value.envelope is not None
    assert refusal.value.envelope.error == "workflow_not_found"


def test_create_poll_read(client: OpenwopClient) -> None:
    made = client.runs_create(CreateRunRequest(workflowId="conformance-noop", tags=["sdk"]))
    assert made.statusUrl
    found = ended(client, made.runId)
    assert (found.status, found.workflowId) == ("completed", "conformance-noop")
    events = client.runs_poll_events(made.runId).events
    assert [event.sequence for event in events] == list(range(len(events)))


def test_a_failure_is_typed(client: OpenwopClient) -> None:
    made = client.runs_create(CreateRunRequest(workflowId="conformance-failure"))
    found = ended(client, made.runId)
    assert found.error is not None
    assert found.error.code == "conformance_test_failure"


@pytest.mark.parametrize("buffer_ms", [None, 0, 30])
@pytest.mark.parametrize(
    "mode", [None, "updates", "values", "messages", "debug", ("updates", "messages"), ("debug",)]
)
def test_streams_in_every_mode(client: OpenwopClient, mode: Any, buffer_ms: int | None) -> None:
    made = client.runs_create(
        CreateRunRequest(workflowId="conformance-stream-text", configurable=speaking(5, 4))
    )
    streamed = list(client.runs_events(made.runId, stream_mode=mode, buffer_ms=buffer_ms))
    again = list(client.runs_events(made.runId, stream_mode=mode))
    assert streamed == again
    types = [event.type for event in streamed]
    expected = {
        None: {"run.started", "node.completed", "run.completed"},
        "updates": {"run.started", "node.completed", "run.completed"},
        "values": {"state.snapshot"},
        "messages": {"ai.message.chunk"},
        ("updates", "messages"): {
            "run.started", "node.completed", "run.completed", "ai.message.chunk",
        },
    }  # fmt: skip
    if mode in expected:
        assert set(types) == expected[mode]
    else:
        assert types == [event.type for event in client.runs_poll_events(made.runId).events]


def test_a_stream_goes_on_from_an_id(client: OpenwopClient) -> None:
    made = client.runs_create(CreateRunRequest(workflowId="conformance-multi-node"))
    whole = list(client.runs_events(made.runId, stream_mode="debug"))
    for event in whole:
        rest = client.runs_events(
            made.runId, stream_mode="debug", last_event_id=str(event.sequence)
        )
        assert list(rest) == whole[event.sequence + 1 :]


def test_a_wrong_mode_is_an_http_error(client: OpenwopClient) -> None:
    made = client.runs_create(CreateRunRequest(workflowId="conformance-noop"))
    with pytest.raises(urllib.error.HTTPError) as refusal:
        list(client.runs_events(made.runId, stream_mode=("values", "debug")))
    with refusal.value as answer:
        assert answer.code == 400
        assert "supported" in json.loads(answer.read())["details"]


def test_cancel(client: OpenwopClient) -> None:
    made = client.runs_create(CreateRunRequest(workflowId="conformance-cancellable"))
    answer = client.runs_cancel(made.runId, CancelRunRequest(reason="sdk"))
    assert answer.status in ("cancelling", "cancelled")
    assert ended(client, made.runId).status == "cancelled"
    assert client.runs_cancel(made.runId).status == "cancelled"


def test_pause_and_resume(client: OpenwopClient) -> None:
    def attempt(ms: int) -> Any:
        asked = CreateRunRequest(workflowId="conformance-delay", inputs={"delayMs": ms})
        made = client.runs_create(asked)
        try:
            now = PauseRunRequest(reason="x", drainPolicy="immediate")
            return made, client.runs_pause(made.runId, now)
        except WopError:
            if client.runs_get(made.runId).status == "completed":
                return None
            raise

    made, paused = in_time(attempt, 800)
    assert (paused.status, paused.runId) == ("paused", made.runId)
    assert paused.pausedAt
    assert client.runs_get(made.runId).status == "paused"
    with pytest.raises(WopError) as refusal:
        client.runs_pause(made.runId)
    assert refusal.value.status == 409
    resumed = client.runs_resume(made.runId, ResumeRunRequest(reason="y"))
    assert resumed.status == "running"
    assert resumed.resumedAt
    assert ended(client, made.runId).status == "completed"


def test_bulk_cancel(client: OpenwopClient) -> None:
    ids = [
        client.runs_create(CreateRunRequest(workflowId="conformance-cancellable")).runId
        for _ in range(3)
    ]
    found = client.runs_bulk_cancel(BulkCancelRunsRequest(runIds=[*ids, "nobody"], reason="x"))
    assert [result.ok for result in found.results] == [True, True, True, False]
    assert found.results[-1].error
    with pytest.raises(WopError) as refusal:
        client.runs_bulk_cancel(BulkCancelRunsRequest(runIds=["x"] * 101))
    assert refusal.value.status == 400


def test_a_bundle_is_read_and_cut(client: OpenwopClient) -> None:
    made = client.runs_create(CreateRunRequest(workflowId="conformance-multi-node"))
    ended(client, made.runId)
    bundle = client.runs_debug_bundle(made.runId)
    assert bundle is not None
    assert bundle.redactionMode == "mask"
    cut = client.runs_debug_bundle(made.runId, max_events=2)
    assert cut is not None
    assert (cut.truncated, len(cut.events)) == (True, 2)
    assert client.runs_debug_bundle("nobody") is None


def test_idempotent_replays(client: OpenwopClient) -> None:
    asked = CreateRunRequest(workflowId="conformance-idempotent", inputs={"nonce": "n"})
    first = client.runs_create(asked, idempotency_key="sdk-1")
    assert client.runs_create(asked, idempotency_key="sdk-1") == first
    other = CreateRunRequest(workflowId="conformance-idempotent", inputs={"nonce": "m"})
    with pytest.raises(WopError) as refusal:
        client.runs_create(other, idempotency_key="sdk-1")
    assert refusal.value.envelope is not None
    assert refusal.value.envelope.error == "idempotency_key_mismatch"


def test_dedup(client: OpenwopClient) -> None:
    asked = CreateRunRequest(workflowId="conformance-cancellable", scopeId="sdk-scope")
    first = client.runs_create(asked, dedup=True)
    with pytest.raises(WopError) as refusal:
        client.runs_create(asked, dedup=True)
    assert refusal.value.envelope is not None
    assert refusal.value.envelope.error == "run_already_active"
    client.runs_cancel(first.runId)


def test_an_artifact_is_read(client: OpenwopClient, api: Api) -> None:
    from tests.support.api.caller import definition

    config = {"artifactType": "report", "data": 1}
    emit = {"id": "emit", "typeId": "conformance.artifact.emit", "config": config}
    api.register(definition("sdk-artifact", [emit]))
    run_id = api.run("sdk-artifact")["runId"]
    made = next(e for e in api.events(run_id) if e["type"] == "artifact.created")
    found = client.runs_get_artifact(run_id, made["payload"]["artifactId"])
    assert found is not None
    assert found["data"] == 1
    assert client.runs_get_artifact(run_id, "none") is None


#: what the client treats as "this host does not have it"
ABSENT: list[Callable[[OpenwopClient], Any]] = [
    lambda client: client.agents_get("x"),
    lambda client: client.list_annotations("x"),
    lambda client: client.content_list_pages(),
    lambda client: client.content_get_settings(),
    lambda client: client.runs_eval_summary("x") if hasattr(client, "runs_eval_summary") else None,
]


@pytest.mark.parametrize("ask", ABSENT, ids=range(len(ABSENT)))
def test_what_is_not_offered_reads_as_none(client: OpenwopClient, ask: Any) -> None:
    assert ask(client) is None


def test_the_client_reads_the_inventory_of_agents(client: OpenwopClient, api: Api) -> None:
    assert api.post("/v1/host/moot/agents", {"name": "listed"}).status_code == 201
    found = client.agents_list()
    assert "local.agents.listed" in str(found)
    assert "local.agents.listed" in str(client.agents_get("local.agents.listed"))


@pytest.mark.parametrize(("mode", "from_seq"), [("replay", 0), ("branch", 1)])
def test_a_fork_comes_to_the_same(client: OpenwopClient, mode: Any, from_seq: int) -> None:
    made = client.runs_create(CreateRunRequest(workflowId="conformance-noop"))
    fork = client.runs_fork(made.runId, ForkRunRequest(mode=mode, fromSeq=from_seq))
    assert client.runs_get(fork.runId).status == client.runs_get(made.runId).status


def test_a_wrong_key_is_typed(api: Api) -> None:
    with pytest.raises(WopError) as refusal:
        OpenwopClient(api.url, "hk_wrong").runs_get("x")
    assert (refusal.value.status, str(refusal.value)) == (401, "This key is not known here.")
    assert refusal.value.__cause__ is not None
    refusal.value.__cause__.close()  # type: ignore[attr-defined]


def test_every_status_of_the_host_is_one_the_client_knows() -> None:
    from typing import get_args

    from moot.core.state.status import Status

    known = set(get_args(openwop_client.RunStatus))
    assert {status.value for status in Status} <= known
    assert known >= TERMINAL
