"""The policy of a council: its mode of taking turns, its settings and its bounds."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Mode = Literal[
    "declared", "round-robin", "addressed", "raise-hand", "moderated", "small", "large", "auto"
]  # fmt: skip

#: modes of threads: members speak when they are addressed, there are no rounds
THREAD_MODES = frozenset({"small", "large", "auto"})
#: the most members of a small thread
SMALL = 4

Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class Bounds(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The bounds at which a council stops by itself. All of them apply."""

    #: turns of agents since a person last spoke
    consecutive: Annotated[int, Meta(ge=1, le=1000)] = 24
    #: requests between two agents since then
    pair: Annotated[int, Meta(ge=1, le=1000)] = 3
    #: model calls, tokens and minutes since the council began or was continued
    calls: Count = 200
    tokens: Count = 200_000
    minutes: Annotated[int, Meta(ge=1, le=100_000)] = 60
    #: in the currency of the prices; None when there are no prices
    money: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None
    #: for each member
    agent_calls: Count = 100
    agent_tokens: Count = 100_000
    #: seconds of silence after which the host passes a member over; longer than the default
    #: timeout of a model
    silence: Annotated[int, Meta(ge=1, le=86_400)] = 360


class Policy(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True,
    omit_defaults=True,
):  # fmt: skip
    """The rules for taking turns in a council."""

    mode: Mode = "round-robin"
    rounds: Annotated[int, Meta(ge=1, le=100)] = 2
    moderator: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    #: in the first round no member sees the others' turns
    blind: bool = False
    #: the effect of a person's turn on a member that is speaking
    interject: Literal["queue", "interrupt", "note"] = "queue"
    #: members vote on the moderator's proposal
    vote: bool = False
    #: the number of newest turns in a member's prompt, and the member that sums up earlier turns
    window: Annotated[int, Meta(ge=2, le=200)] = 60
    summarise: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    #: the participant that closes a finished council
    close: Literal["person", "moderator"] = "person"
    #: every turn of a person resets the budgets
    renews: bool = False
    limits: Bounds = Bounds()


#: the default policy of a thread
THREAD_POLICY: dict[str, Any] = {"mode": "auto", "renews": True, "limits": {"consecutive": 12}}


def policy_from_payload(payload: Any) -> Policy | None:
    try:
        return msgspec.convert(payload, Policy)
    except msgspec.ValidationError:
        return None


#: modes without an end; the settings that make sense only in modes with one are ROUND_SETTINGS
ENDLESS_MODES = ("declared", "addressed", "small", "large")
#: modes in which a turn that names members is for these members only
NAMING_MODES = frozenset({*ENDLESS_MODES, *THREAD_MODES})
ROUND_SETTINGS = ("rounds", "moderator", "vote", "close", "blind")


def describe_unused_settings(settings: dict[str, Any]) -> str | None:
    """Return a sentence about settings that the mode does not use; None if there are none."""
    mode = str(settings.get("mode", "round-robin"))
    if mode not in ENDLESS_MODES:
        return None
    unset = (None, False, "person")
    unused = [name for name in ROUND_SETTINGS if settings.get(name) not in unset]
    if not unused:
        return None
    return (
        f"{', '.join(unused)}: nothing in mode '{mode}', where members answer people for as long as"
        " these speak. Leave it out, or take mode round-robin, raise-hand or moderated."
    )
