"""Read the ancestors of a forked run, and the effects in its history."""

from collections import OrderedDict

import msgspec
from msgspec import Struct

from moot.core import events
from moot.core.errors import Unprocessable
from moot.core.payloads.memory import EffectFinished
from moot.core.state.run import Run, apply
from moot.store.protocol import LogStore

PAGE = 2000
#: the longest chain of forks
MOST_GENERATIONS = 100
#: forks whose history is cached
MOST_KEPT = 128

EFFECT_MARK = b'"type":"moot.effect.'


class PastEffect(Struct, frozen=True):
    """An effect in the history of a fork: its last event, and whether it finished."""

    sequence: int
    finished: bool


async def list_ancestors(store: LogStore, tenant: str, run_id: str) -> list[str]:
    """Return the runs this one was forked from, nearest first. Raise Unprocessable on too many."""
    ancestors: list[str] = []
    while (source := await find_source_run(store, tenant, run_id)) is not None:
        if len(ancestors) >= MOST_GENERATIONS:
            raise Unprocessable(
                f"This is the fork of a fork, {MOST_GENERATIONS} times over; fork an earlier one.",
                runId=run_id,
            )
        ancestors.append(source)
        run_id = source
    return ancestors


async def find_source_run(store: LogStore, tenant: str, run_id: str) -> str | None:
    rows = await store.read(tenant, run_id, -1, 1)
    if not rows:
        return None  # the source is on another host
    run = Run(run_id, tenant=tenant)
    apply(run, events.decode(rows[0]))
    return None if run.forked_from is None else run.forked_from.source_run_id


async def read_inherited_artifact(
    store: LogStore, tenant: str, run_id: str, artifact_id: str
) -> bytes | None:
    """Return an artifact that the fork's history mentions, from the run that stored it."""
    if not await find_source_run(store, tenant, run_id) or not await _log_names_artifact(
        store, tenant, run_id, artifact_id
    ):
        return None
    for source in await list_ancestors(store, tenant, run_id):
        if body := await store.artifact(tenant, source, artifact_id):
            return body
    return None


async def _log_names_artifact(store: LogStore, tenant: str, run_id: str, artifact_id: str) -> bool:
    """Return whether the run's own log mentions the artifact."""
    name = b'"artifactId":' + msgspec.json.encode(artifact_id)
    after = -1
    while rows := await store.read(tenant, run_id, after, PAGE):
        if any(name in row for row in rows):
            return True
        after += len(rows)
    return False


class EffectHistories:
    """The effects in the histories of forks, each history read once."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._cached: OrderedDict[tuple[str, str], tuple[list[str], dict[str, PastEffect]]] = (
            OrderedDict()
        )

    async def of(
        self, tenant: str, run_id: str, inherited: int
    ) -> tuple[list[str], dict[str, PastEffect]]:
        """Return the run's ancestors, and invocation id -> effect in its history."""
        key = (tenant, run_id)
        if key not in self._cached:
            names = await list_ancestors(self._store, tenant, run_id)
            self._cached[key] = names, await self._read(tenant, run_id, inherited)
            if len(self._cached) > MOST_KEPT:
                self._cached.popitem(last=False)
        self._cached.move_to_end(key)
        return self._cached[key]

    async def _read(self, tenant: str, run_id: str, until: int) -> dict[str, PastEffect]:
        effects: dict[str, PastEffect] = {}
        after = -1
        while after + 1 < until:
            left = min(PAGE, until - after - 1)
            rows = await self._store.read(tenant, run_id, after, left)
            if not rows:
                break
            for row in rows:
                after += 1
                if EFFECT_MARK in row:
                    event = events.decode(row)
                    name = str(getattr(event.payload, "invocation_id", ""))
                    finished = isinstance(event.payload, EffectFinished)
                    effects[name] = PastEffect(event.sequence, finished)
        return effects
