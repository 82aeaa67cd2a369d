"""The models and prices in moot.toml."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Share = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Count = Annotated[int, Meta(ge=1)]
Variable = Annotated[str, Meta(min_length=1, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)")]


class DemoFailure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failure that the demo model simulates."""

    kind: Literal["timeout", "refusal", "rate_limit", "bad_json", "error", "disconnect"]
    #: its own turn that fails, counted from 1; by default every turn
    turn: Count | None = None
    #: the failing attempts of that turn; by default all
    times: Count | None = None


class ScriptLine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One turn of a script: text, a JSON value, a refusal, or a tool call."""

    say: str | None = None
    json: Any = None
    refusal: str | None = None
    tool: str | None = None
    arguments: dict[str, object] = {}


class ModelEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[models.NAME]``: a provider, its address, and defaults."""

    provider: Literal["openai", "anthropic", "demo"] = "openai"
    #: the address; by default that of the provider
    url: Annotated[str, Meta(min_length=1)] | None = None
    #: the name of the model at the provider; a reference NAME/MODEL may replace it
    model: Annotated[str, Meta(min_length=1)] | None = None
    #: the environment variable with the key; the key itself is never in a file
    key_env: Variable | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Share | None = None
    max_output_tokens: Count | None = None
    seed: int | None = None
    #: the limits of a call
    attempts: Annotated[int, Meta(ge=1, le=20)] | None = None
    first_token_s: Seconds | None = None
    total_s: Seconds | None = None
    #: "prompt" for servers without schemas; the host also detects them
    json: Literal["native", "prompt"] = "native"
    #: the place for the name of a speaker: its field, or an envelope around the text
    names: Literal["field", "envelope"] | None = None
    #: options of this provider, passed on unchanged
    options: dict[str, object] = {}
    #: for the demo model: its turns, and its failures
    script: list[str | ScriptLine] = []
    fail: DemoFailure | None = None


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[prices."PATTERN"]``: the price of a million tokens."""

    input: Annotated[float, Meta(ge=0)]
    output: Annotated[float, Meta(ge=0)]
    #: cached input; by default the price of input
    cached_input: Annotated[float, Meta(ge=0)] | None = None
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}$(?!\n)")] = "USD"
