"""Logs as they are read by commands that look back: by place, by page, whole."""

from typing import Any

from moot.cli.shared.client import Api, path_of
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble

#: events of a page, as the server gives them
PAGE = 1000

Event = dict[str, Any]


def page_of(api: Api, run_id: str, after: int) -> dict[str, Any]:
    """Events after a sequence, as many as the server gives at once; waits for nothing."""
    path = path_of("v1", "runs", run_id, "events", "poll")
    found: dict[str, Any] = api.get(path, lastSequence=after, timeout=0)
    return found


def whole(api: Api, run_id: str, most: int) -> tuple[list[Event], bool]:
    """The log from its beginning, and whether that is all of it: no more than ``most`` are read."""
    events: list[Event] = []
    while len(events) < most:
        page = page_of(api, run_id, len(events) - 1)
        events += page["events"]
        if page["isComplete"] or not page["events"]:
            return events[:most], len(events) <= most
    return events[:most], False


def last_of(api: Api, run_id: str, count: int) -> list[Event]:
    """The newest events."""
    length = api.get(path_of("v1", "runs", run_id))["metrics"]["eventCount"]
    events: list[Event] = page_of(api, run_id, max(-1, length - count - 1))["events"]
    return events[-count:]


class Histories:
    """Single events of any run. Pages are kept: who looks back asks for what lies just before."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[str, dict[int, Event]] = {}

    def event(self, run_id: str, sequence: int) -> Event | None:
        """None when the run has no such event yet. An unknown run is Trouble."""
        known = self._known.setdefault(run_id, {})
        if sequence not in known:
            # large events make pages short, so one that begins earlier may not reach so far
            for after in (max(-1, sequence - PAGE), sequence - 1):
                events = page_of(self._api, run_id, after)["events"]
                known.update((event["sequence"], event) for event in events)
                if sequence in known:
                    break
        return known.get(sequence)

    def expect(self, run_id: str, sequence: int) -> Event:
        found = self.event(run_id, sequence)
        if found is None:
            raise self.beyond(run_id, sequence)
        return found

    def beyond(self, run_id: str, sequence: int) -> Trouble:
        newest = last_of(self._api, run_id, 1)[-1]["sequence"]
        return Trouble(
            f"{run_id} has no event #{sequence}; its last one is #{newest}."
            f" See: {way(f'run tail {run_id}')}",
            Exit.NOT_FOUND,
        )
