"""Work with tools through real SDKs: the last round, and what is counted when nobody counts."""

from typing import Any

import pytest

from moot.agents.definitions.manifest import Agent
from moot.agents.tools.toolbox import Toolbox, ToolInvocation, UsableTool
from moot.config.models import Price
from tests.agents.invocation.test_invoke import FORM, TENANT, Office
from tests.support.agents.models import KEY, REAL
from tests.support.model_provider import Reply, StandIn

pytestmark = pytest.mark.parametrize("kind", REAL)


class Shelf:
    async def for_agent(self, agent: Agent) -> Toolbox:
        return Toolbox({"look": UsableTool(name="look", call=self.look)})

    async def look(self, arguments: dict[str, Any], errand: ToolInvocation) -> Any:
        return {"seen": "nothing"}


LOOK = Reply(words=[], calls={"look": "{}"}, finish="tool_calls")


async def test_after_tools_the_last_round_is_one_that_the_provider_takes(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    office = Office(book_of(kind, attempts=1), Shelf(), tool_rounds=1)
    provider.will(LOOK, Reply(words=['{"sum": "x"}']), Reply(words=['{"sum": 4}']))
    run, _ = await office.work(prompt="Add up.", output=FORM)
    assert (run.nodes["a"].outputs or {})["value"] == {"sum": 4}
    first, last, again = (asked.body for asked in provider.asked)
    assert "tool_choice" not in first
    for body in (last, again):
        assert body["tool_choice"] in ("none", {"type": "none"}) and body["tools"]
    await office.host.aclose()


async def test_tokens_that_nobody_counted_are_reckoned_and_kept_for_the_day(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    prices = {"*": Price(input=1, output=1_000_000)}
    office = Office(book_of(kind, prices=prices, attempts=1))
    provider.will(Reply(words=["x" * 400], usage=None, tokens=(-1, -1)))
    run, _ = await office.work(prompt="Add up.")
    usage = (run.nodes["a"].outputs or {})["usage"]
    assert (usage["outputTokens"], usage["estimated"]) == (100, True) and usage["cost"] > 100
    day = office.host.clock.millis() // 86_400_000
    tokens, money = await office.store.spent(TENANT, day)
    assert tokens > 100 and money > 100_000_000
    await office.host.aclose()


async def test_a_malformed_answer_fails_the_node_by_its_code_and_counts_as_a_call(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    office = Office(book_of(kind, attempts=1))
    provider.will(Reply(words=["\ud83d"]))
    run, _ = await office.work(prompt="Add up.")
    assert run.nodes["a"].error.code == "model_answer_invalid"
    await office.host.aclose()


async def test_a_key_in_an_answer_reaches_neither_variables_nor_the_log(
    kind: str, book_of: Any, provider: StandIn
) -> None:
    office = Office(book_of(kind, attempts=1))
    provider.will(Reply(words=["It is ", KEY[:4], KEY[4:]], thoughts=[KEY]))
    run, events = await office.work(prompt="Add up.")
    assert (run.nodes["a"].outputs or {})["text"] == "It is [REDACTED]"
    assert KEY not in repr(events)
    await office.host.aclose()
