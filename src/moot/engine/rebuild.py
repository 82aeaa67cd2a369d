"""Rebuild the derived rows from the logs: runs, work and places of effects.

Snapshots are dropped and come back as runs are used. Sealed values are primary and stay.
"""

from collections.abc import AsyncIterator

from moot.core import events
from moot.core.commands import Advance, decide
from moot.core.pending import pending
from moot.core.state import remote_children
from moot.core.state.run import Run, apply
from moot.engine.derived_rows import DerivedRows, inbox_rows, next_due, run_row
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Append, EffectRow, Store

PAGE = 2000


async def rebuild_rows(store: Store, flows: WorkflowRegistry) -> int:
    """Fold every log and replace its derived rows. Return the number of runs.

    No host may use the store meanwhile, because rows of a run that advances would be outdated.
    """
    logs = await store.runs()
    await store.rebuild(_iter_rows(store, flows, logs))
    return len(logs)


async def _iter_rows(
    store: Store, flows: WorkflowRegistry, logs: list[tuple[str, str]]
) -> AsyncIterator[tuple[Append, list[EffectRow]]]:
    for tenant, run_id in logs:
        run, derived = await _fold_log(store, tenant, run_id)
        yield await _derived_append(flows, run, derived), derived.effects


async def _fold_log(store: Store, tenant: str, run_id: str) -> tuple[Run, DerivedRows]:
    """Return the state after the whole log, and the rows of its events in order."""
    run, derived = Run(run_id, tenant=tenant), DerivedRows()
    while rows := await store.read(tenant, run_id, run.next_sequence - 1, PAGE):
        for row in rows:
            event = events.decode(row)
            apply(run, event)
            derived.take(run, event)
    return run, derived


async def _derived_append(flows: WorkflowRegistry, run: Run, derived: DerivedRows) -> Append:
    return Append(
        tenant=run.tenant,
        run_id=run.run_id,
        first=run.next_sequence,
        events=[],
        row=run_row(run),
        work=await _due(flows, run),
        inbox=inbox_rows(run),
        messages=derived.messages,
        texts=derived.texts,
    )


async def _due(flows: WorkflowRegistry, run: Run) -> int | None:
    """Return the time to check the run. Only a living run needs its workflow for that."""
    if run.terminal:
        # stopping a remote run twice does no harm
        return 0 if remote_children.pending_remote_children(run) else None
    flow = await flows.by_digest(run.tenant, run.definition)
    if decide(run, flow, Advance(run.updated_at)):
        return 0  # its last commit was full, and the rest of the step was lost
    return next_due(pending(run, flow))
