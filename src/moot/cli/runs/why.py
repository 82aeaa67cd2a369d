"""``moot why RUN@N``: show the causes of an event, back to the beginning."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import click

from moot.cli.runs.event_lines import summarize
from moot.cli.shared import output
from moot.cli.shared.client import api_for_reading
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.events import event_fields
from moot.cli.shared.logs import LogReader
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.shared.run_refs import parse_run_place
from moot.core.events import Event
from moot.core.payloads.runs import DeliveryAttempted

#: steps that are walked by default
DEFAULT_STEPS = 200

#: the event that begins a triggered run, and its possible sequences
DELIVERY, DELIVERED_AT = DeliveryAttempted.event_type, (1, 2)

EventLookup = Callable[[str], Event | None]


class CauseRoot(NamedTuple):
    """The reason why the walk ended: no cause here, or a cause that cannot be followed."""

    kind: str
    cause: str | None = None
    host: str | None = None


@click.command()
@click.argument("place", metavar="RUN@N")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 10_000), default=DEFAULT_STEPS, show_default=True,
    help="Walk at most so many steps.",
)  # fmt: skip
@server_options
def why(options: CommandOptions, place: str, limit: int) -> None:
    """Show what caused an event, back to the beginning.

    The walk goes on in other runs where the cause lies there: a worker's beginning was caused by
    an event of its parent. The numbers stand in: moot run tail RUN
    """
    api = api_for_reading(options)
    run_id, sequence = parse_run_place(api, place, "why")
    log_reader = LogReader(api)
    first = log_reader.expect(run_id, sequence)
    finder = EventFinder(log_reader, run_id)
    steps = list(walk_causes(first, finder, limit))
    root = find_root(steps, finder)
    if not options.json:
        _print_steps(steps, root)
        return
    root_fields = {"kind": root.kind, "causationId": root.cause, "hostId": root.host}
    root_json = {name: value for name, value in root_fields.items() if value is not None}
    fields = {"runId": run_id, "sequence": sequence, "steps": list(map(event_fields, steps))}
    output.print_json({**fields, "root": root_json})


def walk_causes(first: Event, find: EventLookup, limit: int) -> Iterator[Event]:
    """Yield the event, its cause, the cause of that … as far as found, and none twice."""
    visited: set[str] = set()
    event: Event | None = first
    while event is not None and len(visited) < limit and event.event_id not in visited:
        visited.add(event.event_id)
        yield event
        if event.type == DELIVERY:
            return
        cause = event.causation_id
        event = find(cause) if cause and cause_host(event) is None else None


def find_root(steps: list[Event], find: EventLookup) -> CauseRoot:
    """Return why the walk stops at the last step."""
    last = steps[-1]
    if last.type == DELIVERY:
        return CauseRoot("delivery", last.event_id)
    cause, host = last.causation_id, cause_host(last)
    if not cause:
        return CauseRoot("beginning")
    if host is not None:
        return CauseRoot("host", cause, host)
    if any(event.event_id == cause for event in steps):
        return CauseRoot("circle", cause)
    return CauseRoot("limit" if find(cause) is not None else "outside", cause)


def cause_host(event: Event) -> str | None:
    """Return the other host on which the cause happened, or None."""
    return getattr(event.payload, "causation_host_id", None) or None


def find_event(log_reader: LogReader, event_id: str) -> Event | None:
    """Return the event with that id, or None if its run is not on this host."""
    run_id, _, sequence = event_id.rpartition(".")
    if not run_id or not sequence.isdecimal() or not sequence.isascii():
        return None
    try:
        return log_reader.event(run_id, int(sequence))
    except CommandError as error:
        if error.exit_code is not ExitCode.NOT_FOUND:
            raise
        return None


class EventFinder:
    """Finds events by their id, or by the id of the delivery that began one of the runs so far."""

    def __init__(self, log_reader: LogReader, run_id: str) -> None:
        self._log_reader, self._runs = log_reader, [run_id]

    def __call__(self, event_id: str) -> Event | None:
        event = find_event(self._log_reader, event_id) or self._delivery(event_id)
        if event is not None and event.run_id not in self._runs:
            self._runs.append(event.run_id)
        return event

    def _delivery(self, event_id: str) -> Event | None:
        for run_id in self._runs:
            for sequence in DELIVERED_AT:
                event = find_event(self._log_reader, f"{run_id}.{sequence}")
                if event is not None and event.event_id == event_id:
                    return event
        return None


def _print_steps(steps: list[Event], root: CauseRoot) -> None:
    """Print a list on a terminal, newest first; in a pipe one row for each step."""
    if not output.on_terminal():
        rows = [
            [step.run_id, step.sequence, step.type, step.node_id or None, summarize(step)]
            for step in steps
        ]
        if sentence := root_sentence(steps[-1], root):
            rows.append([None, None, root.kind, None, sentence])
        output.print_table((), rows)
        return
    run_id = steps[0].run_id
    click.echo(click.style(output.safe_line(run_id), bold=True))
    for count, step in enumerate(steps):
        if step.run_id != run_id:
            run_id = step.run_id
            click.echo(f"in {click.style(output.safe_line(run_id), bold=True)}")
        number, node = f"#{step.sequence}", output.one_line(step.node_id or "")
        arrow = "←" if count else " "
        output.print_fitted(f"{arrow} {number:<5} {node:<12}  {summarize(step)}")
    if sentence := root_sentence(steps[-1], root):
        output.print_fitted(f"  {sentence}")


def root_sentence(last: Event, root: CauseRoot) -> str:
    place = f"{last.run_id}@{last.sequence}"
    sentences: dict[str, str] = {
        "beginning": "",
        "delivery": f"the delivery {root.cause} began the run",
        "host": f"caused by {root.cause} on {root.host}",
        "outside": f"caused by {root.cause}, which is no event of a run here",
        "circle": f"caused by {root.cause}, which is above already",
        "limit": f"there is more: {command_hint(f'why {place}')}",
    }
    return output.one_line(sentences[root.kind])
