"""The node type ``core.orchestrator.supervisor`` with an agent that decides.

Each turn is one invocation of the agent, unless a rule decides first.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct
from msgspec.structs import replace

from moot.agents.invocation.context import Assignment, Invoke
from moot.core.errors import BadRequest
from moot.core.workflows import expressions
from moot.core.workflows.node_types import Decided, Failed, NodeKind, NodeType, Outcome
from moot.core.workflows.schema import NodeDef
from moot.core.workflows.supervisor_decisions import parse_decision
from moot.core.workflows.turn_inputs import TurnInputs
from moot.engine.nodes import supervisor
from moot.engine.nodes.agent import invocation_fields, invoke_agent
from moot.engine.nodes.context import NodeContext

Text = Annotated[str, Meta(min_length=1, max_length=256)]


class SupervisorRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision that is taken without the agent while its condition holds."""

    when: str
    decision: dict[str, Any]


class AgentSupervisorConfig(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The config of a supervisor with an agent."""

    #: NAME, host:NAME or the id of a manifest; left out, the agent that the node is pinned to
    agent: Text | None = None
    #: the goal
    prompt: str = ""
    #: possible workers: workflows, and agents as host:NAME or by manifest
    workers: Annotated[list[Text], Meta(max_length=256)] = []
    #: decisions that are taken without asking the agent
    rules: list[SupervisorRule] = []
    iteration_cap: Annotated[int, Meta(ge=1)] | None = None


def check_config(config: dict[str, Any]) -> str | None:
    try:
        parsed = msgspec.convert(config, AgentSupervisorConfig)
        for rule in parsed.rules:
            parse_decision(rule.decision)
            expressions.check_expression(rule.when)
    except msgspec.ValidationError as error:
        return f"config does not fit: {error}"
    except BadRequest as refusal:
        return refusal.message
    except expressions.ExpressionError as error:
        return f"the rule cannot be read: {error}"
    return None


def _decide_by_rule(
    ctx: NodeContext, config: AgentSupervisorConfig, turn_inputs: TurnInputs
) -> dict[str, Any] | None:
    names = {
        "variables": ctx.variables,
        "turn": turn_inputs.iteration,
        "workers": turn_inputs.workers,
        "answer": None if turn_inputs.answer is UNSET else turn_inputs.answer,
    }
    for rule in config.rules:
        if expressions.evaluate_expression(rule.when, names) is True:
            return rule.decision
    return None


def build_type(invoke: Invoke) -> NodeType:
    async def decide(ctx: NodeContext) -> Outcome:
        config = msgspec.convert(ctx.config, AgentSupervisorConfig)
        turn_inputs = await ctx.turn_inputs()
        fields = invocation_fields(ctx, config.agent)
        decision = _decide_by_rule(ctx, config, turn_inputs)
        if decision is not None:
            return Decided(agent_id=fields["agent"], decision=decision)
        assignment = Assignment(
            **fields,
            task="decide",
            turn=turn_inputs.iteration,
            prompt=config.prompt,
            data={name: value for name, value in ctx.variables.items() if value is not None},
            turn_inputs=turn_inputs,
            workers=config.workers,
        )
        done = await invoke_agent(ctx, invoke, assignment)
        if isinstance(done, Failed):
            return done
        return Decided(
            agent_id=assignment.agent,
            decision=done.answer,
            confidence=done.confidence,
            threshold=done.threshold,
        )

    return NodeType(
        type_id=supervisor.TYPE.type_id,
        kind=NodeKind.ACTIVITY,
        activity=decide,
        check=check_config,
        retries=0,
    )


def supervisor_type(planned: NodeType, invoke: Invoke, asks_pinned: bool = True) -> NodeType:
    """Return a type that follows its plan, unless an agent decides.

    A node's config may name the agent. With ``asks_pinned``, the agent that a node without a plan
    is pinned to decides, too.
    """
    agent_type = build_type(invoke)

    def is_decided_by_agent(node: NodeDef) -> bool:
        if "agent" in node.config:
            return True
        plan_keys = {*supervisor.PLANS, "rules", "mockPendingDecision"} & set(node.config)
        return asks_pinned and not plan_keys and isinstance(node.agent, dict)

    return replace(planned, instead=lambda node: agent_type if is_decided_by_agent(node) else None)
