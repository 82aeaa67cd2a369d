"""The base of request bodies, and the bounds of their texts."""

from typing import Annotated

from msgspec import Meta, Struct

from moot.wire.json import JsonObject

LONGEST_TEXT = 100_000

Name = Annotated[str, Meta(min_length=1, max_length=256)]
Title = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)]
Note = Annotated[str, Meta(max_length=500)]
InvitedParticipants = Annotated[
    list[Name | JsonObject],
    Meta(
        description="Names of participants, or objects with `agentId`.", examples=[["ada", "bob"]]
    ),
]


class RequestStruct(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True,
    omit_defaults=True,
):  # fmt: skip
    """The base of request bodies. JSON names are camelCase, unknown fields are refused."""
