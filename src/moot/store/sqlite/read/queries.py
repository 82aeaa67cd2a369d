"""Look-ups of logs, runs, definitions and keys. Each finds its rows by an index."""

from typing import Any

import apsw

from moot.store import cursor
from moot.store.protocol import (
    Definition,
    EffectRow,
    FoldSnapshot,
    InboxRow,
    Key,
    RunFilter,
    RunIndexRow,
    Tally,
    WorkRow,
)
from moot.store.sqlite.read.readers import ReadSide, first_column
from moot.store.sqlite.read.runs import decode_run, list_runs
from moot.store.sqlite.statements import load_statements, row_decoder

SQL = load_statements("queries")

_decode_definition = row_decoder(Definition)
_decode_effect = row_decoder(EffectRow)
_decode_inbox = row_decoder(InboxRow)
_decode_key = row_decoder(Key)


class LogQueries(ReadSide):
    """Reads of the log and of the rows that share its commits."""

    async def read(
        self, tenant: str, run_id: str, after: int = -1, limit: int = 1000
    ) -> list[bytes]:
        return await self._all(first_column, SQL["READ"], (run_id, tenant, after, limit))

    async def head(self, tenant: str, run_id: str) -> int | None:
        return await self._first(first_column, SQL["HEAD"], (run_id, tenant))

    async def snapshot(self, tenant: str, run_id: str, fold_version: int) -> FoldSnapshot | None:
        values = run_id, tenant, fold_version
        return await self._first(lambda row: FoldSnapshot(*row), SQL["SNAPSHOT"], values)

    async def sealed(self, tenant: str, run_id: str) -> dict[str, bytes]:
        return dict(await self._all(_pair, SQL["SEALED"], (tenant, run_id)))

    async def artifact(self, tenant: str, run_id: str, artifact_id: str) -> bytes | None:
        return await self._first(first_column, SQL["ARTIFACT"], (tenant, run_id, artifact_id))

    async def effect(self, tenant: str, run_id: str, invocation_id: str) -> EffectRow | None:
        return await self._first(_decode_effect, SQL["EFFECT"], (tenant, run_id, invocation_id))

    async def spent(self, tenant: str, day: int) -> tuple[int, int]:
        [spending] = await self._all(_pair, SQL["SPENT"], {"tenant": tenant, "day": day})
        return spending

    async def member_spending(
        self, tenant: str, member: str, first: int, last: int
    ) -> tuple[int, int]:
        [spending] = await self._all(_pair, SQL["SPENT_BY"], (tenant, member, first, last))
        return spending


class IndexQueries(ReadSide):
    """Reads of derived rows."""

    async def find_run(self, tenant: str, run_id: str) -> RunIndexRow | None:
        return await self._first(decode_run, SQL["FIND_RUN"], (run_id, tenant))

    async def list_runs(
        self, tenant: str, where: RunFilter, before: str | None, limit: int
    ) -> tuple[list[RunIndexRow], str | None]:
        position = cursor.decode_position(before)
        return await self._readers.run(list_runs, tenant, where, position, limit)

    async def active_run(self, tenant: str, scope_id: str) -> str | None:
        return await self._first(first_column, SQL["ACTIVE_RUN"], (tenant, scope_id))

    async def inbox(self, tenant: str, limit: int) -> tuple[list[InboxRow], int]:
        return await self._readers.run(_read_inbox, tenant, limit)

    async def tally(self, tenant: str, member: str, since: int, most: int) -> list[Tally]:
        values = {"tenant": tenant, "member": member, "since": since, "most": most}
        return await self._all(lambda row: Tally(*row), SQL["TALLY"], values)

    async def newest_runs(self, tenant: str, member: str, most: int) -> list[RunIndexRow]:
        values = {"tenant": tenant, "member": member, "since": 0, "most": most}
        return await self._all(lambda row: decode_run(row[2:]), SQL["NEWEST_RUNS"], values)

    async def asked_by(self, tenant: str, member: str, most: int) -> list[tuple[int, InboxRow]]:
        values = {"tenant": tenant, "member": member, "most": most}
        return await self._all(
            lambda row: (row[0], _decode_inbox(row[2:])), SQL["ASKED_BY"], values
        )

    async def work(self, until: int, limit: int) -> list[WorkRow]:
        return await self._all(lambda row: WorkRow(*row), SQL["WORK"], (until, limit))

    async def next_work(self) -> int | None:
        return await self._first(first_column, SQL["NEXT_WORK"])

    async def runs(self) -> list[tuple[str, str]]:
        return await self._all(_pair, SQL["RUNS"])


class RegistryQueries(ReadSide):
    """Reads of definitions and keys."""

    async def definition(self, tenant: str, workflow_id: str) -> Definition | None:
        return await self._first(_decode_definition, SQL["DEFINITION"], (tenant, workflow_id))

    async def definition_by_digest(self, tenant: str, digest: str) -> Definition | None:
        return await self._first(_decode_definition, SQL["DEFINITION_BY_DIGEST"], (tenant, digest))

    async def is_defined_elsewhere(self, tenant: str, workflow_id: str) -> bool:
        return bool(await self._all(first_column, SQL["DEFINED_ELSEWHERE"], (workflow_id, tenant)))

    async def definitions(self, tenant: str) -> list[Definition]:
        return await self._all(_decode_definition, SQL["DEFINITIONS"], (tenant,))

    async def key_by_hash(self, hash_: str) -> Key | None:
        return await self._first(_decode_key, SQL["KEY_BY_HASH"], (hash_,))

    async def keys(self, tenant: str | None) -> list[Key]:
        return await self._all(_decode_key, SQL["KEYS"], {"tenant": tenant})


def _pair(row: Any) -> tuple[Any, Any]:
    return row[0], row[1]


def _read_inbox(db: apsw.Connection, tenant: str, limit: int) -> tuple[list[InboxRow], int]:
    with db:  # rows and revision from one moment
        rows = [_decode_inbox(row) for row in db.execute(SQL["INBOX"], (tenant, limit))]
        revision = db.execute(SQL["INBOX_REVISION"], (tenant,)).get
    return rows, revision or 0
