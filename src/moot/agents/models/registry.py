"""Find configured models by name, and open them for calls."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from moot.agents.models import anthropic, openai
from moot.agents.models.cassettes import Cassette, RecordingModel, ReplayingModel
from moot.agents.models.demo import DemoModel
from moot.agents.models.protocol import Model, ModelRequest, Piece, TokenUsage
from moot.agents.models.retry import OnAttempt, RetryingModel, RetryLimits, Wait
from moot.agents.models.sdk import ProviderEndpoint
from moot.clock import Clock
from moot.config.models import ModelEntry, Price
from moot.core.errors.models import ModelNotConfigured
from moot.core.text.nearest import nearest_word

DEMO = "demo"
LONGEST_REFERENCE = 256
#: fields of a request that an entry may set
DEFAULT_FIELDS = ("temperature", "top_p", "max_output_tokens", "seed")
OLLAMA_URL = "http://localhost:11434/v1"
URLS = {"openai": openai.URL, "anthropic": anthropic.URL}

#: names that work without configuration, in references NAME/MODEL
PRESETS: dict[str, ModelEntry] = {
    DEMO: ModelEntry(provider="demo", model=DEMO),
    "openai": ModelEntry(url=openai.URL, key_env="OPENAI_API_KEY"),
    "anthropic": ModelEntry(provider="anthropic", url=anthropic.URL, key_env="ANTHROPIC_API_KEY"),
    "ollama": ModelEntry(url=OLLAMA_URL),
}

Secret = Callable[[str], str | None]
#: reads the current models and prices; raises ValueError when that fails
ReadModels = Callable[[], tuple[Mapping[str, ModelEntry], Mapping[str, Price]]]


MILLION = Decimal(1_000_000)


class Cost(Struct, frozen=True, kw_only=True, rename="camel"):
    """The cost of a call, and the price used, so that it can be checked later."""

    amount: Decimal
    currency: str
    pattern: str
    price: Price


class Prices:
    """Prices by pattern with ``*`` and ``?``. The longest matching pattern wins."""

    def __init__(self, table: Mapping[str, Price]) -> None:
        self._table = sorted(table.items(), key=lambda row: (-len(row[0]), row[0]))

    def find(self, reference: str, model: str) -> tuple[str, Price] | None:
        """Return the price of a model, by its reference NAME/MODEL or its own name."""
        for pattern, price in self._table:
            if fnmatchcase(reference, pattern) or fnmatchcase(model, pattern):
                return pattern, price
        return None

    def cost(self, reference: str, model: str, usage: TokenUsage | None) -> Cost | None:
        """Return the cost, or None when the price or the tokens are unknown."""
        match = self.find(reference, model)
        if match is None or usage is None:
            return None
        pattern, price = match
        cached = _exact(price.input if price.cached_input is None else price.cached_input)
        uncached = usage.input_tokens - usage.cached_input_tokens
        input_cost = uncached * _exact(price.input) + usage.cached_input_tokens * cached
        amount = (input_cost + usage.output_tokens * _exact(price.output)) / MILLION
        currency, amount = price.currency, amount.normalize()
        return Cost(amount=amount, currency=currency, pattern=pattern, price=price)


def _exact(price: float) -> Decimal:
    """Return the number as it was written: 0.1 is exactly 0.1."""
    return Decimal(repr(price))


class ModelReference(Struct, frozen=True):
    """The entry and the model that NAME or NAME/MODEL means."""

    name: str
    model: str
    entry: ModelEntry

    @property
    def text(self) -> str:
        return self.name if self.name == DEMO else f"{self.name}/{self.model}"


class ModelSettings(Struct, frozen=True, kw_only=True):
    """The settings for all models of this process."""

    mode: Literal["live", "record", "replay"] = "live"
    cassette: str = "models.jsonl"
    #: words per second of the demo model; 0 means no delay
    demo_wps: float = 40.0


class ChosenModel:
    """One model with its defaults, limits and price."""

    def __init__(self, reference: ModelReference, model: Model, prices: Prices) -> None:
        self.reference = reference
        self.provider = model.provider
        self._model, self._prices = model, prices

    def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Stream the answer. Values of the request win over the entry, except the model."""
        return self._model.stream(self.completed(request))

    def completed(self, request: ModelRequest) -> ModelRequest:
        entry = self.reference.entry
        options, model = {**entry.options, **request.options}, self.reference.model
        unset = [name for name in DEFAULT_FIELDS if getattr(request, name) is None]
        defaults = {name: getattr(entry, name) for name in unset}
        return msgspec.structs.replace(request, model=model, options=options, **defaults)

    def cost(self, usage: TokenUsage | None) -> Cost | None:
        return self._prices.cost(self.reference.text, self.reference.model, usage)

    async def aclose(self) -> None:
        """Do nothing; the registry closes its models."""


class ModelRegistry:
    """All configured models. It keeps opened models and closes them with itself."""

    def __init__(
        self,
        entries: Mapping[str, ModelEntry],
        secret: Secret,
        clock: Clock,
        settings: ModelSettings | None = None,
        prices: Mapping[str, Price] | None = None,
        wait: Wait = asyncio.sleep,
        later: ReadModels | None = None,
    ) -> None:
        self.entries, self._read_models = dict(entries), later
        self._secret, self._clock, self._wait = secret, clock, wait
        self._settings = settings or ModelSettings()
        self._price_table = dict(prices or {})
        self._prices = Prices(self._price_table)
        self._open: dict[str, Model] = {}
        self._cassette: Cassette | None = None

    def problem(self, reference: str) -> str | None:
        """Return why no agent can use this model, or None."""
        try:
            self.look_up(reference)
        except ModelNotConfigured as error:
            return error.message
        return None

    def look_up(self, reference: str) -> ModelReference:
        """Return what a reference means. Raise ModelNotConfigured with the nearest name."""
        name, _, model = reference[:LONGEST_REFERENCE].partition("/")
        reference = reference[:LONGEST_REFERENCE]
        entry = self.entries.get(name) or PRESETS.get(name) or self._read_added(name)
        if entry is None:
            suggestion = nearest_word(name, [*self.entries, *PRESETS])
            hint = f" Did you mean '{suggestion}'?" if suggestion else ""
            raise ModelNotConfigured(
                f"There is no model '{name}'.{hint} See: moot models list; or add it:"
                f" moot models add {name} --url URL --model MODEL",
                reference=reference,
            )
        model = model or entry.model or (DEMO if entry.provider == "demo" else "")
        if not model:
            message = f"'{name}' does not say which model; write {name}/MODEL."
            raise ModelNotConfigured(message, reference=reference)
        return ModelReference(name, model, entry)

    def _read_added(self, name: str) -> ModelEntry | None:
        """Return a model that was configured meanwhile. Known models stay unchanged."""
        if self._read_models is None:
            return None
        try:
            entries, prices = self._read_models()
        except ValueError as error:
            raise ModelNotConfigured(f"There is no model '{name}': {error}") from None
        if name in entries:
            self.entries[name] = entries[name]
            self._price_table = {**prices, **self._price_table}
            self._prices = Prices(self._price_table)
        return self.entries.get(name)

    def has_price(self, reference: str) -> bool:
        try:
            resolved = self.look_up(reference)
        except ModelNotConfigured:
            return False
        return self._prices.find(resolved.text, resolved.model) is not None

    def choose(
        self,
        reference: str,
        told: OnAttempt | None = None,
        attempts: int | None = None,
        most: int | None = None,
    ) -> ChosenModel:
        """Return a model to call. ``told`` gets every attempt; there are at most ``most``."""
        resolved = self.look_up(reference)
        entry = resolved.entry
        if self._settings.mode == "replay" and entry.provider != "demo":
            replaying = ReplayingModel(entry.provider, self._open_cassette())
            return ChosenModel(resolved, replaying, self._prices)
        limits = _limits(entry, attempts, most)
        model: Model = RetryingModel(
            self._open_model(resolved), self._clock, limits, told, self._wait
        )
        if self._settings.mode == "record" and entry.provider != "demo":
            model = RecordingModel(model, self._open_cassette())
        return ChosenModel(resolved, model, self._prices)

    def opened(self, name: str) -> Model | None:
        return self._open.get(name)

    def _open_model(self, reference: ModelReference) -> Model:
        name, entry = reference.name, reference.entry
        if name not in self._open:
            self._open[name] = self._create_model(name, entry)
        return self._open[name]

    def _create_model(self, name: str, entry: ModelEntry) -> Model:
        if entry.provider == "demo":
            wps = self._settings.demo_wps
            return DemoModel(script=entry.script, fail=entry.fail, wps=wps, wait=self._wait)
        url = entry.url or URLS[entry.provider]
        official = url == openai.URL
        endpoint = ProviderEndpoint(
            name=name,
            url=url,
            key=self._key(name, entry),
            key_env=entry.key_env,
            json=entry.json,
            names=entry.names or ("field" if official else "envelope"),
        )
        kind = anthropic.AnthropicModel if entry.provider == "anthropic" else openai.OpenAIModel
        return kind(endpoint, self._clock)

    def _key(self, name: str, entry: ModelEntry) -> str | None:
        if entry.key_env is None:
            return None
        key = self._secret(entry.key_env)
        if not key:
            raise ModelNotConfigured(
                f"The key of '{name}' is looked for in {entry.key_env}, which is not set;"
                f" set it: export {entry.key_env}=…",
                keyEnv=entry.key_env,
            )
        return key

    def _open_cassette(self) -> Cassette:
        if self._cassette is None:
            key_names = {entry.key_env for entry in (*self.entries.values(), *PRESETS.values())}
            secrets = [self._secret(name) or "" for name in key_names if name]
            self._cassette = Cassette(Path(self._settings.cassette), secrets)
        return self._cassette

    async def aclose(self) -> None:
        for name in list(self._open):
            await self._open.pop(name).aclose()


def _limits(entry: ModelEntry, attempts: int | None, most: int | None) -> RetryLimits:
    defaults = RetryLimits()
    count = attempts or entry.attempts or defaults.attempts
    attempts = count if most is None else max(1, min(count, most))
    first_s, total_s = entry.first_token_s, entry.total_s
    return RetryLimits(
        attempts=attempts,
        first_token_s=first_s or defaults.first_token_s,
        total_s=total_s or defaults.total_s,
    )
