"""Count chains of agents that answer each other in a conversation without a floor.

The host stops a chain that gets too long, until a person speaks or continues it.
"""

from typing import Any

from msgspec import Struct

from moot.core.payloads.conversations import Turn
from moot.core.state.control_content import MOST_NAMES
from moot.core.state.council_policy import Bounds
from moot.core.state.floor import pair_key
from moot.core.text import mentions
from moot.core.text.names import full_name, is_person

CHAIN_LIMITS = Bounds()


class AgentChain(Struct, omit_defaults=True):
    """The turns of agents since a person last spoke."""

    streak: int = 0
    #: pair of agents -> how often one has addressed the other
    pairs: dict[str, int] = {}
    #: the limit that was reached, the count, and the sequence of the turn that reached it
    over: str | None = None
    seen: int = 0
    since: int = 0
    #: the host has announced the stop
    stopped: bool = False


def apply_turn_to_chain(
    chain: AgentChain | None,
    turn: Turn,
    profiles: dict[str, dict[str, Any]],
    sequence: int,
) -> AgentChain | None:
    """Return the chain after the turn; a person's turn ends it. ``profiles`` maps participants."""
    if turn.role == "user":
        return None
    if turn.role != "agent":
        return chain
    chain = AgentChain() if chain is None else chain
    chain.streak += 1
    speaker = full_name(turn.from_)
    names = [name for name in addressed_agents(turn, profiles) if name != speaker]
    highest = 0
    for name in names:
        key = pair_key(speaker, name)
        if len(chain.pairs) < MOST_NAMES or key in chain.pairs:
            chain.pairs[key] = chain.pairs.get(key, 0) + 1
            highest = max(highest, chain.pairs[key])
    if names and chain.over is None:
        if highest > CHAIN_LIMITS.pair:
            chain.over, chain.seen, chain.since = "pair", highest, sequence
        elif chain.streak >= CHAIN_LIMITS.consecutive:
            chain.over, chain.seen, chain.since = "consecutive", chain.streak, sequence
    return chain


def addressed_agents(turn: Turn, profiles: dict[str, dict[str, Any]]) -> list[str]:
    """Return the agents that the turn is addressed to or mentions."""
    if turn.to is not None and turn.to != "all":
        return [] if is_person(turn.to) else [full_name(turn.to)]
    names = mentions.find_mentions(turn.content, profiles).names
    return [name for name in names if not is_person(name)]
