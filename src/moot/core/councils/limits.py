"""Limits on the calls, tokens, money and time of a council, and on loops.

In a council the floor counts the turns of agents that only answer each other, in other
conversations the chain of agent turns does. A person's turn lifts the stop.
"""

from msgspec import Struct
from msgspec.structs import replace

from moot.core.councils.invitations import CouncilStep
from moot.core.state.agent_chain import CHAIN_LIMITS, AgentChain
from moot.core.state.floor import Floor, FloorRequest, FloorSpending, pair_key

#: tokens to expect of a call before the first one was made
ASSUMED_TOKENS = 1000


def limit_stop(floor: Floor, step: CouncilStep, at: int) -> CouncilStep | None:
    """Return a stop if a limit is reached before the next call."""
    limits, spent = floor.policy.limits, floor.spent
    checks: list[tuple[str, float, float | None]] = [
        ("consecutive", floor.streak, limits.consecutive),
        ("calls", spent.calls, limits.calls),
        ("tokens", spent.tokens, limits.tokens),
        ("money", spent.money, limits.money),
        ("minutes", max(0, at - floor.since) / 60_000, limits.minutes),
    ]
    for planned in step.wakes:
        own = floor.by_agent.get(planned.agent)
        if own is not None:
            checks.append((f"calls of {planned.agent}", own.calls, limits.agent_calls))
            checks.append((f"tokens of {planned.agent}", own.tokens, limits.agent_tokens))
    for name, used, limit in checks:
        if limit is not None and used >= limit:
            return CouncilStep(stop=name, limit=limit, observed=used)
    return None


def fit_to_limits(floor: Floor, step: CouncilStep) -> CouncilStep:
    """Return the step with as many invitations as the limits allow, at least one.

    The other members are invited in a later step.
    """
    limits, spent = floor.policy.limits, floor.spent
    count = min(limits.calls - spent.calls, limits.consecutive - floor.streak)
    average = spent.tokens / spent.calls if spent.calls and spent.tokens else ASSUMED_TOKENS
    count = min(count, int((limits.tokens - spent.tokens) / average))
    if limits.money is not None:
        count = min(count, _affordable_calls(limits.money, spent))
    return replace(step, wakes=step.wakes[: max(1, count)])


def _affordable_calls(money: float, spent: FloorSpending) -> int:
    """Return how many more calls the money pays for; one before the first call has a price."""
    if not spent.calls:
        return 1
    average = spent.money / spent.calls
    return int((money - spent.money) / average) if average > 0 else spent.calls + 1_000_000


class RemainingBudget(Struct, frozen=True, kw_only=True):
    """The calls, tokens and money that one member may still use."""

    calls: int
    tokens: int
    money: float | None = None


def remaining_budget(floor: Floor, agent: str) -> RemainingBudget:
    """Share the rest of the budget among the members that have the floor."""
    limits, spent, sharing = floor.policy.limits, floor.spent, max(1, len(floor.wakes))
    own = floor.by_agent.get(agent, FloorSpending())
    calls = (limits.calls - spent.calls) // sharing
    tokens = (limits.tokens - spent.tokens) // sharing
    money = None if limits.money is None else max(0.0, limits.money - spent.money) / sharing
    return RemainingBudget(
        calls=max(1, min(calls, limits.agent_calls - own.calls)),
        tokens=max(1, min(tokens, limits.agent_tokens - own.tokens)),
        money=money,
    )


# -- loops of agents ------------------------------------------------------------------------------


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
    if stop := pair_stop(floor, name, request.by):
        return stop
    streak, limit = floor.streak, floor.policy.limits.consecutive
    if streak < limit:
        return None
    return CouncilStep(stop="consecutive", limit=limit, observed=streak)
