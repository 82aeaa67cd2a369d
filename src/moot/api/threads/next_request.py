"""The next thing a participant is asked: by long poll, for programs that take part from outside."""

import asyncio
from typing import Any

import msgspec

from moot.api.agent_bridge import posts
from moot.api.agent_bridge.view import PAGE, Thread
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.runs.event_stream import seconds_left
from moot.api.threads import councils, presence
from moot.core.errors import ConversationClosed
from moot.core.events import decode
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.run import Run
from moot.core.state.thread_controls import is_muted
from moot.core.text.names import is_person
from moot.core.threads.pending_requests import Due, Listener, Owed
from moot.engine.streams.hub import Subscription

USUAL_WAIT, LONGEST_WAIT = 30, 60
#: events that are looked through for what is owed, where no cursor is given
NEWEST = 2000
#: events before a cursor in which the turn may stand that a decision is about
BEFORE = 64
SPOKEN = ("message", "task", "result")


async def following(request: Request) -> Reply:
    """Answers at once when there is something; with nothing when the time is over."""
    wait = request.integer("wait", USUAL_WAIT, 0, LONGEST_WAIT)
    run, talk = await councils.place(request)
    who, name = posts.speaks(request, request.query.get("as") or msgspec.UNSET)
    presence.check_here(request, talk, who, name)
    known = await councils.profiles_of(request, [name])
    desk = _Desk(request, name, bool(known))
    hub = request.services.host.hub
    reader = hub.subscribe(run.run_id, holder=request.caller.id)
    try:
        return await desk.attend(reader, min(wait, seconds_left(request)))
    finally:
        hub.unsubscribe(run.run_id, reader)


class _Desk:
    """One call: where it has read to, and what it has found."""

    def __init__(self, request: Request, name: str, spoken_for: bool) -> None:
        self._request, self._name, self._spoken_for = request, name, spoken_for
        given = "after" in request.query
        self._after = request.integer("after", -1, -1, 2**53) if given else None
        self._due: Due | None = None

    async def attend(self, reader: Subscription, wait: float) -> Reply:
        clock = asyncio.get_running_loop().time
        until = clock() + wait
        while True:
            reader.waiting.clear()  # the log is looked at, whatever has come
            reader.lagging = False
            run, talk = await councils.place(self._request)
            if not talk.open:
                raise ConversationClosed("The conversation is closed; nobody is asked any more.")
            self._listens(run, talk)
            self._due = self._due or await self._look(run, talk)
            if self._due is not None and self._may_speak(talk):
                return await self._told(run, talk, self._due)
            left = until - clock()
            if left <= 0 or reader.closed:
                return Reply(None, 204)
            await reader.wait(left)

    def _listens(self, run: Run, talk: Conversation) -> None:
        """Who asks for the next thing is there, and does nothing else."""
        desk, place = self._request.services.host.presence, (run.run_id, talk.conversation_id)
        desk.set(place, self._name, "listening")

    def _may_speak(self, talk: Conversation) -> bool:
        """What was asked is kept for later while its answer would be refused."""
        now = self._request.services.clock.millis()
        held = talk.state.paused or is_muted(talk.state, self._name, now)
        return is_person(self._name) or not held

    async def _look(self, run: Run, talk: Conversation) -> Due | None:
        """The first after the cursor; without one, the oldest that is not answered yet."""
        listener = Listener(talk, self._name, self._spoken_for)
        newest = run.next_sequence - 1
        owed = Owed(listener) if self._after is None else None
        known = newest - NEWEST if self._after is None else self._after
        after = max(talk.opened_seq - 1, known - BEFORE)
        while after < newest:
            rows = await self._request.services.store.read(
                run.tenant, run.run_id, after, min(PAGE, newest - after)
            )
            if not rows:
                break
            for event in map(decode, rows):
                after = event.sequence
                if owed is not None:
                    owed.hear(event)
                elif (found := listener.asked(event)) is not None and after > known:
                    return found
        held = listener.withheld
        self._after = after if held is None else max(known, held - 1)
        return owed.offered() if owed is not None else None

    async def _told(self, run: Run, talk: Conversation, due: Due) -> Reply:
        page = await Thread(self._request.services.store, run, talk).after(due.turn - 1, 1)
        found = [msgspec.json.decode(row) for row in page.events]
        turns = [told for told in found if told["seq"] == due.turn and told["type"] in SPOKEN]
        body: dict[str, Any] = {
            "threadId": thread_id(run, talk),
            "as": self._name,
            "seq": due.seq,
            "reason": due.reason,
            "task": due.task,
            "event": turns[-1] if turns else None,
        }
        return Reply(body, 200, {"Cache-Control": "no-store"})


ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}/next", call=following,
        scope="runs:read", joined=True, errors=(204, 404, 409, 422),
        summary="The next thing a participant is asked, waiting for it",
        query={
            "wait": ({"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT}, "seconds"),
            "after": ({"type": "integer", "minimum": -1},
                      "seq of the last answer of this route; without it, what is not answered yet"),
            "as": ({"type": "string"}, "which participant, where the key has several"),
        },
    ),
)  # fmt: skip
