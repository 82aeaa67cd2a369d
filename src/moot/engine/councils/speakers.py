"""Members of led conversations at work: each wake a task of its own, bounded for the whole host."""

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from moot.agents.invocation.desk import Assignment, Done, Invoke
from moot.core.councils.decide import WakeEnded
from moot.core.councils.next_step import left
from moot.core.errors import Conflict, MootError, Unavailable
from moot.core.events import NewEvent
from moot.core.pending import Owed
from moot.core.state.conversation import Conversation
from moot.core.workflows.node_types import copied, raised
from moot.engine.councils.context import Hearing
from moot.engine.councils.slots import Slot, Slots
from moot.engine.councils.speaker_desk import MOST_CALLS, WakeDesk
from moot.engine.head import Ground, Head

if TYPE_CHECKING:
    from moot.engine.host import Host
    from moot.engine.transaction import Turn

log = logging.getLogger("moot.engine")


class _Wake(Struct, frozen=True):
    """A wake under way, and the event that gave the floor."""

    task: asyncio.Task[None]
    sequence: int


class Speakers:
    """The wakes under way. Who no longer has the floor is stopped."""

    def __init__(self, host: "Host", invoke: Invoke, limit: int) -> None:
        self._host, self._invoke = host, invoke
        self._slots = Slots(limit, host.clock)
        self._hearing = Hearing(host.store)
        self._running: dict[str, dict[tuple[str, str], _Wake]] = {}
        #: run -> who waits for a word in it
        self._heard: dict[str, asyncio.Event] = {}
        #: wakes that wait for somebody outside
        self.outside = 0

    def start(self, head: Head, node_id: str, wake_id: str) -> bool:
        """Begin unless it is over, or already under way."""
        run_id, key = head.run.run_id, (node_id, wake_id)
        floor = head.run.conversations[node_id].floor
        wake = None if floor is None else floor.wakes.get(wake_id)
        if wake is None or key in self._running.get(run_id, ()):
            return False
        task = self._host.tasks.start(self._work(Ground(head, wake.seq), node_id, wake_id))
        self._running.setdefault(run_id, {})[key] = _Wake(task, wake.seq)
        head.pins += 1
        task.add_done_callback(lambda _: head.unpin())
        return True

    def follow(self, turn: "Turn", owed: dict[str, Owed]) -> bool:
        """Whom a batch gives the floor need not wait until it is on disk: they hear of it here and
        find out what to ask. What they record goes to disk after it. Whether anybody begins."""
        begun = 0
        for run_id, head in turn.heads.items():
            if head.run.conversations:
                self._hearing.follow(head.run, turn.published[run_id])
                for node_id, wake_id in owed[run_id].speakers:
                    begun += self.start(head, node_id, wake_id)
        return begun > 0

    def take_back(self, head: Head) -> None:
        """What gave them the floor did not come to disk."""
        for key, wake in list(self._running.get(head.run.run_id, {}).items()):
            if wake.sequence >= head.kept:
                self._stop(head.run.run_id, key)

    def keep(self, run_id: str, wanted: list[tuple[str, str]], until: int = 2**62) -> None:
        """Stop everybody of the run who has the floor no longer; whether those have it who were
        given it later is not known yet."""
        for key, wake in list(self._running.get(run_id, {}).items()):
            if key not in wanted and wake.sequence < until:
                self._slots.take(run_id, key[1])
                self._stop(run_id, key)

    def _stop(self, run_id: str, key: tuple[str, str]) -> None:
        mine = self._running[run_id]
        mine.pop(key).task.cancel()
        if not mine:
            del self._running[run_id]

    def heard(self, head: Head, at: int) -> dict[str, int]:
        """Wake -> for how long nothing was heard of whoever has it."""
        return self._slots.heard(head.run, at)

    async def answer_to(self, head: Head, node_id: str, ask_id: str) -> bool:
        """A person's word on the use of a tool; it may take days."""
        while True:
            talk = self._host.runs.current(head).run.conversations[node_id]
            asked = talk.floor.asks.get(ask_id) if talk.floor is not None else None
            if asked is None or asked.allowed is not None:
                return asked is not None and asked.allowed is True
            heard = self._heard.setdefault(head.run.run_id, asyncio.Event())
            await self._wait_outside(heard)

    async def _wait_outside(self, heard: asyncio.Event) -> None:
        self.outside += 1
        try:
            await heard.wait()
        finally:
            self.outside -= 1

    def tell(self, run_id: str) -> None:
        """Something has happened in the run."""
        heard = self._heard.pop(run_id, None)
        if heard is not None:
            heard.set()

    def __len__(self) -> int:
        return sum(len(mine) for mine in self._running.values())

    async def aclose(self) -> None:
        self._slots.stopping = True
        for run_id in list(self._running):
            self.keep(run_id, [])

    async def _work(self, ground: Ground, node_id: str, wake_id: str) -> None:
        """A task that knows no agent stays here as long as the wake does: it is not asked twice."""
        head, run = ground.head, ground.head.run
        try:
            await self._manners(head, node_id, wake_id)
            async with self._slots.slot(run.run_id, wake_id) as slot:
                ending = await self._outcome(head, node_id, wake_id, slot)
            if ending is not None:
                await self._host.handle(run.tenant, run.run_id, ending, ground=ground)
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

    async def _manners(self, head: Head, node_id: str, wake_id: str) -> None:
        """Where all are asked, nobody cuts in on who is just about to answer."""
        talk = self._host.runs.current(head).run.conversations[node_id]
        wake = talk.floor.wakes.get(wake_id) if talk.floor is not None else None
        if talk.floor is None or wake is None or not talk.floor.threaded:
            return
        if wake.reply is not None and wake.reply == talk.floor.called_seq:
            place = (head.run.run_id, talk.conversation_id)
            await self._host.presence.quiet(place, wake.agent)

    def _forget(self, run_id: str, key: tuple[str, str]) -> None:
        mine = self._running.get(run_id)
        if mine and key in mine and mine[key].task is asyncio.current_task():
            del mine[key]
            if not mine:
                del self._running[run_id]

    async def _outcome(
        self, head: Head, node_id: str, wake_id: str, slot: Slot
    ) -> WakeEnded | None:
        talk = self._host.runs.current(head).run.conversations[node_id]
        if talk.floor is None or wake_id not in talk.floor.wakes:
            return None
        wake = talk.floor.wakes[wake_id]
        desk = WakeDesk(self._host, head, node_id, wake_id, wake, slot)
        done: Done | None = None
        try:
            assignment = await self._assignment(head, node_id, talk, wake_id)
            done = await self._invoke(assignment, desk)
        except (Unavailable, Conflict):
            raise
        except MootError as refusal:
            done = Done(outcome="failed", error={"code": refusal.code, "message": refusal.message})
        except Exception as error:
            log.warning("An agent failed", exc_info=error, extra={"run_id": head.run.run_id})
            done = Done(outcome="failed", error=raised(error).as_payload())
        finally:
            desk.fall_silent(void=done is None or done.outcome != "spoke")
        if done is None:
            return None
        return ended(node_id, wake_id, done, desk.facts(), self._host.clock.millis())

    async def _assignment(
        self, head: Head, node_id: str, talk: Conversation, wake_id: str
    ) -> Assignment:
        floor, run = talk.floor, head.run
        assert floor is not None
        wake = floor.wakes[wake_id]
        context = await self._hearing.context(self._host.runs.current(head), talk, wake)
        may = left(floor, wake.agent)
        return Assignment(
            tenant=run.tenant,
            run_id=run.run_id,
            node_id=node_id,
            agent=wake.agent,
            member=run.members.get(wake.agent),
            invocation=f"{run.run_id}:{node_id}:{wake_id}",
            task=wake.task,
            place=talk.conversation_id,
            turn=wake.turn + 1,
            round=floor.round,
            transcript=context.turns,
            hidden=context.hidden,
            members={name: dict(member.profile) for name, member in floor.members.items()},
            policy=floor.policy,
            proposal=floor.proposal,
            calls_left=min(may.calls, MOST_CALLS),
            tokens_left=may.tokens,
            money_left=may.money,
            configurable=run.configurable,
        )


def ended(
    node_id: str, wake_id: str, done: Done, facts: tuple[NewEvent, ...], at: int
) -> WakeEnded:
    return WakeEnded(
        node_id=node_id,
        wake_id=wake_id,
        at=at,
        outcome=done.outcome,
        content=copied(done.content),
        to=done.to,
        answer=done.answer if isinstance(done.answer, dict) else None,
        usage=None if done.usage is None else msgspec.to_builtins(done.usage),
        error=done.error,
        meta=done.meta,
        agent=done.agent,
        facts=tuple(_at(node_id, fact) for fact in facts),
    )


def _at(node_id: str, fact: NewEvent) -> NewEvent:
    return NewEvent(fact.type, copied(fact.payload), node_id, hints=fact.hints)
