"""The context of a council member that has the floor."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from moot.agents.invocation.context import AgentContext, OpenToolCall, ReasoningStream
from moot.core.conversations.turns import HOST
from moot.core.councils.decide import InvitationReport
from moot.core.errors import Conflict, MootError, NotFound
from moot.core.events import NewEvent, copy_payload
from moot.core.json import canonical
from moot.core.payloads.agents import AgentDecided
from moot.core.payloads.base import Payload
from moot.core.payloads.councils import ToolAsked
from moot.core.payloads.memory import EffectAbandoned
from moot.core.runs import standing_agents
from moot.core.state.floor import SPOKEN_TASKS, Invitation
from moot.core.trace import Trace, call_trace, run_trace
from moot.core.workflows.node_types import copy_json
from moot.engine.agents.node_agent import restore_model_error
from moot.engine.agents.voice import AgentVoice, ReportContext
from moot.engine.councils.work_limits import WorkPermit
from moot.engine.effects.ledger import Effect, EffectFailed, effect_id, effect_started
from moot.engine.head import BasisEvent, Head
from moot.engine.streams.speech import OpenSpeech

if TYPE_CHECKING:
    from moot.engine.host import Host

#: calls of one invitation; their ids are numbered within it
MOST_CALLS = 99


class MemberContext(ReportContext, AgentContext):
    """The context of one invitation. An invitation that is over takes no more reports.

    Facts and answers of models wait for the next record that must be on disk, and go there with
    it: with the next call, or with the turn.
    """

    def __init__(
        self,
        host: "Host",
        head: Head,
        node_id: str,
        wake_id: str,
        wake: Invitation,
        slot: WorkPermit,
    ) -> None:
        super().__init__(host, head, node_id, wake_id, (1, 0))
        self._slot, self._wake_id, self._wake = slot, wake_id, wake
        self._configurable = head.run.configurable
        seq, _, index = wake_id.partition(".")
        self._first = int(seq) * 10_000 + int(index or 0) * 100
        self._calls = self._asks = self._decisions = 0
        #: the member has not started, so it has made no calls either
        self._new = not wake.said
        self._facts: list[NewEvent] = []
        #: the usage of a call that was broken off
        self._given_up_usage: dict[str, Any] | None = None
        self._voice = AgentVoice(self, wake.agent)
        self._speech: OpenSpeech | None = None
        #: each run has its own principal, so that councils do not end one another's speeches
        self._principal = f"{HOST}:{self.run_id}"

    @property
    def configurable(self) -> dict[str, Any]:
        return self._configurable

    @property
    def charged(self) -> tuple[str, ...]:
        return standing_agents.budget_owners(self._head.run, self._wake.agent)

    async def warn(self, message: str) -> None:
        """Do nothing: a conversation has no place for warnings."""

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
            raise restore_model_error(failed) from None
        except asyncio.CancelledError:
            self._abandoned(effect)
            raise

    def trace(self, name: str) -> Trace:
        return call_trace(run_trace(self.run_id, self._head.run.trace), name)

    async def noted(self, payload: Payload) -> None:
        await self._voice.noted(payload)

    def thinking(self) -> ReasoningStream:
        return self._voice.open_thought("none")

    async def tool_called(self, tool: str, arguments: Any, transport: str) -> OpenToolCall:
        return await self._voice.tool_called(tool, arguments, transport=transport)

    async def decided(self, decision: Any, confidence: float | None, threshold: float) -> Any:
        """Record the decision. No person is asked, because all participants can answer it."""
        payload = AgentDecided(agent_id=self._wake.agent, decision=copy_json(decision))
        event = NewEvent(payload, self.node_id, nth=self._decisions)
        self._decisions += 1
        await self.report(event)
        return decision

    async def report(self, *facts: NewEvent) -> None:
        self._facts += facts

    def _later(self, fact: NewEvent) -> None:
        self._facts.append(fact)

    async def recorded(self, *facts: NewEvent) -> None:
        """Return when the facts, and those reported before, are on disk."""
        await self._send((*self.facts(), *facts), required=True)

    async def _send(self, facts: tuple[NewEvent, ...], required: bool) -> None:
        for fact in facts:
            copy_payload(fact)
            fact.node_id = self.node_id
        command = InvitationReport(self.node_id, self._wake_id, facts, self.now(), required)
        basis = BasisEvent(self._head, self._wake.seq)
        work = self._host.handle(self.tenant, self.run_id, command, basis=basis)
        await asyncio.shield(self._host.tasks.start(work))

    def tell(self, payload: Payload) -> None:
        self._host.tasks.start(self._tell(NewEvent(payload)))

    async def _tell(self, fact: NewEvent) -> None:
        with suppress(MootError):  # the fact is optional
            await self._send((fact,), required=False)

    def facts(self) -> tuple[NewEvent, ...]:
        """Take the reported facts that are not on their way to disk."""
        facts, self._facts = tuple(self._facts), []
        return facts

    async def ask_permission(self, agent: str, tool: str, arguments: dict[str, Any]) -> bool:
        self._asks += 1
        name = f"{self._wake_id}.{self._asks}"
        redacted_arguments = self.redacted(arguments)
        request = ToolAsked(
            wake_id=self._wake_id,
            ask_id=name,
            agent_id=agent,
            tool_name=tool,
            inputs=redacted_arguments,
            args_hash=canonical.canonical_digest(redacted_arguments),
        )
        await self.recorded(NewEvent(request))
        async with self._slot.released():
            return await self._host.speakers.answer_to(self._head, self.node_id, name)

    def stir(self) -> None:
        self._slot.stir()

    def given_up(self, known: dict[str, Any]) -> None:
        self._given_up_usage = known

    def _abandoned(self, effect: Effect) -> None:
        """Record the cost of a call whose member has lost the floor."""
        usage, self._given_up_usage = self._given_up_usage, None
        if usage is not None and self._slot.lost_floor:
            started = effect_started(self, effect, effect_id(self, effect, self.run_id))
            self.tell(EffectAbandoned(**asdict(started), result=usage))

    async def say(self, delta: str) -> None:
        """Send the words to current listeners. Only the whole turn is stored."""
        if self._wake.task not in SPOKEN_TASKS or not delta:
            return
        if self._speech is None:
            conversation = self._host.runs.current(self._head).run.conversations[self.node_id]
            speaker = {"role": "agent", "from": self._wake.agent, "speakerId": self._wake.agent}
            self._speech = self._host.speeches.begin(
                self.run_id, conversation.conversation_id, self._principal, speaker
            )
        try:
            speech = self._speech.speech_id
            self._host.speeches.say(self.run_id, speech, self._principal, delta)
        except NotFound:  # it made room for others; the whole turn still follows
            self._speech = None

    def take_back(self) -> None:
        self.end_speech(void=True)

    def end_speech(self, void: bool = False) -> None:
        if self._speech is not None:
            self._host.speeches.over(self.run_id, self._speech.speech_id, self._principal, void)
            self._speech = None
