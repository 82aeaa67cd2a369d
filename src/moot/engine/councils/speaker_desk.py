"""The desk of a member that has the floor in a conversation."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moot.agents.invocation.desk import ToolCall
from moot.core.councils.decide import HOST, WakeReport
from moot.core.errors import Conflict, MootError, NotFound
from moot.core.events import NewEvent
from moot.core.json import canonical
from moot.core.runs import handles
from moot.core.state.agents import ASKED, DECIDED
from moot.core.state.floor import SPOKEN, Wake
from moot.core.state.node import NodeState
from moot.core.state.usage import ABANDONED
from moot.core.trace import Trace, of_run, within
from moot.core.workflows.node_types import copied
from moot.engine.agents.node_desk import as_it_was
from moot.engine.agents.voice import AgentVoice, Thought
from moot.engine.councils.slots import Slot
from moot.engine.effects.ledger import Effect, EffectFailed, begun, name_of
from moot.engine.head import Ground, Head
from moot.engine.streams.speech import Speech

if TYPE_CHECKING:
    from moot.engine.host import Host

#: calls one wake may lead to: their names are numbered within it
MOST_CALLS = 99


class Mute:
    """A train of thought of somebody in company: it is told only when it is whole."""

    def __init__(self, thought: Thought) -> None:
        self._thought = thought

    async def add(self, piece: str) -> None:
        self._thought.hear(piece)

    async def close(self) -> None:
        await self._thought.close()


class WakeDesk:
    """A member's desk. What it reports belongs to its wake; a wake that is over takes no more.

    Facts, and answers of models, wait for the next thing that must be on disk, and go there with
    it: with the next call, or with the turn.
    """

    def __init__(
        self,
        host: "Host",
        head: Head,
        node_id: str,
        wake_id: str,
        wake: Wake,
        slot: Slot,
    ) -> None:
        self._slot = slot
        self._host, self._head, self._wake_id, self._wake = host, head, wake_id, wake
        self.run_id, self.tenant, self.node_id = head.run.run_id, head.run.tenant, node_id
        self.configurable = head.run.configurable
        self.attempt, self.earlier, self.work = 1, 0, wake_id
        seq, _, index = wake_id.partition(".")
        self._first = int(seq) * 10_000 + int(index or 0) * 100
        self._calls = self._asks = self._decisions = 0
        self.payer: str | None = None
        #: whoever has not begun has made no calls either
        self._new = not wake.said
        self._facts: list[NewEvent] = []
        #: what the call that was broken off has used up
        self._known: dict[str, Any] | None = None
        self._voice = AgentVoice(self, wake.agent)
        self._speech: Speech | None = None
        #: each run has a mouth of its own: many councils do not talk one another down
        self._mouth = f"{HOST}:{self.run_id}"

    @property
    def charged(self) -> tuple[str, ...]:
        return handles.payers(self._head.run, self._wake.agent)

    async def warn(self, message: str) -> None:
        """A conversation has no place for it; who looks at the member sees it."""

    @property
    def inherited(self) -> int:
        return self._head.run.inherited

    @property
    def standing(self) -> NodeState:
        return self._host.runs.current(self._head).run.nodes[self.node_id]

    @property
    def secrets(self) -> list[str]:
        """Texts that nothing a member says of itself may show."""
        return self._host.runs.current(self._head).secrets

    def redacted(self, value: Any) -> Any:
        return self._host.runs.current(self._head).redacted(value)

    def now(self) -> int:
        return self._host.clock.millis()

    async def effect(
        self,
        provider_key: str,
        call: Callable[[str], Awaitable[Any]],
        idempotent: bool = True,
        key: str | None = None,
    ) -> Any:
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise Conflict("One turn leads to that many calls at most.", limit=MOST_CALLS)
        effect = Effect(
            self._first + self._calls, provider_key, call, idempotent, key,
            new=self._new, later=self._later if idempotent else None,
        )  # fmt: skip
        try:
            return await self._host.activities.ledger.once(self, effect)
        except EffectFailed as failed:
            raise as_it_was(failed) from None
        except asyncio.CancelledError:
            self._abandoned(effect)
            raise

    def trace(self, name: str) -> Trace:
        return within(of_run(self.run_id, self._head.run.trace), name)

    async def noted(self, type_: str, payload: dict[str, Any]) -> None:
        await self._voice.noted(type_, payload)

    def thinking(self) -> Mute:
        return Mute(self._voice.thinking())

    async def tool_called(self, tool: str, arguments: Any, transport: str) -> ToolCall:
        return await self._voice.tool_called(tool, arguments, transport=transport)

    async def decided(self, decision: Any, confidence: float | None, threshold: float) -> Any:
        """Nobody is asked: what a member says is there for all to answer."""
        payload = {"agentId": self._wake.agent, "decision": copied(decision)}
        hints = {"nth": self._decisions}
        self._decisions += 1
        await self.report(NewEvent(DECIDED, payload, self.node_id, hints=hints))
        return decision

    async def report(self, *facts: NewEvent) -> None:
        self._facts += facts

    def _later(self, fact: NewEvent) -> None:
        self._facts.append(fact)

    async def recorded(self, *facts: NewEvent) -> None:
        """On disk, and what was reported before with them."""
        await self._send((*self.facts(), *facts), required=True)

    async def _send(self, facts: tuple[NewEvent, ...], required: bool) -> None:
        for fact in facts:
            fact.payload = copied(fact.payload)
            fact.node_id = self.node_id
        command = WakeReport(self.node_id, self._wake_id, facts, self.now(), required)
        ground = Ground(self._head, self._wake.seq)
        work = self._host.handle(self.tenant, self.run_id, command, ground=ground)
        await asyncio.shield(self._host.tasks.start(work))

    def tell(self, type_: str, payload: dict[str, Any]) -> None:
        self._host.tasks.start(self._tell(NewEvent(type_, payload)))

    async def _tell(self, fact: NewEvent) -> None:
        with suppress(MootError):  # it is told, or nobody misses it
            await self._send((fact,), required=False)

    def facts(self) -> tuple[NewEvent, ...]:
        """What has been reported and is on its way nowhere yet."""
        found, self._facts = tuple(self._facts), []
        return found

    async def agreed(self, agent: str, tool: str, arguments: dict[str, Any]) -> bool:
        self._asks += 1
        name = f"{self._wake_id}.{self._asks}"
        given = self.redacted(arguments)
        asked = {
            "wakeId": self._wake_id,
            "askId": name,
            "agentId": agent,
            "toolName": tool,
            "inputs": given,
            "argsHash": canonical.digest(given),
        }
        await self.recorded(NewEvent(ASKED, asked))
        async with self._slot.aside():
            return await self._host.speakers.answer_to(self._head, self.node_id, name)

    def stir(self) -> None:
        self._slot.stir()

    def given_up(self, known: dict[str, Any]) -> None:
        self._known = known

    def _abandoned(self, effect: Effect) -> None:
        """The floor was taken from it: nobody waits for the answer, and its cost is not lost."""
        known, self._known = self._known, None
        if known is not None and self._slot.over:
            told = begun(self, effect, name_of(self, effect, self.run_id))
            self.tell(ABANDONED, {**told, "result": known})

    async def say(self, delta: str) -> None:
        """Words reach who listens now; the whole turn is kept."""
        if self._wake.task not in SPOKEN or not delta:
            return
        if self._speech is None:
            talk = self._host.runs.current(self._head).run.conversations[self.node_id]
            who = {"role": "agent", "from": self._wake.agent, "speakerId": self._wake.agent}
            self._speech = self._host.speeches.begin(
                self.run_id, talk.conversation_id, self._mouth, who
            )
        try:
            speech = self._speech.speech_id
            self._host.speeches.say(self.run_id, speech, self._mouth, delta)
        except NotFound:  # others have crowded it out; the whole turn is still to come
            self._speech = None

    async def said(self, finish: str, model: str) -> None:
        """The turn says it."""

    async def recalled(self, memory: str, agent: str) -> list[str]:
        """In company an agent goes by what is said."""
        return []

    async def remember(self, memory: str, agent: str, text: str) -> None:
        """What was said is in the log."""

    def take_back(self) -> None:
        self.fall_silent(void=True)

    def fall_silent(self, void: bool = False) -> None:
        if self._speech is not None:
            self._host.speeches.over(self.run_id, self._speech.speech_id, self._mouth, void)
            self._speech = None
