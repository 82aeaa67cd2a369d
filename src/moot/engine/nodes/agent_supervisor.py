"""core.orchestrator.supervisor, decided by an agent: each turn is one call of its model."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct

from moot.agents.invocation.desk import Assignment, Invoke
from moot.core.errors import BadRequest
from moot.core.workflows import expressions
from moot.core.workflows.node_types import Decided, Failed, Kind, NodeType, Outcome
from moot.core.workflows.schema import NodeDef
from moot.core.workflows.supervisor_orders import order_of
from moot.core.workflows.turn_inputs import TurnInputs
from moot.engine.nodes import supervisor
from moot.engine.nodes.agent import invocation, invoked
from moot.engine.nodes.context import NodeContext

Text = Annotated[str, Meta(min_length=1, max_length=256)]


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    when: str
    decision: dict[str, Any]


class Config(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    #: NAME, host:NAME or the id of a manifest; left out, whom the node is pinned to
    agent: Text | None = None
    #: what is to be reached
    prompt: str = ""
    #: whom work can be handed to: workflows, and agents as host:NAME or by manifest
    workers: Annotated[list[Text], Meta(max_length=256)] = []
    #: what is decided without asking the agent, where it is so
    rules: list[Rule] = []
    iteration_cap: Annotated[int, Meta(ge=1)] | None = None


def check(config: dict[str, Any]) -> str | None:
    try:
        found = msgspec.convert(config, Config)
        for rule in found.rules:
            order_of(rule.decision)
            expressions.check(rule.when)
    except msgspec.ValidationError as error:
        return f"config does not fit: {error}"
    except BadRequest as refusal:
        return refusal.message
    except expressions.ExpressionError as error:
        return f"the rule cannot be read: {error}"
    return None


def _ruled(ctx: NodeContext, config: Config, told: TurnInputs) -> dict[str, Any] | None:
    names = {
        "variables": ctx.variables,
        "turn": told.iteration,
        "workers": told.workers,
        "answer": None if told.answer is UNSET else told.answer,
    }
    for rule in config.rules:
        if expressions.evaluate(rule.when, names) is True:
            return rule.decision
    return None


def type_with(invoke: Invoke) -> NodeType:
    async def decide(ctx: NodeContext) -> Outcome:
        config = msgspec.convert(ctx.config, Config)
        told = await ctx.turn_inputs()
        here = invocation(ctx, config.agent)
        decision = _ruled(ctx, config, told)
        if decision is not None:
            return Decided(agent_id=here["agent"], decision=decision)
        assignment = Assignment(
            **here,
            task="decide",
            turn=told.iteration,
            prompt=config.prompt,
            data={name: value for name, value in ctx.variables.items() if value is not None},
            turn_inputs=told,
            workers=config.workers,
        )
        done = await invoked(ctx, invoke, assignment)
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
        kind=Kind.ACTIVITY,
        activity=decide,
        check=check,
        retries=0,
    )


def by_agent(node: NodeDef, trial: bool) -> bool:
    """Whether an agent decides: it is named, or the node is pinned to it and there is no plan. On
    a host under trial a pin names somebody who follows a plan of the suite's."""
    if "agent" in node.config:
        return True
    planned = {*supervisor.PLANS, "rules", "mockPendingDecision"} & set(node.config)
    return not trial and not planned and isinstance(node.agent, dict)
