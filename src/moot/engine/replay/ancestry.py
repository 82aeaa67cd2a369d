"""The runs that a run was forked from, and what of their deeds is part of its history."""

from collections import OrderedDict
from typing import Any

import msgspec
from msgspec import Struct

from moot.core import events
from moot.core.errors import Unprocessable
from moot.core.state.run import Run, apply
from moot.store.protocol import LogStore

PAGE = 2000
#: a fork of a fork of a fork …
MOST_GENERATIONS = 100
#: branches whose history is kept in mind
MOST_KEPT = 128

EFFECT = b'"type":"moot.effect.'


class Done(Struct, frozen=True):
    """An effect in the history of a branch: what is said of it last, and where."""

    sequence: int
    finished: bool


async def ancestors(store: LogStore, tenant: str, run_id: str) -> list[str]:
    """The runs this one comes from, the nearest first."""
    found: list[str] = []
    while (source := await source_of(store, tenant, run_id)) is not None:
        if len(found) >= MOST_GENERATIONS:
            raise Unprocessable(
                f"This is the fork of a fork, {MOST_GENERATIONS} times over; fork an earlier one.",
                runId=run_id,
            )
        found.append(source)
        run_id = source
    return found


async def source_of(store: LogStore, tenant: str, run_id: str) -> str | None:
    rows = await store.read(tenant, run_id, -1, 1)
    if not rows:
        return None  # it came from another host
    run = Run(run_id, tenant=tenant)
    apply(run, events.decode(rows[0]))
    found: Any = (run.forked_from or {}).get("sourceRunId")
    return found if isinstance(found, str) else None


async def inherited_artifact(
    store: LogStore, tenant: str, run_id: str, artifact_id: str
) -> bytes | None:
    """An artifact that the history of a branch tells of; it is where it was left."""
    if not await source_of(store, tenant, run_id) or not await _told(
        store, tenant, run_id, artifact_id
    ):
        return None
    for source in await ancestors(store, tenant, run_id):
        if body := await store.artifact(tenant, source, artifact_id):
            return body
    return None


async def _told(store: LogStore, tenant: str, run_id: str, artifact_id: str) -> bool:
    """Whether the run's own log has it."""
    name = b'"artifactId":' + msgspec.json.encode(artifact_id)
    after = -1
    while rows := await store.read(tenant, run_id, after, PAGE):
        if any(name in row for row in rows):
            return True
        after += len(rows)
    return False


class Histories:
    """The effects in the histories of branches, each read once."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, str], tuple[list[str], dict[str, Done]]] = OrderedDict()

    async def of(
        self, tenant: str, run_id: str, inherited: int
    ) -> tuple[list[str], dict[str, Done]]:
        """The run's ancestors, and invocation -> what its history says of it."""
        key = (tenant, run_id)
        if key not in self._kept:
            names = await ancestors(self._store, tenant, run_id)
            self._kept[key] = names, await self._read(tenant, run_id, inherited)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    async def _read(self, tenant: str, run_id: str, until: int) -> dict[str, Done]:
        found: dict[str, Done] = {}
        after = -1
        while after + 1 < until:
            left = min(PAGE, until - after - 1)
            rows = await self._store.read(tenant, run_id, after, left)
            if not rows:
                break
            for row in rows:
                after += 1
                if EFFECT in row:
                    event = events.decode(row)
                    name = str(event.payload.get("invocationId", ""))
                    finished = event.type == "moot.effect.finished"
                    found[name] = Done(event.sequence, finished)
        return found
