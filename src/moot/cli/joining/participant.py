"""A participant of a thread: speak, wait for questions and show presence."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import to_builtins

from moot.cli.joining.briefing import MAX_TURNS, participant_ids, read_newest_turns
from moot.cli.shared.client import Api
from moot.cli.shared.errors import CommandError
from moot.client.operations import agent_bridge, threads
from moot.core.text.names import full_name, is_person
from moot.wire.agent_bridge import BridgeEvent, PostedType
from moot.wire.threads import DueRequest, ThreadView

if TYPE_CHECKING:
    from moot.core.threads.presence import PresenceState

#: seconds of one poll, and seconds after which a lasting state is sent again
POLL, REPEAT = 20, 45.0


class SpokenTurn(NamedTuple):
    """A turn as it is in the log, and the host's warning if there is one."""

    event: BridgeEvent
    warning: str | None

    def as_json(self) -> dict[str, object]:
        warning = {} if self.warning is None else {"warning": self.warning}
        return {**to_builtins(self.event), **warning}


class Participant:
    """A name in a thread, spoken for with a key. Without a name it is the key's own person."""

    def __init__(self, api: Api, thread_id: str, name: str | None = None) -> None:
        self.api, self.thread_id, self.name = api, thread_id, name
        self._state, self._signed_at = "", 0.0

    @property
    def called(self) -> str:
        short = (self.name or "you").rpartition(":")[2]
        return short[:1].upper() + short[1:]

    def thread(self) -> ThreadView:
        return self.api.send(threads.get_thread(self.thread_id))

    def say(
        self,
        content: Any,
        *,
        kind: PostedType = "message",
        to: str | None = None,
        reply_to: str | None = None,
        own_id: str | None = None,
        tags: Sequence[str] = (),
    ) -> SpokenTurn:
        """Say something.

        With ``own_id`` a turn may be sent again after a lost answer: the host records it once.
        """
        meta: dict[str, object] = {"tags": list(tags)} if tags else {}
        if reply_to:
            meta["reply_to"] = reply_to
        call = agent_bridge.post_bridge_event(
            self.thread_id, content, kind=kind, sender=self.name, to=to, meta=meta, own_id=own_id
        )
        result = self.api.send(call)
        if result.event is None:
            raise CommandError("the server did not say what became of the turn.")
        return SpokenTurn(result.event, result.warning)

    def next(self, after: int | None, wait: int) -> DueRequest | None:
        """Return the next question, or None if none comes within ``wait`` seconds."""
        call = threads.next_request(self.thread_id, after=after, wait=wait, name=self.name)
        return self.api.send(call)

    def events(self, most: int = MAX_TURNS) -> list[BridgeEvent]:
        """Return the newest turns of the thread."""
        return read_newest_turns(self.api, self.thread_id, most)

    def sign(self, state: "PresenceState", **details: Any) -> None:
        """Send a presence state when it is new or the last one is old. Ignore errors."""
        now = time.monotonic()
        if state == self._state and now - self._signed_at < REPEAT:
            return
        self._state, self._signed_at = state, now
        call = agent_bridge.send_bridge_presence(
            self.thread_id, state, sender=self.name, details=details or None
        )
        with suppress(CommandError):
            self.api.send(call)

    def steer(self, **content: Any) -> None:
        self.api.send(threads.control_thread(self.thread_id, content, sender=self.name))

    def take_seat(self, profile: dict[str, str]) -> bool:
        """Join the thread if needed; people need no invitation.

        Return whether it joined by itself, now or earlier, and was not invited by others.
        """
        name = str(self.name or "user")
        if is_person(name):
            return False
        thread = self.thread()
        if name.removeprefix("host:") not in {
            each.removeprefix("host:") for each in participant_ids(thread)
        }:
            self.api.send(threads.invite_participant(self.thread_id, name, profile=profile))
            return True
        return bool(_profile(thread, name) == profile)


def _profile(thread: ThreadView, name: str) -> Any:
    """Return the profile of an invited participant."""
    for member in thread.state.participants.invited:
        if full_name(member.id) == full_name(name):
            return member.profile
    return None
