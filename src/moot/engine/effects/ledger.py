"""The effect ledger: intent recorded, effect made, outcome recorded, then used.

The same logical effect is made once: within a process by sharing the one call under way, across a
crash by reading its recorded outcome. Only a later attempt of its node tries a failed one again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Protocol

from msgspec import Struct

from moot.core import events
from moot.core.errors import MootError
from moot.core.events import NewEvent
from moot.core.ids import logical_invocation_id
from moot.core.state.run import EVERYTHING
from moot.core.state.usage import CHARGED, MODEL
from moot.core.workflows.node_types import NodeError, copied, raised
from moot.engine.effects.tenant_budget import Purse
from moot.engine.replay.ancestry import Histories
from moot.store.protocol import LogStore

#: how many effects were made on the way of whoever asks; None where nobody does
made_here: ContextVar[list[str] | None] = ContextVar("made_here", default=None)


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

    @property
    def inherited(self) -> int:
        """How many events of the run are those of another, said again."""

    #: the standing agent that is charged for it, as soon as that is known
    payer: str | None

    @property
    def charged(self) -> tuple[str, ...]:
        """Whose work this may be, the nearest first: the first of them that is a standing agent
        is charged."""

    async def recorded(self, *events: NewEvent) -> None: ...

    async def warn(self, message: str) -> None:
        """For people to see, where there is a place for it."""


class EffectFailed(MootError):
    """The effect was made once and failed; the failure is what is remembered."""

    code, status = "effect_failed", 502
    #: {code, message, details} of the failure, as it was recorded
    failure: dict[str, Any] = {}


def remembered(error: dict[str, Any]) -> EffectFailed:
    found = EffectFailed(error["message"], **error.get("details", {}))
    found.failure = error
    return found


class EffectUnknown(MootError):
    """The effect was begun and nobody knows whether it happened; it must not happen twice."""

    code, status = "effect_outcome_unknown", 409


class ReplayMakesNothing(MootError):
    """A replay says again what was recorded; whatever asks for more is refused at the door."""

    code, status = "replay_source_missing", 409


class Effect(Struct, frozen=True):
    """One intended effect of a node: the nth, on whom, and how it is made."""

    ordinal: int
    provider_key: str
    call: Callable[[str], Awaitable[Any]]
    #: the outside knows the invocation id, or does not mind a second call
    idempotent: bool = True
    #: what the request is known by elsewhere: the cache key of a model call
    key: str | None = None
    #: nothing of the kind was ever begun: the record need not be asked
    new: bool = False
    #: keeps the outcome back until the next record, and with it whatever relies on it. A crash
    #: before that has lost both
    later: Callable[[NewEvent], None] | None = None


def name_of(reporter: Reporter, effect: Effect, run_id: str) -> str:
    """The identity of the effect, as the run of this id has it."""
    node = f"{reporter.node_id}#{reporter.earlier}" if reporter.earlier else reporter.node_id
    return logical_invocation_id(reporter.tenant, run_id, node, effect.ordinal, effect.provider_key)


def begun(reporter: Reporter, effect: Effect, name: str) -> dict[str, Any]:
    """What every event of an effect says of it."""
    return {
        "invocationId": name,
        "ordinal": effect.ordinal,
        "providerKey": effect.provider_key,
        "nodeId": reporter.node_id,
        "attempt": reporter.attempt,
        **({} if effect.key is None else {"cacheKey": effect.key}),
        **({} if reporter.payer is None else {CHARGED: reporter.payer}),
    }


class Known(Struct, frozen=True):
    """What is on record of an effect: under which name, where, and how it ended."""

    name: str
    #: None while nobody knows
    ended: dict[str, Any] | None = None
    #: the record is another run's, and the outcome is not part of this one's history yet
    elsewhere: bool = False


class Ledger:
    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._histories = Histories(store)
        #: what tenants may still use up; None where there is no bound
        self.purse: Purse | None = None
        self._under_way: dict[tuple[str, str], asyncio.Future[Any]] = {}

    async def once(self, reporter: Reporter, effect: Effect) -> Any:
        """The recorded outcome if there is one; otherwise make the effect and record it first."""
        if reporter.inherited == EVERYTHING:
            raise ReplayMakesNothing("A replay makes no effects.", runId=reporter.run_id)
        name = name_of(reporter, effect, reporter.run_id)
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
        known = None if effect.new else await self._known(reporter, name, effect)
        if self.purse is not None and effect.provider_key.startswith(MODEL):
            reporter.payer = await self.purse.payer(reporter.tenant, reporter.charged)
        payload = begun(reporter, effect, name)
        if known is not None and known.ended is not None:
            said = known.ended
            if "error" not in said:
                if known.elsewhere:
                    outcome = {"result": said.get("result")}
                    await self._finish(reporter, effect, payload, outcome)
                return said.get("result")
            if said.get("attempt", 1) >= reporter.attempt:
                raise remembered(said["error"])
        elif known is not None and not effect.idempotent:
            raise EffectUnknown(
                f"Whether {effect.provider_key} was called is not known; look there, then start a"
                " new run.",
                invocationId=known.name,
            )
        await reporter.recorded(NewEvent("moot.effect.started", payload, reporter.node_id))
        if known is not None and known.ended is None:
            name = known.name  # it may have been called by this name
        return await self._made(reporter, name, effect, payload)

    async def _known(self, reporter: Reporter, name: str, effect: Effect) -> Known | None:
        row = await self._store.effect(reporter.tenant, reporter.run_id, name)
        if row is None or not row.finished:
            before = await self._inherited(reporter, effect) if reporter.inherited else None
            return before or (None if row is None else Known(name))
        return Known(name, await self._recorded(reporter.tenant, row.run_id, row.sequence))

    async def _inherited(self, reporter: Reporter, effect: Effect) -> Known | None:
        """What a branch's history has begun is not begun again. Its end may be known to the
        source alone."""
        tenant, run_id = reporter.tenant, reporter.run_id
        sources, history = await self._histories.of(tenant, run_id, reporter.inherited)
        for source in sources:
            name = name_of(reporter, effect, source)
            done = history.get(name)
            if done is None:
                continue
            if done.finished:
                return Known(name, await self._recorded(tenant, run_id, done.sequence))
            row = await self._store.effect(tenant, source, name)
            if row is None or not row.finished:
                return Known(name)
            ended = await self._recorded(tenant, row.run_id, row.sequence)
            return Known(name, ended, elsewhere=True)
        return None

    async def _made(
        self, reporter: Reporter, name: str, effect: Effect, payload: dict[str, Any]
    ) -> Any:
        if (counted := made_here.get()) is not None:
            counted.append(name)
        try:
            # what was used up before is on record by now, with the beginning of this one
            if self.purse is not None and effect.provider_key.startswith(MODEL):
                warning = await self.purse.look_into(reporter.tenant, reporter.payer)
                if warning is not None:
                    await reporter.warn(warning)
            result = copied(await effect.call(name))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            failure = {"error": _failure(error)}
            await self._finish(reporter, effect, payload, failure)
            raise
        await self._finish(reporter, effect, payload, {"result": result})
        if self.purse is not None and effect.provider_key.startswith(MODEL):
            await self.purse.note(reporter.tenant, reporter.payer)
        return result

    async def _finish(
        self, reporter: Reporter, effect: Effect, payload: dict[str, Any], outcome: dict[str, Any]
    ) -> None:
        finished = NewEvent("moot.effect.finished", {**payload, **outcome}, reporter.node_id)
        if effect.later is not None:
            effect.later(finished)
        else:
            await reporter.recorded(finished)

    async def _recorded(self, tenant: str, run_id: str, sequence: int) -> dict[str, Any]:
        rows = await self._store.read(tenant, run_id, sequence - 1, 1)
        return events.decode(rows[0]).payload


def _failure(error: Exception) -> dict[str, Any]:
    """A refusal keeps its code."""
    if not isinstance(error, MootError):
        return raised(error).as_payload()
    return NodeError(code=error.code, message=error.message, details=error.details).as_payload()
