"""Limits on agents that only answer each other.

In a council the floor counts, in other conversations the chain of agent turns does. A person's turn
lifts the stop.
"""

from moot.core.councils.steps import CouncilStep
from moot.core.state.agent_chain import CHAIN_LIMITS, AgentChain
from moot.core.state.floor import Floor, FloorRequest, pair_key


def chain_stop(chain: AgentChain | None) -> CouncilStep | None:
    """Return the stop of a chain that is over its limit, until the log records it."""
    if chain is None or chain.over is None or chain.stopped:
        return None
    limit = CHAIN_LIMITS.pair if chain.over == "pair" else CHAIN_LIMITS.consecutive
    return CouncilStep(stop=chain.over, limit=limit, observed=chain.seen)


def chain_limit(chain: AgentChain | None) -> str | None:
    """Return the name of the limit that the chain has reached."""
    return None if chain is None else chain.over


def is_chain_held(chain: AgentChain | None, sequence: int) -> bool:
    """Return whether a request at this sequence waits until a person lets the agents continue."""
    return chain is not None and chain.over is not None and sequence >= chain.since


def pair_stop(floor: Floor, name: str, by: str) -> CouncilStep | None:
    count, limit = floor.pairs.get(pair_key(name, by), 0), floor.policy.limits.pair
    return CouncilStep(stop="pair", limit=limit, observed=count) if count > limit else None


def loop_stop(floor: Floor, name: str, request: FloorRequest) -> CouncilStep | None:
    """Return the stop if this request continues a loop of agents. A person's request never does."""
    if request.by is None:
        return None
    streak, limit = floor.streak, floor.policy.limits.consecutive
    streak_stop = (
        CouncilStep(stop="consecutive", limit=limit, observed=streak) if streak >= limit else None
    )
    return pair_stop(floor, name, request.by) or streak_stop
