"""Somebody in a thread, as the command line sees it: what is said, asked and shown under a name."""

import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from moot.cli.joining.briefing import MOST_EVENTS, members, newest
from moot.cli.shared.client import Api, path_of, refusal
from moot.cli.shared.errors import Trouble

#: seconds of one poll, and how often a state is repeated that lasts
POLL, REPEAT = 20, 45.0


class Participant:
    """A name in a thread, spoken for with a key. Without a name it is the person of the key."""

    def __init__(self, api: Api, thread_id: str, name: str | None = None) -> None:
        self.api, self.thread_id, self.name = api, thread_id, name
        self._state, self._signed = "", 0.0

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
        """The event as it stands in the log, and the host's warning where it has one. With an id of
        the sender's own it may be said again where no answer came: it is heard once."""
        about = {**meta, **({"reply_to": reply_to} if reply_to else {})}
        body = {"type": kind, "content": content, "meta": about, **self._from()}
        if to is not None:
            body["to"] = to
        if own_id is not None:
            body["id"] = own_id
        answer = self.api.post(path_of("threads", self.thread_id, "events"), body)
        warned = {"warning": answer["warning"]} if "warning" in answer else {}
        return {**answer["event"], **warned}

    def next(self, after: int | None, wait: int) -> dict[str, Any] | None:
        """What is asked next; None when nothing is in so many seconds."""
        query: dict[str, Any] = {"wait": wait}
        if after is not None:
            query["after"] = after
        if self.name is not None:
            query["as"] = self.name
        answer = self.api.door.call("GET", f"{self._path('next')}?{urlencode(query)}")
        if answer.status >= 400:
            raise refusal(answer, self.api.door.place)
        return None if answer.status == 204 else dict(answer.data())

    def events(self, most: int = MOST_EVENTS) -> list[dict[str, Any]]:
        """The newest turns of the thread."""
        return newest(self.api, self.thread_id, most)

    def sign(self, state: str, **details: Any) -> None:
        """A sign of life, where it says something new or the last one grows old. Nothing depends
        on it, so trouble with it is none."""
        now = time.monotonic()
        if state == self._state and now - self._signed < REPEAT:
            return
        self._state, self._signed = state, now
        body = {"state": state, **self._from(), **({"details": details} if details else {})}
        with suppress(Trouble):
            self.api.post(path_of("threads", self.thread_id, "presence"), body)

    def steer(self, **content: Any) -> None:
        self.api.post(self._path("controls"), {"content": content, **self._from()})

    def take_seat(self, profile: dict[str, Any]) -> bool:
        """Comes in where it does not take part yet. People need no invitation. Whether it came in,
        now or when it was here before: nobody else has invited it."""
        from moot.core.text.names import is_person

        name = str(self.name or "user")
        if is_person(name):
            return False
        thread = self.thread()
        if name.removeprefix("host:") not in {
            each.removeprefix("host:") for each in members(thread)
        }:
            invited = {"participant_id": name, "profile": profile}
            self.api.post(self._path("controls"), {"content": {"invite": invited}})
            return True
        return bool(_profile(thread, name) == profile)

    def _from(self) -> dict[str, str]:
        return {} if self.name is None else {"from": self.name}

    def _path(self, *more: str) -> str:
        return path_of("v1", "host", "moot", "threads", self.thread_id, *more)


def _profile(thread: dict[str, Any], name: str) -> Any:
    """What is known of somebody who was invited."""
    from moot.core.text.names import full_name

    for each in thread["state"]["participants"]["invited"]:
        if full_name(str(each["id"])) == full_name(name):
            return each.get("profile")
    return None
