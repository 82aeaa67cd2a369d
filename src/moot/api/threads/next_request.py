"""Long poll for the next request to a participant outside the host."""

import asyncio

import msgspec

from moot.api.agent_bridge import posts
from moot.api.agent_bridge.thread_log import PAGE, ThreadLog
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.runs.event_stream import seconds_until_expiry
from moot.api.threads import presence
from moot.api.threads.inputs import agent_profiles
from moot.api.threads.lookup import find_thread
from moot.core.errors import ConversationClosed
from moot.core.events import decode
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.mutes import is_muted
from moot.core.state.run import Run
from moot.core.text.names import is_person
from moot.core.threads.pending_requests import PendingRequest, PendingRequests, RequestReader
from moot.engine.streams.hub import StreamSubscription
from moot.wire.agent_bridge import BridgeEvent
from moot.wire.threads import DueRequest

USUAL_WAIT, LONGEST_WAIT = 30, 60
#: Events searched for open requests without a cursor.
NEWEST = 2000
#: Events before a cursor that may hold the turn of a request.
BEFORE = 64
TURN_TYPES = ("message", "task", "result")


async def wait_for_request(request: Request) -> Reply:
    """Return the next request at once when there is one, or 204 after the wait."""
    wait = request.integer("wait", USUAL_WAIT, 0, LONGEST_WAIT)
    run, conversation = await find_thread(request)
    who, name = posts.speaker_and_name(request, request.query.get("as") or msgspec.UNSET)
    presence.check_takes_part(request, conversation, who, name)
    profiles = await agent_profiles(request, [name])
    pending = _NextRequest(request, name, bool(profiles))
    hub = request.services.host.hub
    reader = hub.subscribe(run.run_id, holder=request.caller.id)
    try:
        return await pending.wait(reader, min(wait, seconds_until_expiry(request)))
    finally:
        hub.unsubscribe(run.run_id, reader)


class _NextRequest:
    """One call: its cursor and the request it has found."""

    def __init__(self, request: Request, name: str, spoken_for: bool) -> None:
        self._request, self._name, self._spoken_for = request, name, spoken_for
        has_cursor = "after" in request.query
        self._after = request.integer("after", -1, -1, 2**53) if has_cursor else None
        self._due: PendingRequest | None = None

    async def wait(self, reader: StreamSubscription, wait: float) -> Reply:
        clock = asyncio.get_running_loop().time
        until = clock() + wait
        while True:
            reader.waiting.clear()  # the loop reads the log itself
            reader.lagging = False
            run, conversation = await find_thread(self._request)
            if not conversation.open:
                raise ConversationClosed("The conversation is closed; nobody is asked any more.")
            self._mark_listening(run, conversation)
            self._due = self._due or await self._find_due(run, conversation)
            if self._due is not None and self._may_speak(conversation):
                return await self._reply(run, conversation, self._due)
            left = until - clock()
            if left <= 0 or reader.closed:
                return Reply(None, 204)
            await reader.wait(left)

    def _mark_listening(self, run: Run, conversation: Conversation) -> None:
        """Set the participant's presence to listening."""
        presence, place = (
            self._request.services.host.presence,
            (run.run_id, conversation.conversation_id),
        )
        presence.set(place, self._name, "listening")

    def _may_speak(self, conversation: Conversation) -> bool:
        """Return whether an answer would be accepted now. Otherwise the request waits."""
        now = self._request.services.clock.millis()
        is_held = conversation.state.paused or is_muted(conversation.state, self._name, now)
        return is_person(self._name) or not is_held

    async def _find_due(self, run: Run, conversation: Conversation) -> PendingRequest | None:
        """Return the first request after the cursor.

        Without a cursor, return the oldest one that is not answered.
        """
        listener = RequestReader(conversation, self._name, self._spoken_for)
        newest = run.next_sequence - 1
        owed = PendingRequests(listener) if self._after is None else None
        cursor = newest - NEWEST if self._after is None else self._after
        after = max(conversation.opened_seq - 1, cursor - BEFORE)
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
                elif (due := listener.asked(event)) is not None and after > cursor:
                    return due
        withheld = listener.withheld
        self._after = after if withheld is None else max(cursor, withheld - 1)
        return owed.first_open() if owed is not None else None

    async def _reply(self, run: Run, conversation: Conversation, due: PendingRequest) -> Reply:
        page = await ThreadLog(self._request.services.store, run, conversation).after(
            due.turn - 1, 1
        )
        events = [msgspec.json.decode(row, type=BridgeEvent) for row in page.events]
        turns = [event for event in events if event.seq == due.turn and event.type in TURN_TYPES]
        answer = DueRequest(
            thread_id=thread_id(run, conversation),
            speaks_as=self._name,
            seq=due.seq,
            reason=due.reason,
            task=due.task,
            event=turns[-1] if turns else None,
        )
        return Reply(answer, 200, {"Cache-Control": "no-store"})


NEXT_REQUEST_ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}/next", call=wait_for_request,
        scope="runs:read", joined=True, errors=(204, 404, 409, 422),
        summary="The next thing a participant is asked, waiting for it",
        query={
            "wait": ({"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT}, "seconds"),
            "after": ({"type": "integer", "minimum": -1},
                      "seq of the last answer of this route; without it, what is not answered yet"),
            "as": ({"type": "string"}, "which participant, where the key has several"),
        },
        tag="Threads", operation_id="waitForRequest", answer=DueRequest,
        description="Waits for the next request to a participant outside the host, and returns it "
        "with the turn to answer. Returns 204 when no request comes in time, and refuses a "
        "closed thread with 409.",
    ),
)  # fmt: skip
