"""A side thread begins with its link, or not at all."""

from collections.abc import Iterator
from typing import Any

import pytest

from moot import ApiError
from moot.api.threads import controls
from moot.api.threads.lookup import find_thread
from moot.core.runs.answers import GateAnswer
from moot.testing import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with Bench() as made:
        yield made


def listed(bench: Bench) -> list[str]:
    return [each.thread_id for each in bench.client.threads.list().threads]


def test_a_thread_that_closes_in_that_moment_leaves_no_side_thread(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = bench.client.threads.begin("Main")
    control = controls.control_command

    async def just_closed(request: Any, talk: Any, *given: Any, **more: Any) -> Any:
        run, _ = await find_thread(request)
        command = await control(request, talk, *given, **more)
        value = {"operation": "close", "decision": "Enough."}
        end = GateAnswer(node_id=talk.node_id, value=value, who=command.who, at=command.at)
        await request.services.host.handle(run.tenant, run.run_id, end)
        return command

    monkeypatch.setattr(controls, "control_command", just_closed)
    with pytest.raises(ApiError) as refused:
        main.side("Details")
    assert refused.value.code == "conversation_closed"
    assert listed(bench) == [main.id]
