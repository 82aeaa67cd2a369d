"""How far a person has read a thread: what is new is told, and what was shown counts as read."""

from contextlib import suppress
from typing import Any

from moot.cli.shared.client import Api, path_of
from moot.cli.shared.errors import Trouble
from moot.cli.shared.quantities import counted


class Mark:
    """A reader's place in one thread. Nothing depends on it, so trouble with it is none."""

    def __init__(self, api: Api, thread_id: str) -> None:
        self._api = api
        self._path = path_of("v1", "host", "moot", "threads", thread_id, "read")
        self.up_to, self._turn, self.unread = -1, -1, 0
        with suppress(Trouble):
            found = api.get(self._path)
            self.up_to, self._turn = int(found["upTo"]), int(found["turnIndex"])
            self.unread = int(found["unread"])
        self._told = self.up_to < 0 or not self.unread

    def news(self, turn: Any) -> str | None:
        """What is said once, before the first turn that is new to who has been here before."""
        if self._told or not isinstance(turn, int) or turn <= self._turn:
            return None
        self._told = True
        return f"New since you left · {counted(self.unread, 'turn')}"

    def reach(self, sequence: int) -> None:
        """It has been shown up to this event."""
        if sequence > self.up_to and not self._api.offline:
            self.up_to = sequence
            with suppress(Trouble):
                self._api.post(self._path, {"upTo": sequence})
