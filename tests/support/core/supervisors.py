"""Workflows of a supervisor and its dispatch node, and what their logs must keep to."""

from typing import Any

from msgspec import UNSET

from moot.core.children.handoff import TRANSITIONS
from moot.core.commands import CancelRun
from moot.core.events import Event
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.flow import Flow
from tests.support.core.simulator import Life, World, chain, compiled, definition, edge, node
from tests.support.event_payloads import payload_json

DONE = {"kind": "terminate", "reason": "goal-reached"}
CHAIN = "core.workflowChain.event"


def hand(*workers: str, **more: Any) -> dict[str, Any]:
    return {"kind": "next-worker", "nextWorkerIds": list(workers), **more}


def ask(prompt: str = "Which?") -> dict[str, Any]:
    return {"kind": "ask-user", "prompt": prompt}


def variable(name: str, *default: Any, **more: Any) -> dict[str, Any]:
    found = {"name": name, "type": "string", **more}
    return {**found, "defaultValue": default[0]} if default else found


def worker(name: str, *variables: dict[str, Any], type_id: str = "acme.work") -> Flow:
    """A worker whose end the test decides."""
    return compiled(chain(node("w", type_id), id=name, variables=list(variables)))


def fast(name: str, *variables: dict[str, Any]) -> Flow:
    return worker(name, *variables, type_id="core.noop")


def planned(
    *plan: Any,
    dispatch: dict[str, Any] | None = None,
    more: tuple[dict[str, Any], ...] = (),
    edges: tuple[dict[str, Any], ...] = (),
    supervisor: dict[str, Any] | None = None,
    **given: Any,
) -> Flow:
    """A supervisor with this plan, its dispatch node, and the way back."""
    config = {"plan": list(plan), **(supervisor or {})} if plan else supervisor or {}
    nodes = [node("sup", SUPERVISOR, config=config), node("dis", DISPATCH, config=dispatch or {})]
    loop = [edge("sup", "dis"), edge("dis", "sup")]
    return compiled(definition([*nodes, *more], [*loop, *edges], id="top", **given))


def world(*workers: Flow, **given: Any) -> World:
    return World({each.definition.id: each for each in workers}, **given)


def settle(world: World) -> None:
    """Every end is told until there is none untold."""
    while untold := world.untold():
        world.tell_parent(untold[0])


def end(world: World, child: Life, how: str = "completed") -> None:
    """The worker ends, and its parent learns of it."""
    if how == "completed":
        world.finish(child, "w")
    elif how == "failed":
        world.fail(child, "w", retryable=False)
    else:
        world.take(child, CancelRun(world.at))
    assert child.run.status == how
    world.tell_parent(child)


def kids(world: World, life: Life) -> list[Life]:
    return [world.lives[name] for name in life.run.children]


def phases(life: Life) -> list[str]:
    return [f"{payload_json(e)['phase']} {payload_json(e)['workerId']}" for e in life.told(CHAIN)]


def told(life: Life) -> list[str]:
    """The log as in the digest: what happened, on which worker, and ``<n`` where a cause is named
    that is not the event before."""
    lines = []
    for event in life.log:
        words = [event.type]
        if event.type == CHAIN:
            words = [payload_json(event)["phase"], payload_json(event)["workerId"]]
        elif event.type == "runOrchestrator.decided":
            words = ["decided", payload_json(event)["decision"]["kind"]]
        elif event.node_id is not UNSET:
            words.append(event.node_id)
        lines.append(" ".join(words))
    return lines


def cause(life: Life, event: Event) -> int | None:
    """The sequence of the cause."""
    for other in life.log:
        if other.event_id == event.causation_id:
            return other.sequence
    return None


def check_chains(life: Life) -> None:
    """Every chain can be walked back to its decision, phase by phase as the table has it."""
    by_id = {event.event_id: event for event in life.log}
    for event in life.told(CHAIN):
        here = event
        while here.type == CHAIN:
            before = by_id[here.causation_id]
            allowed = TRANSITIONS[payload_json(here)["phase"]]
            if allowed:
                assert payload_json(before)["phase"] in allowed
                assert payload_json(before)["workerId"] == payload_json(here)["workerId"]
            here = before
        assert here.type == "runOrchestrator.decided"
        assert (payload_json(event)["parentRunId"], event.node_id) == (life.run.run_id, "dis")
    followed = [
        event.causation_id
        for event in life.told(CHAIN)
        if TRANSITIONS[payload_json(event)["phase"]]
    ]
    assert len(followed) == len(set(followed)), "a phase was left twice"
