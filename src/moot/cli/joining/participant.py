"""A participant of a thread: speak, wait for questions and show presence."""

import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from moot.cli.joining.briefing import MAX_TURNS, participant_ids, read_newest_turns
from moot.cli.shared.client import Api, api_path, error_from_answer
from moot.cli.shared.errors import CommandError

#: seconds of one poll, and seconds after which a lasting state is sent again
POLL, REPEAT = 20, 45.0


class Participant:
    """A name in a thread, spoken for with a key. Without a name it is the key's own person."""

    def __init__(self, api: Api, thread_id: str, name: str | None = None) -> None:
        self.api, self.thread_id, self.name = api, thread_id, name
        self._state, self._signed_at = "", 0.0

    @property
    def called(self) -> str:
        short = (self.name or "you").rpartition(":")[2]
        return short[:1].upper() + short[1:]

    def thread(self) -> dict[str, Any]:
        return dict(self.api.get(self._path()))

    def say(
        self,
        content: Any,
        *,
        kind: str = "message",
        to: str | None = None,
        reply_to: str | None = None,
        own_id: str | None = None,
        **meta: Any,
    ) -> dict[str, Any]:
        """Return the event as it is in the log, and the host's warning if there is one.

        With ``own_id`` a turn may be sent again after a lost answer: the host records it once.
        """
        turn_meta = {**meta, **({"reply_to": reply_to} if reply_to else {})}
        body = {"type": kind, "content": content, "meta": turn_meta, **self._from()}
        if to is not None:
            body["to"] = to
        if own_id is not None:
            body["id"] = own_id
        answer = self.api.post(api_path("threads", self.thread_id, "events"), body)
        warning = {"warning": answer["warning"]} if "warning" in answer else {}
        return {**answer["event"], **warning}

    def next(self, after: int | None, wait: int) -> dict[str, Any] | None:
        """Return the next question, or None if none comes within ``wait`` seconds."""
        query: dict[str, Any] = {"wait": wait}
        if after is not None:
            query["after"] = after
        if self.name is not None:
            query["as"] = self.name
        answer = self.api.backend.call("GET", f"{self._path('next')}?{urlencode(query)}")
        if answer.status >= 400:
            raise error_from_answer(answer, self.api.backend.place)
        return None if answer.status == 204 else dict(answer.data())

    def events(self, most: int = MAX_TURNS) -> list[dict[str, Any]]:
        """Return the newest turns of the thread."""
        return read_newest_turns(self.api, self.thread_id, most)

    def sign(self, state: str, **details: Any) -> None:
        """Send a presence state when it is new or the last one is old. Ignore errors."""
        now = time.monotonic()
        if state == self._state and now - self._signed_at < REPEAT:
            return
        self._state, self._signed_at = state, now
        body = {"state": state, **self._from(), **({"details": details} if details else {})}
        with suppress(CommandError):
            self.api.post(api_path("threads", self.thread_id, "presence"), body)

    def steer(self, **content: Any) -> None:
        self.api.post(self._path("controls"), {"content": content, **self._from()})

    def take_seat(self, profile: dict[str, Any]) -> bool:
        """Join the thread if needed; people need no invitation.

        Return whether it joined by itself, now or earlier, and was not invited by others.
        """
        from moot.core.text.names import is_person

        name = str(self.name or "user")
        if is_person(name):
            return False
        thread = self.thread()
        if name.removeprefix("host:") not in {
            each.removeprefix("host:") for each in participant_ids(thread)
        }:
            invitation = {"participant_id": name, "profile": profile}
            self.api.post(self._path("controls"), {"content": {"invite": invitation}})
            return True
        return bool(_profile(thread, name) == profile)

    def _from(self) -> dict[str, str]:
        return {} if self.name is None else {"from": self.name}

    def _path(self, *more: str) -> str:
        return api_path("v1", "host", "moot", "threads", self.thread_id, *more)


def _profile(thread: dict[str, Any], name: str) -> Any:
    """Return the profile of an invited participant."""
    from moot.core.text.names import full_name

    for each in thread["state"]["participants"]["invited"]:
        if full_name(str(each["id"])) == full_name(name):
            return each.get("profile")
    return None
