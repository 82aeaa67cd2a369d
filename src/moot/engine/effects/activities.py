"""Run the attempts of nodes with side effects, bounded for the whole host."""

import asyncio
import logging
from typing import TYPE_CHECKING

from moot.core.commands import FinishNode
from moot.core.errors import MootError, Unavailable
from moot.core.interrupts.escalations import DecisionRejected
from moot.core.replay import replay
from moot.core.runs.readiness import PortProblem, build_node_call
from moot.core.workflows.flow import FlowNode
from moot.core.workflows.node_types import (
    Completed,
    Decided,
    Failed,
    NodeError,
    Outcome,
    error_from_exception,
    recordable_outcome,
)
from moot.engine.effects.ledger import EffectLedger
from moot.engine.effects.node_context import ActivityContext
from moot.engine.head import Head
from moot.engine.nodes import supervisor

if TYPE_CHECKING:
    from moot.engine.host import Host

log = logging.getLogger("moot.engine")


class Activities:
    """The attempts under way. An attempt that its run no longer wants is cancelled."""

    def __init__(self, host: "Host", limit: int) -> None:
        self._host = host
        self._slots = asyncio.Semaphore(limit)
        self._running: dict[str, dict[tuple[str, int], asyncio.Task[None]]] = {}
        self.ledger = EffectLedger(host.store)

    def start(self, head: Head, node_id: str, attempt: int) -> None:
        """Start an attempt unless it is already under way."""
        mine = self._running.setdefault(head.run.run_id, {})
        if (node_id, attempt) not in mine:
            work = self._attempt(head, head.flow.nodes[node_id], attempt)
            mine[node_id, attempt] = task = self._host.tasks.start(work)
            head.pins += 1  # the node reads the run through this head until the attempt ends
            task.add_done_callback(lambda _: head.unpin())

    def keep(self, run_id: str, wanted: list[tuple[str, int]]) -> None:
        """Cancel every attempt of the run that is no longer wanted."""
        mine = self._running.get(run_id)
        if mine:
            for key in [key for key in mine if key not in wanted]:
                mine.pop(key).cancel()
            if not mine:
                del self._running[run_id]

    def __len__(self) -> int:
        return sum(len(mine) for mine in self._running.values())

    async def aclose(self) -> None:
        for run_id in list(self._running):
            self.keep(run_id, [])

    async def _attempt(self, head: Head, node: FlowNode, attempt: int) -> None:
        run = head.run
        key = (node.id, attempt)
        if node.type.activity is None:
            about = {"action": "node.missing", "run_id": run.run_id}
            type_id = node.type.type_id
            log.error("Node type %s is not installed; the run waits for it", type_id, extra=about)
            return
        try:
            async with self._slots:
                await self._carry_out(head, node, attempt)
        except MootError as refusal:
            log.warning(
                "The outcome of a node could not be kept yet",
                extra={"action": "node.waits", "run_id": run.run_id, "code": refusal.code},
            )
            self._forget(run.run_id, key)
            self._host.look_again(run.tenant, run.run_id)
        finally:
            self._forget(run.run_id, key)

    def _forget(self, run_id: str, key: tuple[str, int]) -> None:
        mine = self._running.get(run_id)
        if mine and mine.get(key) is asyncio.current_task():
            del mine[key]
            if not mine:
                del self._running[run_id]

    async def _carry_out(self, head: Head, node: FlowNode, attempt: int) -> None:
        run = head.run
        if run.replayed:
            lost = Failed(replay.NO_RECORD)
            await self._post(run.tenant, run.run_id, node.id, attempt, lost)
            return
        await self._host.runs.track_messages(head)
        try:
            call = build_node_call(run, node, self._host.clock.millis(), head.sealed, attempt)
        except PortProblem as problem:
            outcome: Outcome = Failed(problem.error)
        else:
            context = ActivityContext(self._host, self.ledger, head, node, call)
            if call.turn is not None and call.answer:
                outcome = supervisor.ratified_outcome(call)  # a person has decided
            else:
                outcome = await self._outcome(node, context)
            outcome = await _confirm_reports(context) or outcome
        await self._post(run.tenant, run.run_id, node.id, attempt, outcome)

    async def _outcome(self, node: FlowNode, context: ActivityContext) -> Outcome:
        assert node.type.activity is not None
        try:
            result = await node.type.activity(context)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Failed(error_from_exception(error))  # the node has cancelled itself
        except Unavailable:
            raise
        except MootError as refusal:
            return _failure_from_refusal(refusal)
        except DecisionRejected as rejection:
            return Failed(rejection.error)
        except (Exception, SystemExit) as error:
            about, type_id = {"action": "node.raised", "run_id": context.run_id}, node.type.type_id
            log.warning("Node %s (%s) raised", node.id, type_id, exc_info=error, extra=about)
            return Failed(error_from_exception(error))
        if isinstance(result, (Completed, Failed, Decided)):
            return result
        return Completed(result if isinstance(result, dict) else {"output": result})

    async def _post(
        self, tenant: str, run_id: str, node_id: str, attempt: int, outcome: Outcome
    ) -> None:
        """Send the outcome from its own task: a cancel of the attempt cannot tear a commit."""
        at = self._host.clock.millis()
        command = FinishNode(node_id, attempt, recordable_outcome(outcome), at)
        await asyncio.shield(self._host.tasks.start(self._host.handle(tenant, run_id, command)))


async def _confirm_reports(context: ActivityContext) -> Failed | None:
    """Wait until the node's reports are on disk. Return a failure when they never will be."""
    try:
        await context.confirmed()
    except Unavailable:
        raise
    except MootError as refusal:
        return _failure_from_refusal(refusal)
    except Exception as error:
        return Failed(error_from_exception(error))
    return None


def _failure_from_refusal(refusal: MootError) -> Failed:
    return Failed(NodeError(code=refusal.code, message=refusal.message, details=refusal.details))
