"""Read the inputs of a supervisor's turn back from the log."""

import asyncio

from msgspec import UNSET

from moot.core.errors import NotFound
from moot.core.events import Event
from moot.core.payloads.nodes import NodeStarted
from moot.core.state.run import Run, apply
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.flow import Flow
from moot.core.workflows.turn_inputs import (
    SupervisorTurn,
    TurnInputs,
    build_turn_inputs,
    supervisor_turn,
)
from moot.engine.host import Host


async def read_turn_inputs(host: Host, tenant: str, run_id: str, iteration: int) -> TurnInputs:
    """Return the inputs that the turn was or is being decided from.

    Raise NotFound when the run has not come to that turn. For a turn that a person sent back,
    return the inputs of its second decision.
    """
    head = await host.view(tenant, run_id)
    log = await host.runs.log(head)
    turn = await asyncio.to_thread(_find_turn, head.flow, log, iteration)
    if turn is None:
        raise NotFound("The run has no such turn.", runId=run_id, iteration=iteration)
    return build_turn_inputs(turn, log[turn.first : turn.until])


def _find_turn(flow: Flow, log: list[Event], iteration: int) -> SupervisorTurn | None:
    """Fold the log up to the turn and return the turn as it began."""
    run, match = Run(log[0].run_id), None
    for event in log:
        apply(run, event)
        if event.type == NodeStarted.event_type and _starts_supervisor(flow, event):
            turn = supervisor_turn(run, str(event.node_id))
            if turn.iteration > iteration:
                break
            match = turn if turn.iteration == iteration else match
    return match


def _starts_supervisor(flow: Flow, event: Event) -> bool:
    node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
    return node is not None and node.type.type_id == SUPERVISOR
