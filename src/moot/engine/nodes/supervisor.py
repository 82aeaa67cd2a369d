"""core.orchestrator.supervisor: decides, turn by turn, who works next, what a person is asked,
and when it is enough.

Here it follows a plan: a list of decisions, or expressions that pick one by the state of the run.
"""

from typing import Any

from moot.core.errors import BadRequest
from moot.core.interrupts.escalations import ratified
from moot.core.workflows import expressions
from moot.core.workflows.node_types import Call, Decided, Failed, Kind, NodeError, NodeType, Outcome
from moot.core.workflows.supervisor_orders import order_of

DONE = {"kind": "terminate", "reason": "goal-reached"}
PLANS = ("plan", "mockDispatchPlan", "mockDecisions")

#: what a supervisor without a plan does on a host under trial
TRIAL = [{"kind": "next-worker", "nextWorkerIds": ["conformance-noop"]}, DONE]


def _decide(call: Call) -> Outcome:
    agent = agent_of(call)
    if call.answer:
        return ratified_by(call)
    assert call.turn is not None
    if "mockPendingDecision" in call.config and not call.turn.own:
        return Decided(
            agent_id=agent,
            decision=call.config["mockPendingDecision"],
            confidence=call.config.get("mockConfidence"),
        )
    return Decided(agent_id=agent, decision=_next(call))


def ratified_by(call: Call) -> Outcome:
    """A decision that was held back until a person had looked at it."""
    answer = call.answer[0]
    decision = ratified(answer, None)
    if decision is None:
        error = NodeError(
            code="decision_rejected", message="A person rejected the decision.", retryable=False
        )
        return Failed(error)
    agent = answer.get("agentId") or agent_of(call)
    return Decided(agent_id=agent, decision=decision, ratified=True)


def agent_of(call: Call) -> str:
    return str(call.config.get("agentId") or call.agent_id or f"supervisor-{call.node_id}")


def _next(call: Call) -> Any:
    assert call.turn is not None
    turn = call.turn
    for rule in call.config.get("rules", ()):
        names = {
            "variables": call.variables,
            "inputs": call.run_inputs,
            "upstream": call.upstream,
            "turn": turn.iteration,
            "workers": turn.workers,
            "answer": turn.answer[0] if turn.answer else None,
        }
        if expressions.evaluate(rule["when"], names) is True:
            return rule["decision"]
    plan = plan_of(call.config)
    if plan is None:
        plan = [] if call.config.get("rules") else TRIAL
    return plan[turn.own] if turn.own < len(plan) else DONE


def plan_of(config: dict[str, Any]) -> list[Any] | None:
    for name in PLANS:
        if name in config:
            found: list[Any] = config[name]
            return found
    return None


def check(config: dict[str, Any]) -> str | None:
    plan = plan_of(config)
    if plan is None and "rules" not in config and "mockPendingDecision" not in config:
        return "a supervisor needs a plan: a list of decisions, or rules {when, decision}"
    return check_on_trial(config)


def check_on_trial(config: dict[str, Any]) -> str | None:
    plan = plan_of(config)
    if plan is not None and not isinstance(plan, list):
        return "plan must be a list of decisions"
    rules = config.get("rules", [])
    if not isinstance(rules, list) or not all(
        isinstance(rule, dict) and set(rule) == {"when", "decision"} for rule in rules
    ):
        return "rules must be a list of {when, decision}"
    cap = config.get("iterationCap", 1)
    if not isinstance(cap, int) or isinstance(cap, bool) or cap < 1:
        return "iterationCap must be a whole number from 1"
    return _mistake([*(plan or []), *(rule["decision"] for rule in rules)], rules)


def _mistake(decisions: list[Any], rules: list[dict[str, Any]]) -> str | None:
    try:
        for decision in decisions:
            order_of(decision)
        for rule in rules:
            expressions.check(str(rule["when"]))
    except BadRequest as refusal:
        return refusal.message
    except expressions.ExpressionError as error:
        return f"the rule cannot be read: {error}"
    return None


TYPE = NodeType(
    type_id="core.orchestrator.supervisor", kind=Kind.INSTANT, instant=_decide, check=check
)
ON_TRIAL = NodeType(
    type_id="core.orchestrator.supervisor",
    kind=Kind.INSTANT,
    instant=_decide,
    check=check_on_trial,
)
