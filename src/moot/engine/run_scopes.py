"""Scopes that one run at a time may hold, known before that run is on disk."""

from moot.core.errors import RunAlreadyActive
from moot.store.protocol import Store


class Scopes:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[tuple[str, str], str] = {}

    async def refuse_second(self, tenant: str, scope_id: str) -> None:
        stored = await self._store.active_run(tenant, scope_id)
        active = self._held.get((tenant, scope_id)) or stored
        if active is not None:
            raise RunAlreadyActive(active)

    def hold(self, tenant: str, scope_id: str | None, run_id: str) -> None:
        if scope_id:
            self._held[tenant, scope_id] = run_id

    def release(self, tenant: str, scope_id: str | None, run_id: str) -> None:
        """The run holds its scope no longer: it has ended, or never began."""
        if scope_id and self._held.get((tenant, scope_id)) == run_id:
            del self._held[tenant, scope_id]
