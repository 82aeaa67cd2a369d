"""Fold the usage of models: calls, tokens and money of runs and council members.

A call counts when it begins. Tokens and money count as soon as they are known, even when the
caller no longer waits.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from moot.core.errors.models import DailyBudgetUsedUp, MemberBudgetUsedUp
from moot.core.events import Event
from moot.core.payloads.agents import ModelRetried
from moot.core.payloads.base import Payload
from moot.core.payloads.councils import InvitationAnswered, MemberHeard
from moot.core.payloads.memory import EffectAbandoned, EffectFinished, EffectStarted
from moot.core.state.floor import (
    MOST_HELD,
    Floor,
    FloorSpending,
    Invitation,
    UnpaidCall,
    extend_silence,
    positive_int,
    remove_floor_member,
)
from moot.core.state.floor_answers import end_invitation

if TYPE_CHECKING:
    from moot.core.state.run import Run


#: field of an effect that names the charged standing agent
CHARGED_TO = "chargedTo"
#: prefix of the provider key of model calls
MODEL_PREFIX = "model:"

#: error codes of calls that began and were then not made
NOT_MADE = frozenset({DailyBudgetUsedUp.code, MemberBudgetUsedUp.code})

#: the ordinal of a call encodes its decision and its invitation
CALLS_PER_INVITATION, CALLS_PER_DECISION = 100, 10_000


class ModelUsage(Struct, omit_defaults=True):
    """The usage of all models in one run."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    #: of the cost, as the prices have it
    currency: str = ""


def is_model_call(payload: EffectStarted | EffectFinished | EffectAbandoned) -> bool:
    return payload.provider_key.startswith(MODEL_PREFIX)


def invitation_of_call(payload: EffectStarted | EffectFinished | EffectAbandoned) -> str:
    """Return the id of the invitation in which a call was made, from its ordinal."""
    decision, call = divmod(payload.ordinal, CALLS_PER_DECISION)
    return f"{decision}.{call // CALLS_PER_INVITATION}"


def apply_participation_answered(floor: Floor, payload: InvitationAnswered) -> None:
    """Charge the part of the reported usage that was not charged before, and end the invitation."""
    invitation_id = payload.wake_id
    invitation = floor.wakes.get(invitation_id)
    spent = invitation.spent if invitation is not None else FloorSpending()
    usage = payload.usage
    if usage is not None:
        tokens = positive_int(usage.get("inputTokens")) + positive_int(usage.get("outputTokens"))
        money = _parse_cost(usage) - spent.money
        more = FloorSpending(
            calls=max(0, positive_int(usage.get("calls")) - spent.calls),
            tokens=max(0, tokens - spent.tokens),
            money=money if money > 1e-9 else 0.0,
        )
        _charge(floor, payload.agent_id, more)
    elif invitation is not None:
        _note_unpaid_call(floor, invitation_id, invitation)
    end_invitation(floor, payload)


def apply_member_left(floor: Floor, name: str) -> None:
    """Remove a member; its running calls are charged when their cost is known."""
    for invitation_id, invitation in floor.wakes.items():
        if invitation.agent == name:
            _note_unpaid_call(floor, invitation_id, invitation)
    remove_floor_member(floor, name)


def _note_unpaid_call(floor: Floor, invitation_id: str, invitation: Invitation) -> None:
    """Keep a running call of an ended invitation, so that its cost can be charged later."""
    if invitation.asking and len(floor.unpaid) < MOST_HELD:
        floor.unpaid[invitation_id] = UnpaidCall(invitation.agent, invitation.seq)


def _charge(floor: Floor, agent: str, more: FloorSpending) -> None:
    for spent in (floor.spent, floor.by_agent.setdefault(agent, FloorSpending())):
        spent.calls += more.calls
        spent.tokens += more.tokens
        spent.money += more.money


def _parse_cost(payload: Mapping[str, object]) -> float:
    cost = payload.get("cost")
    return float(cost) if isinstance(cost, int | float) and 0 < cost < 1e12 else 0.0


def _floor_of(run: "Run", event: Event) -> Floor | None:
    conversation = run.conversations.get(event.node_id) if event.node_id is not UNSET else None
    return conversation.floor if conversation is not None else None


def _find_invitation(floor: Floor | None, invitation_id: str) -> Invitation | None:
    return floor.wakes.get(invitation_id) if floor is not None else None


def _run_usage(run: "Run", event: Event) -> ModelUsage:
    """Return the run's usage; copied events of a fork count for its source only."""
    if event.sequence < run.inherited:
        return ModelUsage()
    run.used = run.used or ModelUsage()
    return run.used


def _apply_effect_started(run: "Run", payload: EffectStarted, event: Event, at: int) -> None:
    floor = _floor_of(run, event)
    invitation = _find_invitation(floor, invitation_of_call(payload))
    if floor is not None and invitation is not None:
        extend_silence(floor, invitation, at)
    if is_model_call(payload):
        _run_usage(run, event).calls += 1
        _count_call(floor, invitation, asking=True)


def _count_call(floor: Floor | None, invitation: Invitation | None, asking: bool) -> None:
    if floor is not None and invitation is not None:
        invitation.spent.calls += 1
        invitation.asking = asking
        _charge(floor, invitation.agent, FloorSpending(calls=1))


def _apply_model_retried(run: "Run", payload: ModelRetried, event: Event, at: int) -> None:
    """Count another attempt of the same call."""
    floor = _floor_of(run, event)
    invitation = _find_invitation(floor, payload.invocation_id.rpartition(":")[2])
    _run_usage(run, event).calls += 1
    if floor is not None and invitation is not None:
        extend_silence(floor, invitation, at)
        _count_call(floor, invitation, invitation.asking)


def _apply_effect_ended(
    run: "Run", payload: EffectFinished | EffectAbandoned, event: Event, at: int
) -> None:
    """Charge a call that has finished, or that was abandoned with a known cost."""
    floor = _floor_of(run, event)
    invitation_key = invitation_of_call(payload)
    invitation = _find_invitation(floor, invitation_key)
    unpaid = floor.unpaid.pop(invitation_key, None) if floor is not None else None
    if floor is not None and invitation is not None:
        extend_silence(floor, invitation, at)
    if not is_model_call(payload):
        return
    if _is_not_made(payload):
        total = _run_usage(run, event)
        total.calls = max(0, total.calls - 1)
    result = payload.result
    used = _usage_from_result(result if isinstance(result, dict) else {})
    _add_usage(_run_usage(run, event), used)
    payer, tokens = invitation or unpaid, used.input_tokens + used.output_tokens
    if floor is not None and payer is not None:
        _charge(floor, payer.agent, FloorSpending(tokens=tokens, money=used.cost))
    if invitation is not None:
        invitation.asking = False
        invitation.spent.tokens += tokens
        invitation.spent.money += used.cost


def _is_not_made(payload: EffectFinished | EffectAbandoned) -> bool:
    """Return whether the budget refused the call after its start was recorded."""
    error = payload.error if isinstance(payload, EffectFinished) else None
    return error is not None and error.code in NOT_MADE


def _usage_from_result(result: dict[str, Any]) -> ModelUsage:
    """Return the usage that one answer reports."""
    usage, price = result.get("usage"), result.get("price")
    usage = usage if isinstance(usage, dict) else {}
    return ModelUsage(
        input_tokens=positive_int(usage.get("inputTokens")),
        output_tokens=positive_int(usage.get("outputTokens")),
        cost=_parse_cost(result),
        currency=str(price.get("currency", ""))[:16] if isinstance(price, dict) else "",
    )


def _add_usage(total: ModelUsage, more: ModelUsage) -> None:
    total.input_tokens += more.input_tokens
    total.output_tokens += more.output_tokens
    total.cost += more.cost
    total.currency = more.currency or total.currency


def _apply_participation_heard(run: "Run", payload: MemberHeard, event: Event, at: int) -> None:
    floor = _floor_of(run, event)
    invitation = _find_invitation(floor, payload.wake_id)
    if floor is not None and invitation is not None:
        extend_silence(floor, invitation, at, positive_int(payload.silent_ms))


HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    EffectStarted: _apply_effect_started,
    EffectFinished: _apply_effect_ended,
    EffectAbandoned: _apply_effect_ended,
    ModelRetried: _apply_model_retried,
    MemberHeard: _apply_participation_heard,
}
