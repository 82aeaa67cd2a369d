"""The models there are, by name: what a reference means, and a model ready to be asked."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from moot.agents.models import anthropic, openai
from moot.agents.models.cassettes import Cassette, Recording, Replaying
from moot.agents.models.config import Cost, ModelEntry, Price
from moot.agents.models.demo import DemoModel
from moot.agents.models.prices import Prices
from moot.agents.models.protocol import Model, ModelRequest, Piece, Usage, filled
from moot.agents.models.retry import Limits, Retrying, Told, Wait
from moot.agents.models.sdk import Endpoint
from moot.clock import Clock
from moot.core.errors.models import ModelNotConfigured
from moot.core.text.nearest import nearest

DEMO = "demo"
LONGEST_REFERENCE = 256
OLLAMA_URL = "http://localhost:11434/v1"
URLS = {"openai": openai.URL, "anthropic": anthropic.URL}

#: names that mean something before anybody configures anything; a reference NAME/MODEL uses them
PRESETS: dict[str, ModelEntry] = {
    DEMO: ModelEntry(provider="demo", model=DEMO),
    "openai": ModelEntry(url=openai.URL, key_env="OPENAI_API_KEY"),
    "anthropic": ModelEntry(provider="anthropic", url=anthropic.URL, key_env="ANTHROPIC_API_KEY"),
    "ollama": ModelEntry(url=OLLAMA_URL),
}

Secret = Callable[[str], str | None]
#: models and prices as they are configured now; raises ValueError where that cannot be read
Later = Callable[[], tuple[Mapping[str, ModelEntry], Mapping[str, Price]]]


class Reference(Struct, frozen=True):
    """What NAME or NAME/MODEL stands for."""

    name: str
    model: str
    entry: ModelEntry

    @property
    def text(self) -> str:
        return self.name if self.name == DEMO else f"{self.name}/{self.model}"


class Ways(Struct, frozen=True, kw_only=True):
    """How models are spoken to in this process."""

    mode: Literal["live", "record", "replay"] = "live"
    cassette: str = "models.jsonl"
    #: words a second of the demo model; 0 is at once
    demo_wps: float = 40.0


class Chosen:
    """One model of the book, with its defaults, limits and price."""

    def __init__(self, reference: Reference, model: Model, prices: Prices) -> None:
        self.reference = reference
        self.provider = model.provider
        self._model, self._prices = model, prices

    def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """The request's own values win over the entry's; the model is always the chosen one."""
        return self._model.stream(self.completed(request))

    def completed(self, request: ModelRequest) -> ModelRequest:
        entry = self.reference.entry
        options = {**entry.options, **request.options}
        request = msgspec.structs.replace(request, model=self.reference.model, options=options)
        return filled(
            request,
            temperature=entry.temperature,
            top_p=entry.top_p,
            max_output_tokens=entry.max_output_tokens,
            seed=entry.seed,
        )

    def cost(self, usage: Usage | None) -> Cost | None:
        """None when nobody set a price."""
        return self._prices.cost(self.reference.text, self.reference.model, usage)

    async def aclose(self) -> None:
        """The book closes what it opened."""


class Book:
    """Every model that can be named. What it opens it keeps, and closes with itself."""

    def __init__(
        self,
        entries: Mapping[str, ModelEntry],
        secret: Secret,
        clock: Clock,
        ways: Ways | None = None,
        prices: Mapping[str, Price] | None = None,
        wait: Wait = asyncio.sleep,
        later: Later | None = None,
    ) -> None:
        self.entries, self._later = dict(entries), later
        self._secret, self._clock, self._wait = secret, clock, wait
        self._ways = ways or Ways()
        self._known_prices = dict(prices or {})
        self._prices = Prices(self._known_prices)
        self._open: dict[str, Model] = {}
        self._cassette: Cassette | None = None

    def problem(self, reference: str) -> str | None:
        """Why no agent can speak through this, in words; None when it can."""
        try:
            self.look_up(reference)
        except ModelNotConfigured as error:
            return error.message
        return None

    def look_up(self, reference: str) -> Reference:
        """Raises ModelNotConfigured with the nearest name."""
        name, _, model = reference[:LONGEST_REFERENCE].partition("/")
        reference = reference[:LONGEST_REFERENCE]
        entry = self.entries.get(name) or PRESETS.get(name) or self._added(name)
        if entry is None:
            meant = nearest(name, [*self.entries, *PRESETS])
            hint = f" Did you mean '{meant}'?" if meant else ""
            raise ModelNotConfigured(
                f"There is no model '{name}'.{hint} See: moot models list; or add it:"
                f" moot models add {name} --url URL --model MODEL",
                reference=reference,
            )
        model = model or entry.model or (DEMO if entry.provider == "demo" else "")
        if not model:
            raise ModelNotConfigured(
                f"'{name}' does not say which model; write {name}/MODEL.", reference=reference
            )
        return Reference(name, model, entry)

    def _added(self, name: str) -> ModelEntry | None:
        """A model that was configured meanwhile. What is known already stays as it is."""
        if self._later is None:
            return None
        try:
            entries, prices = self._later()
        except ValueError as error:
            raise ModelNotConfigured(f"There is no model '{name}': {error}") from None
        if name in entries:
            self.entries[name] = entries[name]
            self._known_prices = {**prices, **self._known_prices}
            self._prices = Prices(self._known_prices)
        return self.entries.get(name)

    def priced(self, reference: str) -> bool:
        """Whether what it is asked for costs something that is known here."""
        try:
            found = self.look_up(reference)
        except ModelNotConfigured:
            return False
        return self._prices.of(found.text, found.model) is not None

    def choose(
        self,
        reference: str,
        told: Told | None = None,
        attempts: int | None = None,
        most: int | None = None,
    ) -> Chosen:
        """A model to ask; ``told`` hears of every attempt, of which there are ``most`` at most.
        Nothing is called yet."""
        found = self.look_up(reference)
        entry = found.entry
        if self._ways.mode == "replay" and entry.provider != "demo":
            replaying = Replaying(entry.provider, self._tape())
            return Chosen(found, replaying, self._prices)
        limits = _limits(entry, attempts, most)
        model: Model = Retrying(self._opened(found), self._clock, limits, told, self._wait)
        if self._ways.mode == "record" and entry.provider != "demo":
            model = Recording(model, self._tape())
        return Chosen(found, model, self._prices)

    def opened(self, name: str) -> Model | None:
        """The model behind a name, if it has been asked for."""
        return self._open.get(name)

    def _opened(self, reference: Reference) -> Model:
        name, entry = reference.name, reference.entry
        if name not in self._open:
            self._open[name] = self._made(name, entry)
        return self._open[name]

    def _made(self, name: str, entry: ModelEntry) -> Model:
        if entry.provider == "demo":
            return DemoModel(
                script=entry.script, fail=entry.fail, wps=self._ways.demo_wps, wait=self._wait
            )
        url = entry.url or URLS[entry.provider]
        official = url == openai.URL
        endpoint = Endpoint(
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

    def _tape(self) -> Cassette:
        if self._cassette is None:
            named = {entry.key_env for entry in (*self.entries.values(), *PRESETS.values())}
            secrets = [self._secret(name) or "" for name in named if name]
            self._cassette = Cassette(Path(self._ways.cassette), secrets)
        return self._cassette

    async def aclose(self) -> None:
        for name in list(self._open):
            await self._open.pop(name).aclose()


def _limits(entry: ModelEntry, attempts: int | None, most: int | None) -> Limits:
    usual = Limits()
    often = attempts or entry.attempts or usual.attempts
    return Limits(
        attempts=often if most is None else max(1, min(often, most)),
        first_token_s=entry.first_token_s or usual.first_token_s,
        total_s=entry.total_s or usual.total_s,
    )
