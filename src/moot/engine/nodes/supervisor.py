"""The node type ``core.orchestrator.supervisor`` with a plan.

It decides each turn: which worker is next, a question to a person, or the end. The plan is a list
of decisions, or rules that pick one by the state of the run.
"""

from typing import Any

from moot.core.errors import BadRequest
from moot.core.interrupts.escalations import parse_ratification
from moot.core.workflows import expressions
from moot.core.workflows.node_types import (
    Decided,
    Failed,
    NodeCall,
    NodeError,
    NodeKind,
    NodeType,
    Outcome,
)
from moot.core.workflows.supervisor_decisions import parse_decision

DONE = {"kind": "terminate", "reason": "goal-reached"}
PLANS = ("plan", "mockDispatchPlan", "mockDecisions")

#: The plan of a supervisor without one, as the test suite expects it.
DEFAULT_PLAN = [{"kind": "next-worker", "nextWorkerIds": ["conformance-noop"]}, DONE]


def _decide(call: NodeCall) -> Outcome:
    agent = supervisor_agent_id(call)
    if call.answer:
        return ratified_outcome(call)
    assert call.turn is not None
    if "mockPendingDecision" in call.config and not call.turn.own:
        return Decided(
            agent_id=agent,
            decision=call.config["mockPendingDecision"],
            confidence=call.config.get("mockConfidence"),
        )
    return Decided(agent_id=agent, decision=_next_decision(call))


def ratified_outcome(call: NodeCall) -> Outcome:
    """Return the outcome of a decision that waited for a person."""
    answer = call.answer[0]
    decision = parse_ratification(answer, None)
    if decision is None:
        error = NodeError(
            code="decision_rejected", message="A person rejected the decision.", retryable=False
        )
        return Failed(error)
    agent = answer.get("agentId") or supervisor_agent_id(call)
    return Decided(agent_id=agent, decision=decision, ratified=True)


def supervisor_agent_id(call: NodeCall) -> str:
    return str(call.config.get("agentId") or call.agent_id or f"supervisor-{call.node_id}")


def _next_decision(call: NodeCall) -> Any:
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
        if expressions.evaluate_expression(rule["when"], names) is True:
            return rule["decision"]
    plan = plan_of(call.config)
    if plan is None:
        plan = [] if call.config.get("rules") else DEFAULT_PLAN
    return plan[turn.own] if turn.own < len(plan) else DONE


def plan_of(config: dict[str, Any]) -> list[Any] | None:
    for name in PLANS:
        if name in config:
            plan: list[Any] = config[name]
            return plan
    return None


def check_config(config: dict[str, Any]) -> str | None:
    plan = plan_of(config)
    if plan is None and "rules" not in config and "mockPendingDecision" not in config:
        return "a supervisor needs a plan: a list of decisions, or rules {when, decision}"
    return check_decisions(config)


def check_decisions(config: dict[str, Any]) -> str | None:
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
    return _decision_problem([*(plan or []), *(rule["decision"] for rule in rules)], rules)


def _decision_problem(decisions: list[Any], rules: list[dict[str, Any]]) -> str | None:
    try:
        for decision in decisions:
            parse_decision(decision)
        for rule in rules:
            expressions.check_expression(str(rule["when"]))
    except BadRequest as refusal:
        return refusal.message
    except expressions.ExpressionError as error:
        return f"the rule cannot be read: {error}"
    return None


TYPE = NodeType(
    type_id="core.orchestrator.supervisor",
    kind=NodeKind.INSTANT,
    instant=_decide,
    check=check_config,
)
