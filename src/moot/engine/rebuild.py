"""Derived rows made anew from the log: runs, work and the places of effects.

Cached folds are dropped, they come back as runs are used. Sealed values are primary: untouched.
"""

from collections.abc import AsyncIterator

from moot.core import events
from moot.core.commands import Advance, decide
from moot.core.pending import pending
from moot.core.state import remote_children
from moot.core.state.run import Run, apply
from moot.engine.derived_rows import Gathered, due_of, inbox_rows, row_of
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Append, EffectRow, Store

PAGE = 2000


async def rebuild(store: Store, flows: Flows) -> int:
    """Fold every log and replace what was derived from it. Returns how many runs there are.

    No host may use the store meanwhile: rows of a run that moves on would be of the past.
    """
    logs = await store.runs()
    await store.rebuild(_rows(store, flows, logs))
    return len(logs)


async def _rows(
    store: Store, flows: Flows, logs: list[tuple[str, str]]
) -> AsyncIterator[tuple[Append, list[EffectRow]]]:
    for tenant, run_id in logs:
        run, gathered = await _folded(store, tenant, run_id)
        yield await _derived(flows, run, gathered), gathered.effects


async def _folded(store: Store, tenant: str, run_id: str) -> tuple[Run, Gathered]:
    """The state after the whole log, and the places that speak of effects and turns, in order."""
    run, gathered = Run(run_id, tenant=tenant), Gathered()
    while rows := await store.read(tenant, run_id, run.next_sequence - 1, PAGE):
        for row in rows:
            event = events.decode(row)
            apply(run, event)
            gathered.take(run, event)
    return run, gathered


async def _derived(flows: Flows, run: Run, gathered: Gathered) -> Append:
    return Append(
        tenant=run.tenant,
        run_id=run.run_id,
        first=run.next_sequence,
        events=[],
        row=row_of(run),
        work=await _due(flows, run),
        inbox=inbox_rows(run),
        messages=gathered.messages,
        texts=gathered.texts,
    )


async def _due(flows: Flows, run: Run) -> int | None:
    """When the host must look at the run. Only a living one needs its workflow to tell."""
    if run.terminal:
        return (
            0 if remote_children.owed(run) else None
        )  # to stop twice what runs elsewhere does no harm
    flow = await flows.by_digest(run.tenant, run.definition)
    if decide(run, flow, Advance(run.updated_at)):
        return 0  # its last commit was full, and the rest of the step never came
    return due_of(pending(run, flow))
