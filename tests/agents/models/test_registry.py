"""The book of models: what a reference means, what a call costs, what an entry adds to it."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.agents.models.protocol import TokenUsage, ask_model
from moot.agents.models.registry import ModelRegistry, Prices
from moot.clock import SystemClock
from moot.config.models import ModelEntry, Price
from moot.core.errors.models import ModelNotConfigured
from tests.support.agents.models import HELLO
from tests.support.model_provider import StandIn


def book(**entries: ModelEntry) -> ModelRegistry:
    return ModelRegistry(
        entries, {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}.get, SystemClock()
    )


@pytest.mark.parametrize(
    ("reference", "name", "model", "provider"),
    [
        ("demo", "demo", "demo", "demo"),
        ("ollama/llama3.1", "ollama", "llama3.1", "openai"),
        ("openai/gpt-x", "openai", "gpt-x", "openai"),
        ("anthropic/claude-x", "anthropic", "claude-x", "anthropic"),
        ("local", "local", "small", "openai"),
        ("local/org/large", "local", "org/large", "openai"),
    ],
)
def test_a_reference_is_a_name_and_perhaps_a_model(
    reference: str, name: str, model: str, provider: str
) -> None:
    found = book(local=ModelEntry(url="http://x/v1", model="small")).look_up(reference)
    assert (found.name, found.model, found.entry.provider) == (name, model, provider)


def test_a_name_nobody_knows_gets_the_nearest_and_the_way_to_add_it() -> None:
    with pytest.raises(ModelNotConfigured) as unknown:
        book(local=ModelEntry(model="m")).choose("lokal/x")
    assert "Did you mean 'local'?" in unknown.value.message
    assert "moot models add lokal" in unknown.value.message


def test_a_name_alone_needs_a_model_of_its_own() -> None:
    with pytest.raises(ModelNotConfigured, match="openai/MODEL"):
        book().choose("openai")


def test_what_is_added_later_is_found_when_it_is_named_and_the_rest_stays_as_it_was() -> None:
    now: dict[str, ModelEntry] = {"old": ModelEntry(model="other")}
    prices = {"*": Price(input=9, output=9), "small": Price(input=1, output=2)}
    known = {"old": ModelEntry(model="m")}
    found = ModelRegistry(
        known, lambda name: None, SystemClock(), prices={"*": Price(input=3, output=3)},
        later=lambda: (now, prices),
    )  # fmt: skip
    assert found.problem("new") is not None and not found.problem("old")
    now["new"] = ModelEntry(provider="demo", model="small")
    assert found.look_up("new").model == "small" and found.look_up("old").model == "m"
    used = TokenUsage(input_tokens=1_000_000)
    costs = [found.choose(name).cost(used) for name in ("new", "demo")]
    assert [cost and cost.amount for cost in costs] == [1, 3]


def test_a_file_that_cannot_be_read_later_is_the_reason() -> None:
    def broken() -> Any:
        raise ValueError("moot.toml:3: this is not TOML")

    found = ModelRegistry({}, lambda name: None, SystemClock(), later=broken)
    assert found.problem("new") == "There is no model 'new': moot.toml:3: this is not TOML"
    assert found.problem("demo") is None


def test_an_entry_may_take_the_place_of_a_built_in_name() -> None:
    mine = ModelEntry(url="http://localhost:1/v1", model="mine")
    assert book(openai=mine).look_up("openai").entry is mine


async def test_an_entry_fills_in_what_the_request_leaves_open(
    book_of: Any, provider: StandIn
) -> None:
    entry = {"temperature": 0.3, "max_output_tokens": 9, "options": {"a": 1, "b": 1}}
    chosen = book_of("openai", **entry).choose("it/larger")
    await ask_model(chosen, msgspec.structs.replace(HELLO, temperature=0.9, options={"b": 2}))
    body = provider.asked[0].body
    sent = [body[name] for name in ("model", "temperature", "max_tokens", "a", "b")]
    assert sent == ["larger", 0.9, 9, 1, 2]


async def test_a_call_costs_what_the_table_says(book_of: Any) -> None:
    prices = {"it/*": Price(input=3, output=0.1)}
    chosen = book_of("openai", prices=prices).choose("it")
    cost = chosen.cost((await ask_model(chosen, HELLO)).usage)
    assert cost is not None
    assert (cost.amount, cost.currency, cost.pattern) == (Decimal("0.0000332"), "USD", "it/*")
    assert cost.price == prices["it/*"]


def test_no_price_is_no_cost_and_not_nothing() -> None:
    table = Prices({"gpt-*": Price(input=1, output=1)})
    assert table.cost("local/llama", "llama", TokenUsage(input_tokens=5)) is None
    assert table.cost("openai/gpt-x", "gpt-x", None) is None


def test_the_longest_pattern_that_fits_decides() -> None:
    cheap, dear = Price(input=1, output=1), Price(input=9, output=9)
    table = Prices({"*": cheap, "gpt-x*": dear, "gpt-*": cheap})
    assert table.find("openai/gpt-x-mini", "gpt-x-mini") == ("gpt-x*", dear)


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_costs_are_exact(fresh: int, cached: int, out: int) -> None:
    table = Prices({"*": Price(input=0.1, output=0.7, cached_input=0.01)})
    usage = TokenUsage(input_tokens=fresh + cached, cached_input_tokens=cached, output_tokens=out)
    cost = table.cost("a/b", "b", usage)
    assert cost is not None
    assert cost.amount * 100_000_000 == 10 * fresh + cached + 70 * out
