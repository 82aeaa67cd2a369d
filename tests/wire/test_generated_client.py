"""A client that a generator makes from the OpenAPI document drives a run and a thread."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from .api import Api

PACKAGE = "moot_generated"


@pytest.fixture(scope="module")
def generated(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The package that openapi-python-client writes."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(api.get("/v1/openapi.json").content)
    (folder / "config.yml").write_text("post_hooks: []\n")
    command = [sys.executable, "-m", "openapi_python_client", "generate"]
    options = ["--path", "openapi.json", "--config", "config.yml", "--meta", "none",
               "--output-path", PACKAGE, "--fail-on-warning"]  # fmt: skip
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield importlib.import_module(PACKAGE)
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def client(generated: ModuleType, api: Api) -> Iterator[Any]:
    with generated.AuthenticatedClient(base_url=api.url, token=api.key) as client:
        yield client


def operation(name: str) -> Any:
    """The generated function, such as ``runs.create_run``."""
    return importlib.import_module(f"{PACKAGE}.api.{name}").sync


def models() -> Any:
    return importlib.import_module(f"{PACKAGE}.models")


def test_it_drives_a_run(client: Any) -> None:
    body = models().CreateRun(workflow_id="conformance-noop", tags=["generated"])
    started = operation("runs.create_run")(client=client, body=body)
    page = operation("runs.poll_run_events")(started.run_id, client=client, timeout=10)
    assert page.events
    while not page.is_complete:
        last = page.last_event_seq
        page = operation("runs.poll_run_events")(
            started.run_id, client=client, last_sequence=last, timeout=10
        )
    run = operation("runs.read_run")(started.run_id, client=client)
    assert (run.status, run.tags) == ("completed", ["generated"])
    assert run.metrics.event_count == page.last_event_seq + 1
    listed = operation("runs.list_runs")(client=client, workflow="conformance-noop")
    assert started.run_id in [row.run_id for row in listed.runs]


def test_it_answers_a_question(client: Any, api: Api) -> None:
    run_id = api.create("conformance-approval")
    api.until(run_id, "waiting-approval")
    inbox = operation("inbox.read_inbox")(client=client)
    [item] = [item for item in inbox.items if item.run_id == run_id]
    answer = models().AnswerBody(resume_value={"action": "accept"})
    result = operation("inbox.answer_node")(run_id, item.node_id, client=client, body=answer)
    assert (result.run_id, result.node_id) == (run_id, item.node_id)
    assert api.until(run_id)["status"] == "completed"


def test_it_drives_a_thread(client: Any) -> None:
    body = models().BeginThread(title="Tea", opening="What about tea?")
    thread = operation("threads.begin_thread")(client=client, body=body)
    said = models().PostBridgeEvent(content="Green, please.")
    operation("agent_bridge.post_bridge_event")(thread.thread_id, client=client, body=said)
    events = operation("agent_bridge.list_bridge_events")(thread.thread_id, client=client)
    assert [event.content for event in events.events][-1] == "Green, please."
    closed = operation("threads.close_thread")(
        thread.thread_id, client=client, body=models().CloseThread(decision="Green tea")
    )
    assert closed.thread_id == thread.thread_id


def test_a_refusal_is_typed(client: Any) -> None:
    refusal = operation("runs.read_run")("run_none", client=client)
    assert refusal.error == "run_not_found"
    assert refusal.message
