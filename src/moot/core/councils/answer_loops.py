"""Stop agents that only answer one another."""

from moot.core.councils.steps import Step
from moot.core.state.agent_chain import LIMITS, Chain
from moot.core.state.floor import Floor, pair


def chain_stop(chain: Chain | None) -> Step | None:
    """The stop, while it has not been told."""
    if chain is None or chain.over is None or chain.stopped:
        return None
    limit = LIMITS.pair if chain.over == "pair" else LIMITS.consecutive
    return Step(stop=chain.over, limit=limit, observed=chain.seen)


def chain_limit(chain: Chain | None) -> str | None:
    """The limit that was reached."""
    return None if chain is None else chain.over


def is_chain_held(chain: Chain | None, sequence: int) -> bool:
    """Whether what an agent asked there waits for a person's word."""
    return chain is not None and chain.over is not None and sequence >= chain.since


def pair_stop(floor: Floor, name: str, by: str) -> Step | None:
    seen, limit = floor.pairs.get(pair(name, by), 0), floor.policy.limits.pair
    return Step(stop="pair", limit=limit, observed=seen) if seen > limit else None
