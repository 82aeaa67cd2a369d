"""How a conversation is led: who is given the floor, what members are told, where it stops."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Mode = Literal[
    "declared", "round-robin", "addressed", "raise-hand", "moderated", "small", "large", "auto"
]  # fmt: skip

#: ways of taking turns as it is done in threads: nobody's turn comes round, somebody is meant
THREADED = frozenset({"small", "large", "auto"})
#: members up to which a thread is small
SMALL = 4

Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class Bounds(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Where a led conversation stops by itself. All of them are on."""

    #: agents' turns since a person last spoke
    consecutive: Annotated[int, Meta(ge=1, le=1000)] = 24
    #: how often two agents may wake one another since then
    pair: Annotated[int, Meta(ge=1, le=1000)] = 3
    #: calls of models, tokens and minutes since it began or was told to go on
    calls: Count = 200
    tokens: Count = 200_000
    minutes: Annotated[int, Meta(ge=1, le=100_000)] = 60
    #: in the currency of the prices; None where nothing has a price
    money: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None
    #: of any one member
    agent_calls: Count = 100
    agent_tokens: Count = 100_000
    #: seconds a member may be silent before it is passed over; longer than a model may take by
    #: default
    silence: Annotated[int, Meta(ge=1, le=86_400)] = 360


class Policy(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True,
    omit_defaults=True,
):  # fmt: skip
    """How the floor is given."""

    mode: Mode = "round-robin"
    rounds: Annotated[int, Meta(ge=1, le=100)] = 2
    moderator: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    #: in the first round nobody hears the others
    blind: bool = False
    #: what a person's turn does to a member that is speaking
    interject: Literal["queue", "interrupt", "note"] = "queue"
    #: members are asked for their vote on what the moderator proposes
    vote: bool = False
    #: the newest turns that a member is told; and who sums up those before, so that nobody goes on
    #: without them
    window: Annotated[int, Meta(ge=2, le=200)] = 60
    summarise: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    #: who ends it when all is said
    close: Literal["person", "moderator"] = "person"
    #: what is spent counts anew with every turn of a person
    renews: bool = False
    limits: Bounds = Bounds()


#: of a thread, unless it is begun with another one
OF_THREADS: dict[str, Any] = {"mode": "auto", "renews": True, "limits": {"consecutive": 12}}


def read(said: Any) -> Policy | None:
    try:
        return msgspec.convert(said, Policy)
    except msgspec.ValidationError:
        return None


#: modes that go on as long as people speak, and what is for those that come to an end
ENDLESS = ("declared", "addressed", "small", "large")
#: modes in which who is named is meant, and nobody else
BY_NAME = frozenset({*ENDLESS, *THREADED})
FOR_ROUNDS = ("rounds", "moderator", "vote", "close", "blind")


def meaningless(said: dict[str, Any]) -> str | None:
    """What a policy asks for and its mode has no use for, and what to do instead."""
    mode = str(said.get("mode", "round-robin"))
    if mode not in ENDLESS:
        return None
    unset = (None, False, "person")
    asked = [name for name in FOR_ROUNDS if said.get(name) not in unset]
    if not asked:
        return None
    return (
        f"{', '.join(asked)}: nothing in mode '{mode}', where members answer people for as long as"
        " these speak. Leave it out, or take mode round-robin, raise-hand or moderated."
    )
