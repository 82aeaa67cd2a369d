"""Bases of the Structs that requests and answers consist of."""

from typing import Any, cast

from msgspec import Raw, Struct

JsonObject = dict[str, Any]


class WireStruct(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of API answers.

    JSON names are camelCase. The server leaves out fields with their default value, and the client
    ignores unknown fields.
    """


def stored_object(encoded: bytes) -> JsonObject:
    """Return a stored JSON object as a field of an answer, which the server sends byte for byte."""
    return cast("JsonObject", Raw(encoded))
