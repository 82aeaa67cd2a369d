"""Run the invited members of councils, each as a task, bounded for the host."""

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from moot.agents.invocation.context import Assignment, InvocationResult, Invoke
from moot.core.councils.invitations import InvitationEnded
from moot.core.councils.limits import remaining_budget
from moot.core.errors import Conflict, MootError, Unavailable
from moot.core.events import NewEvent, copy_payload
from moot.core.pending import PendingWork
from moot.core.state.conversation import Conversation
from moot.core.workflows.node_types import copy_json, error_from_exception
from moot.engine.councils.context import TurnCache
from moot.engine.councils.member_context import MOST_CALLS, MemberContext
from moot.engine.councils.work_limits import WorkPermit, WorkPermits
from moot.engine.head import BasisEvent, Head

if TYPE_CHECKING:
    from moot.engine.host import Host
    from moot.engine.transaction import Transaction

log = logging.getLogger("moot.engine")


class _RunningInvitation(Struct, frozen=True):
    """An invitation under way, and the sequence of the event that gave the floor."""

    task: asyncio.Task[None]
    sequence: int


class Speakers:
    """The invitations under way. A member that loses the floor is stopped."""

    def __init__(self, host: "Host", invoke: Invoke, limit: int) -> None:
        self._host, self._invoke = host, invoke
        self._slots = WorkPermits(limit, host.clock)
        self._turns = TurnCache(host.store)
        self._running: dict[str, dict[tuple[str, str], _RunningInvitation]] = {}
        #: run -> event set when anything happens in it
        self._changes: dict[str, asyncio.Event] = {}
        #: number of invitations that wait for a person or an outside program
        self.outside = 0

    def start(self, head: Head, node_id: str, wake_id: str) -> bool:
        """Start the invitation unless it is over or already under way."""
        run_id, key = head.run.run_id, (node_id, wake_id)
        floor = head.run.conversations[node_id].floor
        wake = None if floor is None else floor.wakes.get(wake_id)
        if wake is None or key in self._running.get(run_id, ()):
            return False
        task = self._host.tasks.start(self._work(BasisEvent(head, wake.seq), node_id, wake_id))
        self._running.setdefault(run_id, {})[key] = _RunningInvitation(task, wake.seq)
        head.pins += 1
        task.add_done_callback(lambda _: head.unpin())
        return True

    def follow(self, transaction: "Transaction", owed: dict[str, PendingWork]) -> bool:
        """Start invited members before the batch that invites them is on disk.

        They can prepare their request; their records go to disk after the batch. Return whether
        any started.
        """
        started = 0
        for run_id, head in transaction.heads.items():
            if head.run.conversations:
                self._turns.follow(head.run, transaction.published[run_id])
                for node_id, wake_id in owed[run_id].speakers:
                    started += self.start(head, node_id, wake_id)
        return started > 0

    def take_back(self, head: Head) -> None:
        """Stop members whose invitation was lost with a failed commit."""
        for key, wake in list(self._running.get(head.run.run_id, {}).items()):
            if wake.sequence >= head.durable:
                self._stop(head.run.run_id, key)

    def keep(self, run_id: str, wanted: list[tuple[str, str]], until: int = 2**62) -> None:
        """Stop members of the run that no longer have the floor.

        Invitations from ``until`` on are not on disk yet and are left alone.
        """
        running = self._running.get(run_id)
        for key, wake in list(running.items()) if running else ():
            if key not in wanted and wake.sequence < until:
                self._slots.take(run_id, key[1])
                self._stop(run_id, key)

    def _stop(self, run_id: str, key: tuple[str, str]) -> None:
        mine = self._running[run_id]
        mine.pop(key).task.cancel()
        if not mine:
            del self._running[run_id]

    def silences(self, head: Head, at: int) -> dict[str, int]:
        """Return wake id -> how long its member has been silent, in ms."""
        return self._slots.heard(head.run, at)

    async def answer_to(self, head: Head, node_id: str, ask_id: str) -> bool:
        """Wait for a person's answer about the use of a tool, which may take days."""
        while True:
            conversation = self._host.runs.current(head).run.conversations[node_id]
            request = (
                conversation.floor.asks.get(ask_id) if conversation.floor is not None else None
            )
            if request is None or request.allowed is not None:
                return request is not None and request.allowed is True
            changed = self._changes.setdefault(head.run.run_id, asyncio.Event())
            await self._wait_outside(changed)

    async def _wait_outside(self, event: asyncio.Event) -> None:
        self.outside += 1
        try:
            await event.wait()
        finally:
            self.outside -= 1

    def notify(self, run_id: str) -> None:
        """Wake the tasks that wait for something to happen in the run."""
        changed = self._changes.pop(run_id, None)
        if changed is not None:
            changed.set()

    def __len__(self) -> int:
        return sum(len(mine) for mine in self._running.values())

    async def aclose(self) -> None:
        self._slots.stopping = True
        for run_id in list(self._running):
            self.keep(run_id, [])

    async def _work(self, basis: BasisEvent, node_id: str, wake_id: str) -> None:
        """Carry out one invitation. If no agent here can, the task waits, so that it is not asked
        twice."""
        head, run = basis.head, basis.head.run
        try:
            await self._wait_for_others(head, node_id, wake_id)
            async with self._slots.slot(run.run_id, wake_id) as slot:
                ending = await self._outcome(head, node_id, wake_id, slot)
            if ending is not None:
                await self._host.handle(run.tenant, run.run_id, ending, basis=basis)
            else:
                await self._wait_outside(asyncio.Event())
        except MootError as refusal:
            log.warning(
                "What a member said could not be kept yet",
                extra={"action": "wake.waits", "run_id": run.run_id, "code": refusal.code},
            )
            self._forget(run.run_id, (node_id, wake_id))
            self._host.look_again(run.tenant, run.run_id)
        finally:
            self._forget(run.run_id, (node_id, wake_id))

    async def _wait_for_others(self, head: Head, node_id: str, wake_id: str) -> None:
        """Wait for other members that are about to answer the same question to all."""
        conversation = self._host.runs.current(head).run.conversations[node_id]
        wake = conversation.floor.wakes.get(wake_id) if conversation.floor is not None else None
        if conversation.floor is None or wake is None or not conversation.floor.threaded:
            return
        if wake.reply is not None and wake.reply == conversation.floor.called_seq:
            place = (head.run.run_id, conversation.conversation_id)
            await self._host.presence.quiet(place, wake.agent)

    def _forget(self, run_id: str, key: tuple[str, str]) -> None:
        mine = self._running.get(run_id)
        if mine and key in mine and mine[key].task is asyncio.current_task():
            del mine[key]
            if not mine:
                del self._running[run_id]

    async def _outcome(
        self, head: Head, node_id: str, wake_id: str, slot: WorkPermit
    ) -> InvitationEnded | None:
        conversation = self._host.runs.current(head).run.conversations[node_id]
        if conversation.floor is None or wake_id not in conversation.floor.wakes:
            return None
        wake = conversation.floor.wakes[wake_id]
        context = MemberContext(self._host, head, node_id, wake_id, wake, slot)
        done: InvocationResult | None = None
        try:
            assignment = await self._assignment(head, node_id, conversation, wake_id)
            done = await self._invoke(assignment, context)
        except (Unavailable, Conflict):
            raise
        except MootError as refusal:
            done = InvocationResult(
                outcome="failed", error={"code": refusal.code, "message": refusal.message}
            )
        except Exception as error:
            log.warning("An agent failed", exc_info=error, extra={"run_id": head.run.run_id})
            done = InvocationResult(
                outcome="failed", error=msgspec.to_builtins(error_from_exception(error))
            )
        finally:
            context.end_speech(void=done is None or done.outcome != "spoke")
        if done is None:
            return None
        return wake_ended_from_done(
            node_id, wake_id, done, context.facts(), self._host.clock.millis()
        )

    async def _assignment(
        self, head: Head, node_id: str, conversation: Conversation, wake_id: str
    ) -> Assignment:
        floor, run = conversation.floor, head.run
        assert floor is not None
        wake = floor.wakes[wake_id]
        context = await self._turns.context(self._host.runs.current(head), conversation, wake)
        allowance = remaining_budget(floor, wake.agent)
        return Assignment(
            tenant=run.tenant,
            run_id=run.run_id,
            node_id=node_id,
            agent=wake.agent,
            member=run.members.get(wake.agent),
            invocation=f"{run.run_id}:{node_id}:{wake_id}",
            task=wake.task,
            place=conversation.conversation_id,
            turn=wake.turn + 1,
            round=floor.round,
            transcript=context.turns,
            hidden=context.hidden,
            members={name: dict(member.profile) for name, member in floor.members.items()},
            policy=floor.policy,
            proposal=floor.proposal,
            calls_left=min(allowance.calls, MOST_CALLS),
            tokens_left=allowance.tokens,
            money_left=allowance.money,
            configurable=run.configurable,
        )


def wake_ended_from_done(
    node_id: str, wake_id: str, done: InvocationResult, facts: tuple[NewEvent, ...], at: int
) -> InvitationEnded:
    return InvitationEnded(
        node_id=node_id,
        wake_id=wake_id,
        at=at,
        outcome=done.outcome,
        content=copy_json(done.content),
        to=done.to,
        answer=done.answer if isinstance(done.answer, dict) else None,
        usage=None if done.usage is None else msgspec.to_builtins(done.usage),
        error=done.error,
        meta=done.meta,
        agent=done.agent,
        facts=tuple(_fact_at_node(node_id, fact) for fact in facts),
    )


def _fact_at_node(node_id: str, fact: NewEvent) -> NewEvent:
    copy_payload(fact)
    return NewEvent(fact.payload, node_id, hints=fact.hints, raw=fact.raw, nth=fact.nth)
