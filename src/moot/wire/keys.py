"""Requests and answers about API keys."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from moot.wire.json import WireStruct

KeyName = Annotated[
    str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@:-]*$(?!\n)")
]


class CreateKey(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"as_": "as"},
):
    """A new key."""

    name: KeyName
    tenant: KeyName | None = None
    scopes: (
        Annotated[list[str], Meta(description="Left out: the usual scopes of a key.")] | None
    ) = None
    as_: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=256)]],
        Meta(description="The participants that the key speaks as.", examples=[["host:codex"]]),
    ] = []
    admin: bool = False
    test: bool = False
    expires_in_s: Annotated[int, Meta(ge=1, le=3_153_600_000)] | None = None


class KeyView(WireStruct, frozen=True):
    """An API key without its secret."""

    id: str
    name: str
    tenant: str
    scopes: list[str]
    speaks_as: list[str] = field(name="as")
    admin: bool
    test: bool
    created_at: str
    revoked_at: str | None = None
    expires_at: str | None = None
    thread: str | None = None


class NewKey(KeyView, frozen=True, kw_only=True):
    """A new key. Only the first answer has the secret; the answer to a repeat leaves it out."""

    key: str | UnsetType = UNSET


class KeyList(WireStruct, frozen=True):
    """All API keys."""

    keys: list[KeyView]
