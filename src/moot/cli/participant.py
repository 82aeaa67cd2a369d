"""Somebody in a thread, as the command line sees it: what is said, asked and shown under a name."""

import json
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from moot.cli.briefing import MOST_EVENTS, members, newest
from moot.cli.client import Api, Client, path_of, refusal
from moot.cli.trouble import Trouble

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
        **meta: Any,
    ) -> dict[str, Any]:
        """The event as it stands in the log, and the host's warning where it has one."""
        about = {**meta, **({"reply_to": reply_to} if reply_to else {})}
        body = {"type": kind, "content": content, "meta": about, **self._from()}
        if to is not None:
            body["to"] = to
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

    def take_seat(self, profile: dict[str, Any]) -> None:
        """Comes in where it does not take part yet. People need no invitation."""
        name = str(self.name or "user")
        known = {each.removeprefix("host:") for each in members(self.thread())}
        if not name.startswith("user") and name.removeprefix("host:") not in known:
            invited = {"participant_id": name, "profile": profile}
            self.api.post(self._path("controls"), {"content": {"invite": invited}})

    def _from(self) -> dict[str, str]:
        return {} if self.name is None else {"from": self.name}

    def _path(self, *more: str) -> str:
        return path_of("v1", "host", "moot", "threads", self.thread_id, *more)


class Guest(Participant):
    """Somebody who joins with a key for this thread alone, and leaves again."""

    def __init__(self, host: Api, thread_id: str, name: str, profile: dict[str, Any]) -> None:
        self._host, self._key_id = host, ""
        super().__init__(host, thread_id, name)
        self.take_seat(profile)
        self.api = self._joined()

    def _joined(self) -> Api:
        """Who holds such a key already goes on with it."""
        door = self._host.door
        answer = door.call("POST", self._path("join"), json.dumps({"as": self.name}).encode())
        if answer.status == 403:
            return self._host
        if answer.status >= 400:
            raise refusal(answer, door.place)
        made = answer.data()
        self.name, self._key_id = str(made["as"]), str(made["keyId"])
        return Api(Client(door.place._replace(key=made["token"])))

    def leave(self) -> None:
        """Is not here any more, takes part no longer, and the key is no good."""
        self.sign("offline")
        with suppress(Trouble):
            self.steer(uninvite={"participant_id": self.name})
        if self._key_id:
            with suppress(Trouble):
                self._host.delete(path_of("v1", "host", "moot", "keys", self._key_id))
