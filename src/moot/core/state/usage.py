"""What models are asked for and use up, given the log: a call counts when it begins, tokens and
money as soon as they are known, whatever becomes of who asked."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from moot.core.errors.models import DailyBudgetUsedUp, MemberBudgetUsedUp
from moot.core.events import Event
from moot.core.state import floor as participation
from moot.core.state.agents import RETRIED
from moot.core.state.floor import MOST_HELD, Floor, Spent, Unpaid, Wake, number, stirred

if TYPE_CHECKING:
    from moot.core.state.run import Run

STARTED, FINISHED = "moot.effect.started", "moot.effect.finished"
#: the floor was taken from whoever had made the call, and nobody waits for the answer any more
ABANDONED = "moot.effect.abandoned"
#: a member whose time is up has been heard meanwhile, or has not had its chance yet
HEARD = "moot.participation.heard"

#: where an effect says which standing agent is charged
CHARGED = "chargedTo"
#: how calls of models are named
MODEL = "model:"

#: why a call that had begun was not made after all
NOT_MADE = frozenset({DailyBudgetUsedUp.code, MemberBudgetUsedUp.code})

#: numbers of calls belong to one wake, and to all wakes of one decision
OF_WAKE, OF_DECISION = 100, 10_000


class Used(Struct, omit_defaults=True):
    """What all models have used up in one run."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    #: of the cost, as the prices have it
    currency: str = ""


def is_model(said: dict[str, Any]) -> bool:
    return str(said.get("providerKey", "")).startswith(MODEL)


def wake_of(said: dict[str, Any]) -> str:
    """The wake that a call was made in follows from its number."""
    ordinal = said.get("ordinal")
    ordinal = ordinal if type(ordinal) is int else 0
    return f"{ordinal // OF_DECISION}.{ordinal % OF_DECISION // OF_WAKE}"


def answered(floor: Floor, said: dict[str, Any]) -> None:
    """``moot.participation.answered``: what it says of its cost and is not known yet counts now."""
    wake_id = str(said.get("wakeId", ""))
    wake = floor.wakes.get(wake_id)
    known = wake.spent if wake is not None else Spent()
    usage = said.get("usage")
    if isinstance(usage, dict):
        tokens = number(usage.get("inputTokens")) + number(usage.get("outputTokens"))
        money = _cost(usage) - known.money
        more = Spent(
            calls=max(0, number(usage.get("calls")) - known.calls),
            tokens=max(0, tokens - known.tokens),
            money=money if money > 1e-9 else 0.0,
        )
        _charge(floor, str(said.get("agentId", "")), more)
    elif wake is not None:
        _leave(floor, wake_id, wake)
    participation.answered(floor, said)


def left(floor: Floor, name: str) -> None:
    """``moot.participant.left``"""
    for wake_id, wake in floor.wakes.items():
        if wake.agent == name:
            _leave(floor, wake_id, wake)
    participation.left(floor, name)


def _leave(floor: Floor, wake_id: str, wake: Wake) -> None:
    """Whoever made a call and is gone may yet tell what it has cost."""
    if wake.asking and len(floor.unpaid) < MOST_HELD:
        floor.unpaid[wake_id] = Unpaid(wake.agent, wake.seq)


def _charge(floor: Floor, agent: str, more: Spent) -> None:
    for spent in (floor.spent, floor.by_agent.setdefault(agent, Spent())):
        spent.calls += more.calls
        spent.tokens += more.tokens
        spent.money += more.money


def _cost(said: dict[str, Any]) -> float:
    cost = said.get("cost")
    return float(cost) if isinstance(cost, int | float) and 0 < cost < 1e12 else 0.0


def _floor(run: "Run", event: Event) -> Floor | None:
    talk = run.conversations.get(event.node_id) if event.node_id is not UNSET else None
    return talk.floor if talk is not None else None


def _wake(floor: Floor | None, wake_id: str) -> Wake | None:
    return floor.wakes.get(wake_id) if floor is not None else None


def _total(run: "Run", event: Event) -> Used:
    """Of the run; what a fork says again was its source's to pay."""
    if event.sequence < run.inherited:
        return Used()
    run.used = run.used or Used()
    return run.used


def _begun(run: "Run", event: Event, at: int) -> None:
    floor = _floor(run, event)
    wake = _wake(floor, wake_of(event.payload))
    if floor is not None and wake is not None:
        stirred(floor, wake, at)
    if is_model(event.payload):
        _total(run, event).calls += 1
        _call(floor, wake, asking=True)


def _call(floor: Floor | None, wake: Wake | None, asking: bool) -> None:
    if floor is not None and wake is not None:
        wake.spent.calls += 1
        wake.asking = asking
        _charge(floor, wake.agent, Spent(calls=1))


def _again(run: "Run", event: Event, at: int) -> None:
    """``moot.model.retried``: another attempt of the same call follows."""
    floor = _floor(run, event)
    wake = _wake(floor, str(event.payload.get("invocationId", "")).rpartition(":")[2])
    _total(run, event).calls += 1
    if floor is not None and wake is not None:
        stirred(floor, wake, at)
        _call(floor, wake, wake.asking)


def _over(run: "Run", event: Event, at: int) -> None:
    """The answer has come; or is given up, and what is known of its cost is told."""
    said, floor = event.payload, _floor(run, event)
    name = wake_of(said)
    wake = _wake(floor, name)
    gone = floor.unpaid.pop(name, None) if floor is not None else None
    if floor is not None and wake is not None:
        stirred(floor, wake, at)
    if not is_model(said):
        return
    if _not_made(said):
        total = _total(run, event)
        total.calls = max(0, total.calls - 1)
    result = said.get("result")
    used = _used(result if isinstance(result, dict) else {})
    _add(_total(run, event), used)
    payer, tokens = wake or gone, used.input_tokens + used.output_tokens
    if floor is not None and payer is not None:
        _charge(floor, payer.agent, Spent(tokens=tokens, money=used.cost))
    if wake is not None:
        wake.asking = False
        wake.spent.tokens += tokens
        wake.spent.money += used.cost


def _not_made(said: dict[str, Any]) -> bool:
    """Its beginning was on record before the purse was looked into; nobody was asked then."""
    error = said.get("error")
    return isinstance(error, dict) and error.get("code") in NOT_MADE


def _used(result: dict[str, Any]) -> Used:
    """What one answer says of its cost."""
    usage, price = result.get("usage"), result.get("price")
    usage = usage if isinstance(usage, dict) else {}
    return Used(
        input_tokens=number(usage.get("inputTokens")),
        output_tokens=number(usage.get("outputTokens")),
        cost=_cost(result),
        currency=str(price.get("currency", ""))[:16] if isinstance(price, dict) else "",
    )


def _add(total: Used, more: Used) -> None:
    total.input_tokens += more.input_tokens
    total.output_tokens += more.output_tokens
    total.cost += more.cost
    total.currency = more.currency or total.currency


def _heard(run: "Run", event: Event, at: int) -> None:
    floor = _floor(run, event)
    wake = _wake(floor, str(event.payload.get("wakeId", "")))
    if floor is not None and wake is not None:
        stirred(floor, wake, at, number(event.payload.get("silentMs")))


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {
    STARTED: _begun,
    FINISHED: _over,
    ABANDONED: _over,
    RETRIED: _again,
    HEARD: _heard,
}
