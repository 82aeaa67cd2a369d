"""A person's read mark in a thread. Turns on the screen count as read."""

from contextlib import suppress

from moot.cli.shared.client import Api
from moot.cli.shared.errors import CommandError
from moot.client.operations import search
from moot.core.text.quantities import format_count


class ThreadReadMark:
    """A reader's place in one thread. Nothing depends on it, so its errors are ignored."""

    def __init__(self, api: Api, thread_id: str) -> None:
        self._api, self._thread_id = api, thread_id
        self.up_to, self._turn, self.unread = -1, -1, 0
        with suppress(CommandError):
            mark = api.send(search.get_read_status(thread_id))
            self.up_to, self._turn, self.unread = mark.up_to, mark.turn_index, mark.unread
        self._announced = self.up_to < 0 or not self.unread

    def news(self, turn: int | None) -> str | None:
        """Return a line once, before the first turn that is new to a returning reader."""
        if self._announced or turn is None or turn <= self._turn:
            return None
        self._announced = True
        return f"New since you left · {format_count(self.unread, 'turn')}"

    def reach(self, sequence: int) -> None:
        """Record that the reader has seen everything up to this event."""
        if sequence > self.up_to and not self._api.offline:
            self.up_to = sequence
            with suppress(CommandError):
                self._api.send(search.mark_thread_read(self._thread_id, sequence))
