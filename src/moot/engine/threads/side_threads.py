"""Side threads whose end is owed to the thread they were begun in."""

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from moot.core.errors import MootError, RunNotFound, Unavailable
from moot.core.events import decode
from moot.core.state.conversation import Conversation, thread_id, title_of
from moot.core.state.run import Run
from moot.core.threads.side_threads import LinkedFrom, SideEnded, summary_of

if TYPE_CHECKING:
    from moot.engine.host import Host

#: tenant, run and gate of the thread that waits
Waiting = tuple[str, str, str]


class Sides:
    """Looked at once when they are linked or the host starts, and then when they end."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        #: (tenant, side thread) -> who waits for its end
        self._waiting: dict[tuple[str, str], set[Waiting]] = {}

    def watch(self, run: Run, sides: list[tuple[str, str]]) -> None:
        self.ended(run)
        for node_id, thread in sides:
            waiting = self._waiting.setdefault((run.tenant, thread), set())
            mine = (run.tenant, run.run_id, node_id)
            if mine not in waiting:
                waiting.add(mine)
                self._host.tasks.start(self._look(run.tenant, thread, _link_to(run, node_id)))

    def ended(self, run: Run) -> None:
        """A run is over, or one of its conversations is."""
        for talk in run.conversations.values() if self._waiting else ():
            if not talk.open and (run.tenant, thread_id(run, talk)) in self._waiting:
                self._host.tasks.start(self._look(run.tenant, thread_id(run, talk)))

    async def _look(self, tenant: str, thread: str, link: dict[str, str] | None = None) -> None:
        try:
            found = await self._summary(tenant, thread)
            if found is not None:
                await self._tell(tenant, thread, found)
            elif link is not None:
                await self._link_back(tenant, thread, link)
        except Unavailable:
            for _, run_id, _ in self._waiting.pop((tenant, thread), set()):
                self._host.look_again(tenant, run_id)

    async def _summary(self, tenant: str, thread: str) -> str | None:
        """None while it goes on."""
        try:
            run = (await self._host.view(tenant, re.split("[~:]", thread)[0])).run
        except RunNotFound:
            return "it is not here any more."
        talk = next((t for t in run.conversations.values() if thread_id(run, t) == thread), None)
        if talk is None:
            return "it is not here any more."
        return None if talk.open else await self._outcome(run, talk)

    async def _link_back(self, tenant: str, thread: str, link: dict[str, str]) -> None:
        """It is told who has linked it, if it was not before."""
        run = (await self._host.view(tenant, re.split("[~:]", thread)[0])).run
        at = self._host.clock.millis()
        for talk in run.conversations.values():
            if thread_id(run, talk) == thread:
                command = LinkedFrom(node_id=talk.node_id, at=at, **link)
                with suppress(RunNotFound):
                    await self._host.handle(tenant, run.run_id, command)

    async def _outcome(self, run: Run, talk: Conversation) -> str:
        """The event of the close is the newest of the conversation, unless its run was ended."""
        rows = await self._host.store.read(run.tenant, run.run_id, talk.last_seq - 1, 1)
        event = decode(rows[0]) if rows else None
        if event is None or event.type != "conversation.closed":
            return f"its run {run.status.value}."
        final = event.payload.get("finalTurn")
        last = final.get("content") if isinstance(final, dict) else None
        return summary_of(event.payload.get("outcome"), last)

    async def _tell(self, tenant: str, thread: str, summary: str) -> None:
        at = self._host.clock.millis()
        for _, run_id, node_id in self._waiting.pop((tenant, thread), set()):
            command = SideEnded(node_id=node_id, thread=thread, summary=summary, at=at)
            try:
                await self._host.handle(tenant, run_id, command)
            except Unavailable:
                self._host.look_again(tenant, run_id)
            except MootError:
                continue  # it has ended, too: nobody is left to be told


def _link_to(run: Run, node_id: str) -> dict[str, str]:
    talk = run.conversations[node_id]
    return {"thread": thread_id(run, talk), "title": title_of(run, talk)}
