"""Members of led conversations at work: each wake a task of its own, bounded for the whole host."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from moot.agents.desk import Assignment, Done, Invoke
from moot.core.errors import Conflict, MootError, NotFound, Unavailable
from moot.core.events import NewEvent
from moot.core.floor import left
from moot.core.outcomes import copied, raised
from moot.core.participating import HOST, WakeEnded, WakeReport
from moot.core.participation import SPOKEN, Wake
from moot.core.waiting import Conversation
from moot.engine.head import Head
from moot.engine.hearing import Hearing
from moot.engine.ledger import Effect
from moot.engine.speech import Speech

if TYPE_CHECKING:
    from moot.engine.host import Host

log = logging.getLogger("moot.engine")

#: calls one wake may lead to: their names are numbered within it
MOST_CALLS = 99


class Place:
    """One of the places for members at work. Who waits for a person needs none meanwhile."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places, self._held = places, False

    async def __aenter__(self) -> None:
        await self._places.acquire()
        self._held = True

    async def __aexit__(self, *_: object) -> None:
        if self._held:
            self._held = False
            self._places.release()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        await self.__aexit__()
        try:
            yield
        finally:
            await self.__aenter__()


class Speakers:
    """The wakes under way. Who no longer has the floor is stopped."""

    def __init__(self, host: "Host", invoke: Invoke, limit: int) -> None:
        self._host, self._invoke = host, invoke
        self._slots = asyncio.Semaphore(limit)
        self._hearing = Hearing(host.store)
        self._running: dict[str, dict[tuple[str, str], asyncio.Task[None]]] = {}
        self._holding: dict[asyncio.Task[Any] | None, Place] = {}
        #: run -> who waits for a word in it
        self._heard: dict[str, asyncio.Event] = {}

    def start(self, head: Head, node_id: str, wake_id: str) -> None:
        """Begin unless it is already under way."""
        mine = self._running.setdefault(head.run.run_id, {})
        if (node_id, wake_id) not in mine:
            task = self._host.tasks.start(self._work(head, node_id, wake_id))
            mine[node_id, wake_id] = task
            head.pins += 1
            task.add_done_callback(lambda _: head.unpin())

    def keep(self, run_id: str, wanted: list[tuple[str, str]]) -> None:
        """Stop everybody of the run who has the floor no longer."""
        mine = self._running.get(run_id)
        if mine:
            for key in [key for key in mine if key not in wanted]:
                mine.pop(key).cancel()
            if not mine:
                del self._running[run_id]

    async def answer_to(self, head: Head, node_id: str, ask_id: str) -> bool:
        """A person's word on the use of a tool; it may take days."""
        while True:
            talk = self._host.runs.current(head).run.conversations[node_id]
            asked = talk.floor.asks.get(ask_id) if talk.floor is not None else None
            if asked is None or asked.allowed is not None:
                return asked is not None and asked.allowed is True
            heard = self._heard.setdefault(head.run.run_id, asyncio.Event())
            async with self._holding[asyncio.current_task()].lent():
                await heard.wait()

    def tell(self, run_id: str) -> None:
        """Something has happened in the run."""
        heard = self._heard.pop(run_id, None)
        if heard is not None:
            heard.set()

    def __len__(self) -> int:
        return sum(len(mine) for mine in self._running.values())

    async def aclose(self) -> None:
        for run_id in list(self._running):
            self.keep(run_id, [])

    async def _work(self, head: Head, node_id: str, wake_id: str) -> None:
        """A task that knows no agent stays here as long as the wake does: it is not asked twice."""
        run, place = head.run, Place(self._slots)
        self._holding[asyncio.current_task()] = place
        try:
            async with place:
                done = await self._outcome(head, node_id, wake_id)
            if done is not None:
                command = ended(node_id, wake_id, done, self._host.clock.millis())
                await self._host.handle(run.tenant, run.run_id, command)
            else:
                await asyncio.Event().wait()
        except MootError as refusal:
            log.warning(
                "What a member said could not be kept yet",
                extra={"action": "wake.waits", "run_id": run.run_id, "code": refusal.code},
            )
            self._forget(run.run_id, (node_id, wake_id))
            self._host.look_again(run.tenant, run.run_id)
        finally:
            del self._holding[asyncio.current_task()]
            self._forget(run.run_id, (node_id, wake_id))

    def _forget(self, run_id: str, key: tuple[str, str]) -> None:
        mine = self._running.get(run_id)
        if mine and mine.get(key) is asyncio.current_task():
            del mine[key]
            if not mine:
                del self._running[run_id]

    async def _outcome(self, head: Head, node_id: str, wake_id: str) -> Done | None:
        talk = self._host.runs.current(head).run.conversations[node_id]
        if talk.floor is None or wake_id not in talk.floor.wakes:
            return None
        wake = talk.floor.wakes[wake_id]
        desk = WakeDesk(self._host, head, node_id, wake_id, wake)
        done = None
        try:
            assignment = await self._assignment(head, node_id, talk, wake_id)
            done = await self._invoke(assignment, desk)
            return done and replace(done, facts=(*desk.facts(), *done.facts))
        except (Unavailable, Conflict):
            raise
        except MootError as refusal:
            said = {"code": refusal.code, "message": refusal.message}
            return Done(outcome="failed", error=said, facts=desk.facts())
        except Exception as error:
            log.warning("An agent failed", exc_info=error, extra={"run_id": head.run.run_id})
            return Done(outcome="failed", error=raised(error).as_payload(), facts=desk.facts())
        finally:
            desk.fall_silent(void=done is None or done.outcome != "spoke")

    async def _assignment(
        self, head: Head, node_id: str, talk: Conversation, wake_id: str
    ) -> Assignment:
        floor, run = talk.floor, head.run
        assert floor is not None
        wake = floor.wakes[wake_id]
        context = await self._hearing.context(run, talk, wake)
        may = left(floor, wake.agent)
        return Assignment(
            tenant=run.tenant,
            run_id=run.run_id,
            node_id=node_id,
            agent=wake.agent,
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


def ended(node_id: str, wake_id: str, done: Done, at: int) -> WakeEnded:
    return WakeEnded(
        node_id=node_id,
        wake_id=wake_id,
        at=at,
        outcome=done.outcome,
        content=copied(done.content),
        to=done.to,
        answer=done.answer,
        usage=None if done.usage is None else msgspec.to_builtins(done.usage),
        error=done.error,
        meta=done.meta,
        agent=done.agent,
        facts=tuple(_at(node_id, fact) for fact in done.facts),
    )


def _at(node_id: str, fact: NewEvent) -> NewEvent:
    fact.node_id = node_id
    return fact


class WakeDesk:
    """A member's desk. What it reports belongs to its wake; a wake that is over takes no more.

    Facts, and answers of models, wait for the next thing that must be on disk, and go there with
    it: with the next call, or with the turn.
    """

    def __init__(self, host: "Host", head: Head, node_id: str, wake_id: str, wake: Wake) -> None:
        self._host, self._head, self._wake_id, self._wake = host, head, wake_id, wake
        self.run_id, self.tenant, self.node_id = head.run.run_id, head.run.tenant, node_id
        self.attempt, self.earlier = 1, 0
        seq, _, index = wake_id.partition(".")
        self._first = int(seq) * 10_000 + int(index or 0) * 100
        self._calls = self._asks = 0
        #: whoever has not begun has made no calls either
        self._new = not wake.begun
        self._facts: list[NewEvent] = []
        self._speech: Speech | None = None
        #: each run has a voice of its own: many councils do not talk one another down
        self._voice = f"{HOST}:{self.run_id}"

    @property
    def inherited(self) -> int:
        return self._head.run.inherited

    def now(self) -> int:
        return self._host.clock.millis()

    async def effect(
        self, provider_key: str, call: Callable[[str], Awaitable[Any]], idempotent: bool = True
    ) -> Any:
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise Conflict("One turn leads to that many calls at most.", limit=MOST_CALLS)
        effect = Effect(
            self._first + self._calls, provider_key, call, idempotent,
            new=self._new, later=self._keep if idempotent else None,
        )  # fmt: skip
        return await self._host.activities.ledger.once(self, effect)

    async def report(self, *facts: NewEvent) -> None:
        self._facts += facts

    def _keep(self, fact: NewEvent) -> None:
        self._facts.append(fact)

    async def recorded(self, *facts: NewEvent) -> None:
        """On disk, and what was reported before with them."""
        await self._send((*self.facts(), *facts), required=True)

    def facts(self) -> tuple[NewEvent, ...]:
        """What has been reported and is on its way nowhere yet."""
        found, self._facts = tuple(self._facts), []
        return found

    async def _send(self, facts: tuple[NewEvent, ...], required: bool) -> None:
        for fact in facts:
            fact.payload = copied(fact.payload)
            fact.node_id = self.node_id
        command = WakeReport(self.node_id, self._wake_id, facts, self.now(), required)
        task = self._host.tasks.start(self._host.handle(self.tenant, self.run_id, command))
        await asyncio.shield(task)

    def tell(self, fact: NewEvent) -> None:
        self._host.tasks.start(self._tell(fact))

    async def _tell(self, fact: NewEvent) -> None:
        with suppress(MootError):  # it is told, or nobody misses it
            await self._send((fact,), required=False)

    async def agreed(self, agent: str, tool: str, arguments: dict[str, Any]) -> bool:
        self._asks += 1
        name = f"{self._wake_id}.{self._asks}"
        asked = {
            "wakeId": self._wake_id,
            "askId": name,
            "agentId": agent,
            "toolName": tool,
            "inputs": arguments,
        }
        await self.recorded(NewEvent("moot.tool.asked", asked))
        return await self._host.speakers.answer_to(self._head, self.node_id, name)

    def say(self, delta: str) -> None:
        if self._wake.task not in SPOKEN or not delta:
            return
        if self._speech is None:
            talk = self._host.runs.current(self._head).run.conversations[self.node_id]
            who = {"role": "agent", "from": self._wake.agent, "speakerId": self._wake.agent}
            self._speech = self._host.speeches.begin(
                self.run_id, talk.conversation_id, self._voice, who
            )
        try:
            speech = self._speech.speech_id
            self._host.speeches.say(self.run_id, speech, self._voice, delta)
        except NotFound:  # others have crowded it out; the whole turn is still to come
            self._speech = None

    def take_back(self) -> None:
        self.fall_silent(void=True)

    def fall_silent(self, void: bool = False) -> None:
        if self._speech is not None:
            self._host.speeches.over(self.run_id, self._speech.speech_id, self._voice, void)
            self._speech = None
