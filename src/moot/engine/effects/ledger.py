"""Make each effect once: record the intent, make the effect, record the outcome.

Within a process, callers share the one call under way. After a crash, the recorded outcome is
read. Only a later attempt of the node tries a failed effect again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Protocol

from msgspec import UNSET, Struct, structs

from moot.core import events
from moot.core.errors import MootError
from moot.core.events import NewEvent
from moot.core.ids import logical_invocation_id
from moot.core.payloads.base import RecordedError
from moot.core.payloads.memory import EffectFinished, EffectStarted
from moot.core.state.run import EVERYTHING
from moot.core.state.usage import MODEL_PREFIX
from moot.core.workflows.node_types import copy_json, error_from_exception
from moot.engine.effects.tenant_budget import TenantBudget
from moot.engine.replay.ancestry import EffectHistories
from moot.store.protocol import LogStore

#: ids of the effects made in this context, for a caller that counts them; otherwise None
effects_made: ContextVar[list[str] | None] = ContextVar("effects_made", default=None)


class EffectReporter(Protocol):
    """An object that can record facts of a run, such as a node's context."""

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
        """Return the attempts in earlier rounds of a loop, whose effects are made again."""

    @property
    def inherited(self) -> int:
        """Return how many events of the run were copied from another run."""

    #: the standing agent charged for the effect, as soon as it is known
    payer: str | None

    @property
    def charged(self) -> tuple[str, ...]:
        """Return names, nearest first; the first standing agent among them is charged."""

    async def recorded(self, *events: NewEvent) -> None: ...

    async def warn(self, message: str) -> None:
        """Show a warning to people, where the run has a place for it."""


class EffectFailed(MootError):
    """The effect was made once and failed. The failure is recorded."""

    code, status = "effect_failed", 502
    #: the code of the recorded failure
    failure_code: str = ""


def failure_from_record(error: RecordedError) -> EffectFailed:
    failed = EffectFailed(error.message, **error.details)
    failed.failure_code = error.code
    return failed


class EffectOutcomeUnknown(MootError):
    """The effect was started, and its outcome is unknown. It must not happen twice."""

    code, status = "effect_outcome_unknown", 409


class ReplayEffectRefused(MootError):
    """A replay only repeats recorded effects, so a new one is refused."""

    code, status = "replay_source_missing", 409


class Effect(Struct, frozen=True):
    """One intended effect of a node: its number, its provider, and its call."""

    ordinal: int
    provider_key: str
    call: Callable[[str], Awaitable[Any]]
    #: the provider knows the invocation id, or a second call does no harm
    idempotent: bool = True
    #: the cache key of a model call
    key: str | None = None
    #: no such effect was ever started, so the record need not be read
    new: bool = False
    #: holds the outcome back until the next record. A crash before that loses the outcome and
    #: everything that relies on it
    later: Callable[[NewEvent], None] | None = None


def effect_id(reporter: EffectReporter, effect: Effect, run_id: str) -> str:
    """Return the logical invocation id of the effect, as the run of this id names it."""
    node = f"{reporter.node_id}#{reporter.earlier}" if reporter.earlier else reporter.node_id
    return logical_invocation_id(reporter.tenant, run_id, node, effect.ordinal, effect.provider_key)


def effect_started(reporter: EffectReporter, effect: Effect, name: str) -> EffectStarted:
    return EffectStarted(
        invocation_id=name,
        ordinal=effect.ordinal,
        provider_key=effect.provider_key,
        node_id=reporter.node_id,
        attempt=reporter.attempt,
        cache_key=effect.key,
        charged_to=reporter.payer,
    )


class RecordedEffect(Struct, frozen=True):
    """The record of an effect: its id and, if known, its outcome."""

    name: str
    #: payload of its end; None while the outcome is unknown
    ended: EffectFinished | None = None
    #: the record belongs to the fork's source and is not yet in this run's history
    elsewhere: bool = False


class EffectLedger:
    """Makes the effects of nodes and records them."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._histories = EffectHistories(store)
        #: the tenants' budget; None without a limit
        self.tenant_budget: TenantBudget | None = None
        self._under_way: dict[tuple[str, str], asyncio.Future[Any]] = {}

    async def once(self, reporter: EffectReporter, effect: Effect) -> Any:
        """Return the recorded outcome if there is one; otherwise make the effect and record it."""
        if reporter.inherited == EVERYTHING:
            raise ReplayEffectRefused("A replay makes no effects.", runId=reporter.run_id)
        name = effect_id(reporter, effect, reporter.run_id)
        key = (reporter.tenant, name)
        while (other := self._under_way.get(key)) is not None:
            try:
                return await asyncio.shield(other)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not other.cancelled() or (task is not None and task.cancelling()):
                    raise  # this task is cancelled, not the other one
        outcome = asyncio.get_running_loop().create_future()
        self._under_way[key] = outcome
        try:
            result = await self._find_or_make(reporter, name, effect)
        except asyncio.CancelledError:
            outcome.cancel()
            raise
        except BaseException as error:
            outcome.set_exception(error)
            outcome.exception()  # marks the exception as seen when no caller waits
            raise
        else:
            outcome.set_result(result)
            return result
        finally:
            del self._under_way[key]

    async def _find_or_make(self, reporter: EffectReporter, name: str, effect: Effect) -> Any:
        recorded = None if effect.new else await self._find_record(reporter, name, effect)
        if self.tenant_budget is not None and effect.provider_key.startswith(MODEL_PREFIX):
            reporter.payer = await self.tenant_budget.payer(reporter.tenant, reporter.charged)
        started = effect_started(reporter, effect, name)
        if recorded is not None and recorded.ended is not None:
            ended = recorded.ended
            if ended.error is None:
                result = None if ended.result is UNSET else ended.result
                if recorded.elsewhere:
                    await self._finish(reporter, effect, started, result=result)
                return result
            if ended.attempt >= reporter.attempt:
                raise failure_from_record(ended.error)
        elif recorded is not None and not effect.idempotent:
            raise EffectOutcomeUnknown(
                f"Whether {effect.provider_key} was called is not known; look there, then start a"
                " new run.",
                invocationId=recorded.name,
            )
        await reporter.recorded(NewEvent(started, reporter.node_id))
        if recorded is not None and recorded.ended is None:
            name = recorded.name  # the provider may know the call by this id
        return await self._make(reporter, name, effect, started)

    async def _find_record(
        self, reporter: EffectReporter, name: str, effect: Effect
    ) -> RecordedEffect | None:
        row = await self._store.effect(reporter.tenant, reporter.run_id, name)
        if row is None or not row.finished:
            before = await self._inherited(reporter, effect) if reporter.inherited else None
            return before or (None if row is None else RecordedEffect(name))
        return RecordedEffect(name, await self._read_end(reporter.tenant, row.run_id, row.sequence))

    async def _inherited(self, reporter: EffectReporter, effect: Effect) -> RecordedEffect | None:
        """Return the record of an effect that the fork's history has started.

        Its end may be known to the source alone.
        """
        tenant, run_id = reporter.tenant, reporter.run_id
        sources, history = await self._histories.of(tenant, run_id, reporter.inherited)
        for source in sources:
            name = effect_id(reporter, effect, source)
            past = history.get(name)
            if past is None:
                continue
            if past.finished:
                return RecordedEffect(name, await self._read_end(tenant, run_id, past.sequence))
            row = await self._store.effect(tenant, source, name)
            if row is None or not row.finished:
                return RecordedEffect(name)
            ended = await self._read_end(tenant, row.run_id, row.sequence)
            return RecordedEffect(name, ended, elsewhere=True)
        return None

    async def _make(
        self, reporter: EffectReporter, name: str, effect: Effect, started: EffectStarted
    ) -> Any:
        if (counted := effects_made.get()) is not None:
            counted.append(name)
        try:
            # earlier usage is on record now, together with the start of this effect
            if self.tenant_budget is not None and effect.provider_key.startswith(MODEL_PREFIX):
                warning = await self.tenant_budget.check_call(reporter.tenant, reporter.payer)
                if warning is not None:
                    await reporter.warn(warning)
            result = copy_json(await effect.call(name))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await self._finish(reporter, effect, started, error=_failure_payload(error))
            raise
        await self._finish(reporter, effect, started, result=result)
        if self.tenant_budget is not None and effect.provider_key.startswith(MODEL_PREFIX):
            await self.tenant_budget.warn_after_call(reporter.tenant, reporter.payer)
        return result

    async def _finish(
        self,
        reporter: EffectReporter,
        effect: Effect,
        started: EffectStarted,
        **outcome: Any,
    ) -> None:
        """Record the end with its ``result`` or its ``error``."""
        payload = EffectFinished(**structs.asdict(started), **outcome)
        finished = NewEvent(payload, reporter.node_id)
        if effect.later is not None:
            effect.later(finished)
        else:
            await reporter.recorded(finished)

    async def _read_end(self, tenant: str, run_id: str, sequence: int) -> EffectFinished | None:
        rows = await self._store.read(tenant, run_id, sequence - 1, 1)
        payload = events.decode(rows[0]).payload
        return payload if isinstance(payload, EffectFinished) else None


def _failure_payload(error: Exception) -> RecordedError:
    """Return the payload of a failure. A refusal keeps its code."""
    if not isinstance(error, MootError):
        return error_from_exception(error).as_payload()
    return RecordedError(code=error.code, message=error.message, details=error.details)
