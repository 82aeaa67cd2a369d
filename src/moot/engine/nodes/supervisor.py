"""The node type ``core.orchestrator.supervisor``, led by a plan or by an agent.

It decides each turn: which worker is next, a question to a person, or the end. A plan is a list of
decisions, or rules that pick one by the state of the run. An agent is asked once in each turn,
unless a rule decides first.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct
from msgspec.structs import replace

from moot.agents.invocation.context import Invoke
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
from moot.core.workflows.schema import NodeDef
from moot.core.workflows.supervisor_decisions import parse_decision
from moot.engine.nodes.agent import invoke_agent, node_assignment
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import is_whole

DONE = {"kind": "terminate", "reason": "goal-reached"}
PLANS = ("plan", "mockDispatchPlan", "mockDecisions")
#: config keys that lead a supervisor without an agent
PLAN_KEYS = {*PLANS, "rules", "mockPendingDecision"}

#: The plan of a supervisor without one, as the test suite expects it.
DEFAULT_PLAN = [{"kind": "next-worker", "nextWorkerIds": ["conformance-noop"]}, DONE]

Text = Annotated[str, Meta(min_length=1, max_length=256)]


class SupervisorRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision that is taken while its condition holds."""

    when: str
    decision: dict[str, object]


class AgentSupervisorConfig(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    #: NAME, host:NAME or the id of a manifest; left out, the agent that the node is pinned to
    agent: Text | None = None
    #: the goal
    prompt: str = ""
    #: possible workers: workflows, and agents as host:NAME or by manifest
    workers: Annotated[list[Text], Meta(max_length=256)] = []
    #: decisions that are taken without asking the agent
    rules: list[SupervisorRule] = []
    iteration_cap: Annotated[int, Meta(ge=1)] | None = None


def _decision_by_rule(
    rules: Iterable[SupervisorRule], names: dict[str, object]
) -> dict[str, object] | None:
    for rule in rules:
        if expressions.evaluate_expression(rule.when, names) is True:
            return rule.decision
    return None


def _decision_problem(rules: list[SupervisorRule], decisions: Iterable[object]) -> str | None:
    try:
        for decision in decisions:
            parse_decision(decision)
        for rule in rules:
            expressions.check_expression(rule.when)
    except BadRequest as refusal:
        return refusal.message
    except expressions.ExpressionError as error:
        return f"the rule cannot be read: {error}"
    return None


# -- led by a plan -------------------------------------------------------------------------------


def _decide_by_plan(call: NodeCall) -> Outcome:
    agent = supervisor_agent_id(call)
    if call.answer:
        return ratified_outcome(call)
    assert call.turn is not None
    if "mockPendingDecision" in call.config and not call.turn.own:
        decision, confidence = call.config["mockPendingDecision"], call.config.get("mockConfidence")
        return Decided(agent_id=agent, decision=decision, confidence=confidence)
    return Decided(agent_id=agent, decision=_next_decision(call))


def ratified_outcome(call: NodeCall) -> Outcome:
    """Return the outcome of a decision that waited for a person."""
    answer = call.answer[0]
    decision = parse_ratification(answer, None)
    if decision is None:
        message = "A person rejected the decision."
        return Failed(NodeError(code="decision_rejected", message=message, retryable=False))
    agent = answer.get("agentId") or supervisor_agent_id(call)
    return Decided(agent_id=agent, decision=decision, ratified=True)


def supervisor_agent_id(call: NodeCall) -> str:
    return str(call.config.get("agentId") or call.agent_id or f"supervisor-{call.node_id}")


def _next_decision(call: NodeCall) -> object:
    turn = call.turn
    assert turn is not None
    names: dict[str, object] = {
        "variables": call.variables,
        "inputs": call.run_inputs,
        "upstream": call.upstream,
        "turn": turn.iteration,
        "workers": turn.workers,
        "answer": turn.answer[0] if turn.answer else None,
    }
    rules = msgspec.convert(call.config.get("rules", []), list[SupervisorRule])
    if (decision := _decision_by_rule(rules, names)) is not None:
        return decision
    plan = plan_of(call.config)
    if plan is None:
        plan = [] if rules else DEFAULT_PLAN
    return plan[turn.own] if turn.own < len(plan) else DONE


def plan_of(config: Mapping[str, object]) -> list[Any] | None:
    """Return the plan, or None. Raise ValidationError when it is not a list."""
    key = next((name for name in PLANS if name in config), None)
    return None if key is None else msgspec.convert(config[key], list[Any])


def _check_plan(config: Mapping[str, object]) -> str | None:
    if PLAN_KEYS.isdisjoint(config):
        return "a supervisor needs a plan: a list of decisions, or rules {when, decision}"
    return check_decisions(config)


def check_decisions(config: Mapping[str, object]) -> str | None:
    try:
        plan = plan_of(config)
    except msgspec.ValidationError:
        return "plan must be a list of decisions"
    try:
        rules = msgspec.convert(config.get("rules", []), list[SupervisorRule])
    except msgspec.ValidationError:
        return "rules must be a list of {when, decision}"
    if not is_whole(config.get("iterationCap", 1), 1):
        return "iterationCap must be a whole number from 1"
    return _decision_problem(rules, [*(plan or []), *(rule.decision for rule in rules)])


TYPE = NodeType(
    type_id="core.orchestrator.supervisor",
    kind=NodeKind.INSTANT,
    instant=_decide_by_plan,
    check=_check_plan,
)


# -- led by an agent -----------------------------------------------------------------------------


def _check_agent(config: Mapping[str, object]) -> str | None:
    try:
        parsed = msgspec.convert(config, AgentSupervisorConfig)
    except msgspec.ValidationError as error:
        return f"config does not fit: {error}"
    return _decision_problem(parsed.rules, [rule.decision for rule in parsed.rules])


def _agent_type(invoke: Invoke) -> NodeType:
    async def decide(ctx: NodeContext) -> Outcome:
        config = msgspec.convert(ctx.config, AgentSupervisorConfig)
        turn_inputs = await ctx.turn_inputs()
        names: dict[str, object] = {
            "variables": ctx.variables,
            "turn": turn_inputs.iteration,
            "workers": turn_inputs.workers,
            "answer": None if turn_inputs.answer is UNSET else turn_inputs.answer,
        }
        assignment = replace(
            node_assignment(ctx, config.agent, "decide", turn_inputs.iteration),
            prompt=config.prompt,
            data={name: value for name, value in ctx.variables.items() if value is not None},
            turn_inputs=turn_inputs,
            workers=config.workers,
        )
        if (decision := _decision_by_rule(config.rules, names)) is not None:
            return Decided(agent_id=assignment.agent, decision=decision)
        done = await invoke_agent(ctx, invoke, assignment)
        if isinstance(done, Failed):
            return done
        return Decided(
            agent_id=assignment.agent,
            decision=done.answer,
            confidence=done.confidence,
            threshold=done.threshold,
        )

    return replace(
        TYPE, kind=NodeKind.ACTIVITY, instant=None, activity=decide, check=_check_agent, retries=0
    )


def supervisor_type(planned: NodeType, invoke: Invoke, asks_pinned: bool = True) -> NodeType:
    """Return a type that follows its plan, unless an agent decides.

    A node's config may name the agent. With ``asks_pinned``, the agent that a node without a plan
    is pinned to decides, too.
    """
    agent_type = _agent_type(invoke)

    def is_decided_by_agent(node: NodeDef) -> bool:
        if "agent" in node.config:
            return True
        has_plan = not PLAN_KEYS.isdisjoint(node.config)
        return asks_pinned and not has_plan and isinstance(node.agent, dict)

    return replace(planned, instead=lambda node: agent_type if is_decided_by_agent(node) else None)
