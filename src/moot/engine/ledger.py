"""The effect ledger: intent recorded, effect made, outcome recorded, then used.

The same logical effect is made at most once: within a process by sharing the one call under way,
across a crash by reading its recorded outcome.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from moot.core import events
from moot.core.errors import MootError
from moot.core.events import NewEvent
from moot.core.ids import logical_invocation_id
from moot.core.outcomes import raised
from moot.store.protocol import LogStore


class Reporter(Protocol):
    """Whoever can record facts of a run: a node's context."""

    @property
    def run_id(self) -> str: ...

    @property
    def tenant(self) -> str: ...

    @property
    def node_id(self) -> str: ...

    async def recorded(self, *events: NewEvent) -> None: ...


class EffectFailed(MootError):
    """The effect was made once and failed; the failure is what is remembered."""

    code, status = "effect_failed", 502


class Ledger:
    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._under_way: dict[tuple[str, str], asyncio.Future[Any]] = {}

    async def once(
        self,
        reporter: Reporter,
        ordinal: int,
        provider_key: str,
        call: Callable[[str], Awaitable[Any]],
    ) -> Any:
        """The recorded outcome if there is one; otherwise make the effect and record it first."""
        name = logical_invocation_id(
            reporter.tenant, reporter.run_id, reporter.node_id, ordinal, provider_key
        )
        key = (reporter.tenant, name)
        if key in self._under_way:
            return await asyncio.shield(self._under_way[key])
        outcome = asyncio.get_running_loop().create_future()
        self._under_way[key] = outcome
        try:
            found = await self._made_or_found(reporter, name, (ordinal, provider_key), call)
        except BaseException as error:
            outcome.set_exception(error)
            outcome.exception()  # somebody may be waiting, nobody has to
            raise
        else:
            outcome.set_result(found)
            return found
        finally:
            del self._under_way[key]

    async def _made_or_found(
        self,
        reporter: Reporter,
        name: str,
        what: tuple[int, str],
        call: Callable[[str], Awaitable[Any]],
    ) -> Any:
        known = await self._store.effect(reporter.tenant, name)
        if known is not None and known.finished:
            return await self._recorded(reporter.tenant, known.run_id, known.sequence)
        payload = {
            "invocationId": name,
            "ordinal": what[0],
            "providerKey": what[1],
            "nodeId": reporter.node_id,
        }
        if known is None:
            await reporter.recorded(NewEvent("moot.effect.started", payload, reporter.node_id))
        try:
            result = await call(name)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            failure = {"error": raised(error).as_payload()}
            await self._finish(reporter, payload, failure)
            raise
        await self._finish(reporter, payload, {"result": result})
        return result

    async def _finish(
        self, reporter: Reporter, payload: dict[str, Any], outcome: dict[str, Any]
    ) -> None:
        finished = NewEvent("moot.effect.finished", {**payload, **outcome}, reporter.node_id)
        await reporter.recorded(finished)

    async def _recorded(self, tenant: str, run_id: str, sequence: int) -> Any:
        rows = await self._store.read(tenant, run_id, sequence - 1, 1)
        said = events.decode(rows[0]).payload
        if "error" in said:
            raise EffectFailed(said["error"]["message"], **said["error"].get("details", {}))
        return said.get("result")
