"""Agents that ask one another where nobody leads: how long a chain of them may get.

The host gives nobody the floor there, and still tells programs outside that they were asked. A
chain that has become too long is stopped, visibly, until a person speaks or lets it go on.
"""

from typing import Any

from msgspec import Struct

from moot.core.state.council_policy import Bounds
from moot.core.state.floor import pair
from moot.core.state.thread_controls import MOST_NAMES
from moot.core.text import mentions
from moot.core.text.names import full_name, is_person

LIMITS = Bounds()


class Chain(Struct, omit_defaults=True):
    """What agents have said since a person spoke."""

    streak: int = 0
    #: how often two of them have asked one another
    pairs: dict[str, int] = {}
    #: which limit was reached, how far it had come, and by the turn at which place
    over: str | None = None
    seen: int = 0
    since: int = 0
    #: everybody was told so
    stopped: bool = False


def heard(
    chain: Chain | None, turn: dict[str, Any], profiles: dict[str, dict[str, Any]], sequence: int
) -> Chain | None:
    """Somebody has spoken; ``profiles``: who takes part -> what is known of him."""
    if turn.get("role") == "user":
        return None
    if turn.get("role") != "agent":
        return chain
    chain = Chain() if chain is None else chain
    chain.streak += 1
    speaker = full_name(str(turn.get("from", "")))
    names = [name for name in asked(turn, profiles) if name != speaker]
    most = 0
    for name in names:
        key = pair(speaker, name)
        if len(chain.pairs) < MOST_NAMES or key in chain.pairs:
            chain.pairs[key] = chain.pairs.get(key, 0) + 1
            most = max(most, chain.pairs[key])
    if names and chain.over is None:
        if most > LIMITS.pair:
            chain.over, chain.seen, chain.since = "pair", most, sequence
        elif chain.streak >= LIMITS.consecutive:
            chain.over, chain.seen, chain.since = "consecutive", chain.streak, sequence
    return chain


def asked(turn: dict[str, Any], profiles: dict[str, dict[str, Any]]) -> list[str]:
    """The agents that a turn is for, or names."""
    to = turn.get("to")
    if isinstance(to, str) and to != "all":
        return [] if is_person(to) else [full_name(to)]
    names = mentions.mentioned(turn.get("content"), profiles).names
    return [name for name in names if not is_person(name)]
