"""What the API refuses of a policy is refused of a gate when its workflow is registered."""

from collections.abc import Iterator
from typing import Any

import pytest

from moot import ApiError
from moot.testing import Bench

QUORUM = {"requiredApprovals": 3, "approversList": ["user:ada", "user:bo"]}


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench().agent("ada").agent("bo") as made:
        yield made


def refusal(call: Any, *given: Any, **more: Any) -> ApiError:
    with pytest.raises(ApiError) as refused:
        call(*given, **more)
    assert (refused.value.status, refused.value.code) == (400, "validation_error")
    return refused.value


def register(bench: Bench, type_id: str, config: dict[str, Any]) -> None:
    gate = {"id": "gate", "typeId": type_id, "name": "gate", "config": config, "inputs": {},
            "position": {"x": 0, "y": 0}}  # fmt: skip
    body = {"id": "gated", "name": "gated", "version": "1.0.0", "nodes": [gate], "edges": []}
    bench.client.workflows.register({**body, "triggers": [], "variables": [], "metadata": {},
                                     "settings": {}})  # fmt: skip


@pytest.mark.parametrize("mode", ["declared", "addressed", "small", "large"])
@pytest.mark.parametrize("asked", [{"rounds": 3}, {"vote": True}, {"close": "moderator"}])
def test_a_policy_that_means_nothing_is_refused_with_one_sentence(
    bench: Bench, mode: str, asked: dict[str, Any]
) -> None:
    policy = {"mode": mode, **asked}
    said = refusal(bench.client.convene, "Why?", "ada", "bo", policy=policy).message
    assert f"nothing in mode '{mode}'" in said
    assert refusal(bench.client.threads.begin, "Why?", policy=policy).message == said
    found = refusal(register, bench, "core.conversationGate", {"participation": policy})
    assert found.details["fields"] == [said] and found.message.endswith(f": {said}")
    register(bench, "core.conversationGate", {"participation": {"mode": mode}})


def test_a_quorum_that_cannot_come_together_is_refused_of_every_gate(bench: Bench) -> None:
    said = refusal(register, bench, "core.approvalGate", QUORUM).details["fields"]
    data = {"kind": "approval", "data": QUORUM}
    assert refusal(register, bench, "core.interrupt", data).details["fields"] == said
    assert said == ["requiredApprovals is 3, approversList names fewer"]
