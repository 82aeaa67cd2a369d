"""What a supervisor knew in a turn, read back from the log."""

import asyncio

from msgspec import UNSET

from moot.core.errors import NotFound
from moot.core.events import Event
from moot.core.state.run import Run, apply
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.graph import Flow
from moot.core.workflows.turn_inputs import Turn, TurnInputs, inputs, turn_of
from moot.engine.host import Host


async def turn_inputs(host: Host, tenant: str, run_id: str, iteration: int) -> TurnInputs:
    """What the turn was decided from, or is being decided from. Raises NotFound when the run has
    not come to it. Of a turn that a person gave back, what it knew when it was taken again."""
    head = await host.view(tenant, run_id)
    log = await host.runs.log(head)
    turn = await asyncio.to_thread(_found, head.flow, log, iteration)
    if turn is None:
        raise NotFound("The run has no such turn.", runId=run_id, iteration=iteration)
    return inputs(turn, log[turn.first : turn.until])


def _found(flow: Flow, log: list[Event], iteration: int) -> Turn | None:
    """The log is folded up to the turn, as it was when the turn began."""
    run, found = Run(log[0].run_id), None
    for event in log:
        apply(run, event)
        if event.type == "node.started" and _decides(flow, event):
            turn = turn_of(run, str(event.node_id))
            if turn.iteration > iteration:
                break
            found = turn if turn.iteration == iteration else found
    return found


def _decides(flow: Flow, event: Event) -> bool:
    node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
    return node is not None and node.type.type_id == SUPERVISOR
