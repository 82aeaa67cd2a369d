"""Read the log of a run: a page, a single event or all of it."""

from collections.abc import Mapping

from moot.cli.shared.client import Api
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.events import read_event
from moot.client.operations import runs
from moot.core.events import Event, payload_fields
from moot.wire.runs import RunEventPage

#: events that the server puts on one page
PAGE_SIZE = 1000


def inner_object(fields: Mapping[str, object], name: str) -> dict[str, object]:
    """Return the JSON object under a name, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def turn_fields(event: Event) -> dict[str, object]:
    """Return the turn that the event records, or an empty object."""
    payload = payload_fields(event)
    turns = (inner_object(payload, name) for name in ("turn", "initialTurn", "finalTurn"))
    return next(filter(None, turns), {})


def read_page(api: Api, run_id: str, after: int) -> RunEventPage:
    """Return the page of events after a sequence, without waiting for new ones."""
    return api.send(runs.poll_events(run_id, after=after))


def read_events(api: Api, run_id: str, after: int) -> list[Event]:
    """Return the events of one page."""
    return [read_event(fields) for fields in read_page(api, run_id, after).events]


def read_log(api: Api, run_id: str, most: int) -> tuple[list[Event], bool]:
    """Return at most ``most`` events from the start, and whether these are all of them."""
    events: list[Event] = []
    while len(events) < most:
        page = read_page(api, run_id, len(events) - 1)
        events += map(read_event, page.events)
        if page.is_complete or not page.events:
            return events[:most], len(events) <= most
    return events[:most], False


def read_last_events(api: Api, run_id: str, count: int) -> list[Event]:
    """Return the newest ``count`` events, oldest first."""
    length = api.send(runs.get_run(run_id)).metrics.event_count
    return read_events(api, run_id, max(-1, length - count - 1))[-count:]


class LogReader:
    """Reads single events of any run, and keeps the pages that it has read."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._events: dict[str, dict[int, Event]] = {}

    def event(self, run_id: str, sequence: int) -> Event | None:
        """Return None when the run has no such event yet. Raise CommandError for an unknown run."""
        events = self._events.setdefault(run_id, {})
        if sequence not in events:
            # large events make pages short, so a page that begins earlier may not reach so far
            for after in (max(-1, sequence - PAGE_SIZE), sequence - 1):
                page_events = read_events(self._api, run_id, after)
                events.update((event.sequence, event) for event in page_events)
                if sequence in events:
                    break
        return events.get(sequence)

    def expect(self, run_id: str, sequence: int) -> Event:
        event = self.event(run_id, sequence)
        if event is None:
            raise self.missing_event_error(run_id, sequence)
        return event

    def missing_event_error(self, run_id: str, sequence: int) -> CommandError:
        newest = read_last_events(self._api, run_id, 1)[-1].sequence
        return CommandError(
            f"{run_id} has no event #{sequence}; its last one is #{newest}."
            f" See: {command_hint(f'run tail {run_id}')}",
            ExitCode.NOT_FOUND,
        )
