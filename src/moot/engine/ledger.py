"""The effect ledger: intent recorded, effect made, outcome recorded, then used.

The same logical effect is made once: within a process by sharing the one call under way, across a
crash by reading its recorded outcome. Only a later attempt of its node tries a failed one again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec import Struct

from moot.core import events
from moot.core.errors import MootError
from moot.core.events import NewEvent
from moot.core.ids import logical_invocation_id
from moot.core.outcomes import copied, raised
from moot.store.protocol import LogStore


class Reporter(Protocol):
    """Whoever can record facts of a run: a node's context."""

    @property
    def run_id(self) -> str: ...

    @property
    def tenant(self) -> str: ...

    @property
    def node_id(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def earlier(self) -> int:
        """Attempts in earlier rounds of a loop: what those have done, this one does anew."""

    async def recorded(self, *events: NewEvent) -> None: ...


class EffectFailed(MootError):
    """The effect was made once and failed; the failure is what is remembered."""

    code, status = "effect_failed", 502


class EffectUnknown(MootError):
    """The effect was begun and nobody knows whether it happened; it must not happen twice."""

    code, status = "effect_outcome_unknown", 409


class Effect(Struct, frozen=True):
    """One intended effect of a node: the nth, on whom, and how it is made."""

    ordinal: int
    provider_key: str
    call: Callable[[str], Awaitable[Any]]
    #: the outside knows the invocation id, or does not mind a second call
    idempotent: bool = True


class Ledger:
    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._under_way: dict[tuple[str, str], asyncio.Future[Any]] = {}

    async def once(self, reporter: Reporter, effect: Effect) -> Any:
        """The recorded outcome if there is one; otherwise make the effect and record it first."""
        name = logical_invocation_id(
            reporter.tenant,
            reporter.run_id,
            f"{reporter.node_id}#{reporter.earlier}" if reporter.earlier else reporter.node_id,
            effect.ordinal,
            effect.provider_key,
        )
        key = (reporter.tenant, name)
        while (other := self._under_way.get(key)) is not None:
            try:
                return await asyncio.shield(other)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not other.cancelled() or (task is not None and task.cancelling()):
                    raise  # it is we who are to stop, not the other
        outcome = asyncio.get_running_loop().create_future()
        self._under_way[key] = outcome
        try:
            found = await self._made_or_found(reporter, name, effect)
        except asyncio.CancelledError:
            outcome.cancel()
            raise
        except BaseException as error:
            outcome.set_exception(error)
            outcome.exception()  # somebody may be waiting, nobody has to
            raise
        else:
            outcome.set_result(found)
            return found
        finally:
            del self._under_way[key]

    async def _made_or_found(self, reporter: Reporter, name: str, effect: Effect) -> Any:
        known = await self._store.effect(reporter.tenant, name)
        if known is not None and known.finished:
            said = await self._recorded(reporter.tenant, known.run_id, known.sequence)
            if "error" not in said:
                return said.get("result")
            if said.get("attempt", 1) >= reporter.attempt:
                raise EffectFailed(said["error"]["message"], **said["error"].get("details", {}))
        elif known is not None and not effect.idempotent:
            raise EffectUnknown(
                f"Whether {effect.provider_key} was called is not known; look there, then start a"
                " new run.",
                invocationId=name,
            )
        payload = {
            "invocationId": name,
            "ordinal": effect.ordinal,
            "providerKey": effect.provider_key,
            "nodeId": reporter.node_id,
            "attempt": reporter.attempt,
        }
        await reporter.recorded(NewEvent("moot.effect.started", payload, reporter.node_id))
        return await self._made(reporter, name, effect, payload)

    async def _made(
        self, reporter: Reporter, name: str, effect: Effect, payload: dict[str, Any]
    ) -> Any:
        try:
            result = copied(await effect.call(name))
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

    async def _recorded(self, tenant: str, run_id: str, sequence: int) -> dict[str, Any]:
        rows = await self._store.read(tenant, run_id, sequence - 1, 1)
        return events.decode(rows[0]).payload
