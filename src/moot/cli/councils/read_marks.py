"""A person's read mark in a thread. Turns on the screen count as read."""

from contextlib import suppress
from typing import Any

from moot.cli.shared.client import Api, api_path
from moot.cli.shared.errors import CommandError
from moot.cli.shared.quantities import format_count


class ThreadReadMark:
    """A reader's place in one thread. Nothing depends on it, so its errors are ignored."""

    def __init__(self, api: Api, thread_id: str) -> None:
        self._api = api
        self._path = api_path("v1", "host", "moot", "threads", thread_id, "read")
        self.up_to, self._turn, self.unread = -1, -1, 0
        with suppress(CommandError):
            mark = api.get(self._path)
            self.up_to, self._turn = int(mark["upTo"]), int(mark["turnIndex"])
            self.unread = int(mark["unread"])
        self._announced = self.up_to < 0 or not self.unread

    def news(self, turn: Any) -> str | None:
        """Return a line once, before the first turn that is new to a returning reader."""
        if self._announced or not isinstance(turn, int) or turn <= self._turn:
            return None
        self._announced = True
        return f"New since you left · {format_count(self.unread, 'turn')}"

    def reach(self, sequence: int) -> None:
        """Record that the reader has seen everything up to this event."""
        if sequence > self.up_to and not self._api.offline:
            self.up_to = sequence
            with suppress(CommandError):
                self._api.post(self._path, {"upTo": sequence})
