"""The node types of the test suite, and the mock providers."""

from typing import Any

import pytest

from moot.core.workflows.node_types import Artifact, Completed, Failed
from tests.support.engine.node_calls import TYPES, Recorded, completed, performed, problem


def test_what_a_node_requires_is_data() -> None:
    assert TYPES["conformance.requiresMissing"].requires == ("conformance.never-provided",)
    model = TYPES["conformance.modelCapability.insufficient"].requires_model
    assert model == ("nonexistent-capability-9b3f",)


def test_an_artifact_is_emitted() -> None:
    found = completed("conformance.artifact.emit", {"artifactType": "prd", "data": {"a": 1}})
    assert found.artifacts == (Artifact(artifact_type="prd", data={"a": 1}),)
    assert "artifactType" in str(problem("conformance.artifact.emit", {}))


async def test_the_side_effect_is_performed_once_however_often_the_node_runs() -> None:
    ctx = Recorded()
    for _ in range(2):
        found = await performed(TYPES["core.conformance.side-effect"], ctx)
        assert found == Completed({"effectCount": 1})
    assert ctx.performed == 1
    assert list(ctx.effects) == ["conformance:side-effect"]


async def prompted(mock: Any, ctx: Recorded | None = None) -> tuple[Any, Recorded]:
    ctx = ctx or Recorded(configurable={"mockProvider": mock} if mock else {})
    return await performed(TYPES["core.ai.callPrompt"], ctx), ctx


async def test_text_streams_one_chunk_for_each_token() -> None:
    found, ctx = await prompted({"id": "stream-text"})
    ending = {
        "model": "mock-stream-text-v1",
        "finishReason": "stop",
        "usage": {"promptTokens": 1, "completionTokens": 2},
    }
    assert ctx.chunks == [
        ("mock", False, {"model": "mock-stream-text-v1"}),
        (" response", True, ending),
    ]
    assert found == Completed({"text": "mock response", **ending})


async def test_the_stream_says_what_it_is_told() -> None:
    usage = {"promptTokens": 5, "completionTokens": 1, "totalTokens": 6}
    config = {
        "tokens": ["a", "b", "c"],
        "delayMsPerToken": 1,
        "finishReason": "length",
        "usage": usage,
        "model": "m",
    }
    found, ctx = await prompted({"id": "stream-text", "config": config})
    assert [chunk for chunk, _, _ in ctx.chunks] == ["a", "b", "c"]
    assert [last for _, last, _ in ctx.chunks] == [False, False, True]
    assert all(meta["model"] == "m" for _, _, meta in ctx.chunks)
    assert ctx.chunks[-1][2] == {"model": "m", "finishReason": "length", "usage": usage}
    assert found.outputs["text"] == "abc"


async def test_an_empty_stream_still_ends() -> None:
    _, ctx = await prompted({"id": "stream-text", "config": {"tokens": []}})
    assert [(chunk, last) for chunk, last, _ in ctx.chunks] == [("", True)]


async def test_tool_calls_carry_their_arguments_as_json_text() -> None:
    calls = [{"id": "1", "name": "look", "arguments": {"q": 1}}]
    found, ctx = await prompted({"id": "tool-calls", "config": {"toolCalls": calls}})
    [(chunk, last, meta)] = ctx.chunks
    assert (chunk, last, meta["finishReason"]) == ("", True, "tool_calls")
    assert meta["toolCalls"] == [{"id": "1", "name": "look", "arguments": '{"q":1}'}]
    assert found.outputs["toolCalls"] == meta["toolCalls"]


@pytest.mark.parametrize("retryable", [True, False])
async def test_a_provider_that_is_told_to_fail_fails(retryable: bool) -> None:
    config = {"code": "overloaded", "message": "Later.", "retryable": retryable, "failAfterMs": 1}
    found, ctx = await prompted({"id": "error", "config": config})
    assert isinstance(found, Failed)
    assert (found.error.code, found.error.message) == ("overloaded", "Later.")
    assert found.error.retryable is retryable
    assert ctx.chunks == []


async def test_usage_alone_is_one_last_empty_chunk() -> None:
    usage = {"promptTokens": 7, "completionTokens": 0}
    found, ctx = await prompted({"id": "usage-only", "config": {"usage": usage}})
    assert ctx.chunks[0][:2] == ("", True)
    assert found.outputs["usage"] == usage


async def test_without_a_mock_there_is_no_model() -> None:
    found, _ = await prompted(None)
    assert (found.error.code, found.error.retryable) == ("model_not_configured", False)


@pytest.mark.parametrize(
    ("mock", "code"),
    [
        ({"id": "gpt"}, "unsupported_mock_provider"),
        ({"id": "stream-text", "config": {"tokens": "abc"}}, "validation_error"),
        ({"id": "stream-text", "config": {"delayMsPerToken": 5001}}, "validation_error"),
        ({"id": "stream-text", "config": {"finishReason": "done"}}, "validation_error"),
        ({"id": "usage-only", "config": {"tokens": ["a"]}}, "validation_error"),
    ],
)
async def test_a_mock_that_cannot_be_understood_fails_for_good(mock: Any, code: str) -> None:
    found, ctx = await prompted(mock)
    assert (found.error.code, found.error.retryable) == (code, False)
    assert ctx.chunks == []


def test_a_prompt_that_wants_mcp_is_refused_at_registration() -> None:
    assert problem("core.ai.callPrompt", {"mcp": {"tool": "echo"}}) == (
        "config.mcp is not available on this host"
    )
    assert problem("core.ai.callPrompt", {"promptId": "p", "expectsStreaming": True}) is None
