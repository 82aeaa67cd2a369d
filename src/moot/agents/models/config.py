"""Models and prices as moot.toml names them."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Share = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Count = Annotated[int, Meta(ge=1)]
Variable = Annotated[str, Meta(min_length=1, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)")]


class Fail(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the demo model is told to misbehave."""

    kind: Literal["timeout", "refusal", "rate_limit", "bad_json", "error", "disconnect"]
    #: in which turn of its own, counted from 1; in every one when left out
    turn: Count | None = None
    #: how many attempts of that turn fail; all when left out
    times: Count | None = None


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One turn of a script: words, a JSON value, a refusal, the use of a tool."""

    say: str | None = None
    json: Any = None
    refusal: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] = {}


class ModelEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[models.NAME]``: a provider, where it is, and what is usual there."""

    provider: Literal["openai", "anthropic", "demo"] = "openai"
    #: the address; the provider's own when left out
    url: Annotated[str, Meta(min_length=1)] | None = None
    #: what the provider calls the model; a reference NAME/MODEL may name another one
    model: Annotated[str, Meta(min_length=1)] | None = None
    #: the environment variable that holds the key; the key itself never stands in a file
    key_env: Variable | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Share | None = None
    max_output_tokens: Count | None = None
    seed: int | None = None
    #: the limits of a call
    attempts: Annotated[int, Meta(ge=1, le=20)] | None = None
    first_token_s: Seconds | None = None
    total_s: Seconds | None = None
    #: "prompt" for servers that do not know schemas; found out by itself, too
    json: Literal["native", "prompt"] = "native"
    #: where the name of a speaker goes: the field for it, or an envelope around the words
    names: Literal["field", "envelope"] | None = None
    #: what only this provider knows, passed on as it is
    options: dict[str, Any] = {}
    #: for the demo model: what it says, turn by turn, and how it fails
    script: list[str | Line] = []
    fail: Fail | None = None


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[prices."PATTERN"]``: money for a million tokens."""

    input: Annotated[float, Meta(ge=0)]
    output: Annotated[float, Meta(ge=0)]
    #: input the provider had in its cache; like other input when left out
    cached_input: Annotated[float, Meta(ge=0)] | None = None
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}$(?!\n)")] = "USD"


class Cost(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a call cost, and by which price, so that it can be checked later."""

    amount: Decimal
    currency: str
    pattern: str
    price: Price
