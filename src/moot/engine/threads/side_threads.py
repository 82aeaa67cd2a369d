"""Report the end of side threads to the threads that link them."""

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from moot.core.errors import MootError, RunNotFound, Unavailable
from moot.core.events import decode
from moot.core.payloads.conversations import ConversationEnded
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.run import Run
from moot.core.state.titles import current_title
from moot.core.threads.side_threads import SideThreadEnded, ThreadLinkedFrom, summarise_outcome

if TYPE_CHECKING:
    from moot.engine.host import Host

#: tenant, run and node of the gate that waits
WaitingGate = tuple[str, str, str]


class SideThreads:
    """Checks side threads when they are linked, when the host starts, and when they end."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        #: (tenant, side thread) -> gates that wait for its end
        self._waiting: dict[tuple[str, str], set[WaitingGate]] = {}

    def watch(self, run: Run, sides: list[tuple[str, str]]) -> None:
        self.report_closed(run)
        for node_id, thread in sides:
            waiting = self._waiting.setdefault((run.tenant, thread), set())
            gate = (run.tenant, run.run_id, node_id)
            if gate not in waiting:
                waiting.add(gate)
                self._host.tasks.start(self._check(run.tenant, thread, _link_fields(run, node_id)))

    def report_closed(self, run: Run) -> None:
        """Report conversations of the run that are closed."""
        for conversation in run.conversations.values() if self._waiting else ():
            if (
                not conversation.open
                and (run.tenant, thread_id(run, conversation)) in self._waiting
            ):
                self._host.tasks.start(self._check(run.tenant, thread_id(run, conversation)))

    async def _check(self, tenant: str, thread: str, link: dict[str, str] | None = None) -> None:
        try:
            summary = await self._summary(tenant, thread)
            if summary is not None:
                await self._report_end(tenant, thread, summary)
            elif link is not None:
                await self._link_back(tenant, thread, link)
        except Unavailable:
            for _, run_id, _ in self._waiting.pop((tenant, thread), set()):
                self._host.look_again(tenant, run_id)

    async def _summary(self, tenant: str, thread: str) -> str | None:
        """Return the summary, or None while the thread is open."""
        try:
            run = (await self._host.view(tenant, re.split("[~:]", thread)[0])).run
        except RunNotFound:
            return "it is not here any more."
        conversation = next(
            (each for each in run.conversations.values() if thread_id(run, each) == thread), None
        )
        if conversation is None:
            return "it is not here any more."
        return None if conversation.open else await self._outcome(run, conversation)

    async def _link_back(self, tenant: str, thread: str, link: dict[str, str]) -> None:
        """Record in the side thread that this thread links it, unless it knows."""
        run = (await self._host.view(tenant, re.split("[~:]", thread)[0])).run
        at = self._host.clock.millis()
        for conversation in run.conversations.values():
            if thread_id(run, conversation) == thread:
                command = ThreadLinkedFrom(node_id=conversation.node_id, at=at, **link)
                with suppress(RunNotFound):
                    await self._host.handle(tenant, run.run_id, command)

    async def _outcome(self, run: Run, conversation: Conversation) -> str:
        """Return the summary. The closing event is the newest one, unless the run itself was
        ended."""
        rows = await self._host.store.read(run.tenant, run.run_id, conversation.last_seq - 1, 1)
        event = decode(rows[0]) if rows else None
        closed = event.payload if event is not None else None
        if not isinstance(closed, ConversationEnded):
            return f"its run {run.status.value}."
        return summarise_outcome(closed.outcome, closed.final_turn.body)

    async def _report_end(self, tenant: str, thread: str, summary: str) -> None:
        at = self._host.clock.millis()
        for _, run_id, node_id in self._waiting.pop((tenant, thread), set()):
            command = SideThreadEnded(node_id=node_id, thread=thread, summary=summary, at=at)
            try:
                await self._host.handle(tenant, run_id, command)
            except Unavailable:
                self._host.look_again(tenant, run_id)
            except MootError:
                continue  # that thread has ended, too


def _link_fields(run: Run, node_id: str) -> dict[str, str]:
    conversation = run.conversations[node_id]
    return {"thread": thread_id(run, conversation), "title": current_title(run, conversation)}
