"""``moot why RUN@N``: what caused an event, and what caused that, back to the beginning."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import click

from moot.cli.runs.event_lines import summary
from moot.cli.shared import output
from moot.cli.shared.client import to_read
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.logs import Event, Histories
from moot.cli.shared.options import Options, talks
from moot.cli.shared.run_refs import place_of

#: steps that are walked unless more are asked for
STEPS = 200

#: what begins a run that a trigger has started, and where in its log it may stand
DELIVERY, DELIVERED_AT = "trigger.delivery.attempted", (1, 2)

Find = Callable[[str], Event | None]


class Root(NamedTuple):
    """Why the walk ended: what nobody caused here, or what cannot be followed further."""

    kind: str
    cause: str | None = None
    host: str | None = None


@click.command()
@click.argument("place", metavar="RUN@N")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 10_000), default=STEPS, show_default=True,
    help="Walk at most so many steps.",
)  # fmt: skip
@talks
def why(options: Options, place: str, limit: int) -> None:
    """Show what caused an event, back to the beginning.

    The walk goes on in other runs where the cause lies there: a worker's beginning was caused by
    an event of its parent. The numbers stand in: moot run tail RUN
    """
    api = to_read(options)
    run_id, sequence = place_of(api, place, "why")
    histories = Histories(api)
    first = histories.expect(run_id, sequence)
    finder = Finder(histories, run_id)
    steps = list(walk(first, finder, limit))
    root = ended(steps, finder)
    if options.json:
        shown = {"kind": root.kind, "causationId": root.cause, "hostId": root.host}
        kept = {name: value for name, value in shown.items() if value is not None}
        output.show_json({"runId": run_id, "sequence": sequence, "steps": steps, "root": kept})
    else:
        _show(steps, root)


def walk(first: Event, find: Find, limit: int) -> Iterator[Event]:
    """The event, its cause, the cause of that … as far as they are found, none of them twice."""
    seen: set[str] = set()
    event: Event | None = first
    while event is not None and len(seen) < limit and event["eventId"] not in seen:
        seen.add(event["eventId"])
        yield event
        if event.get("type") == DELIVERY:
            return
        cause = cause_of(event)
        event = find(cause) if cause is not None and host_of(event) is None else None


def ended(steps: list[Event], find: Find) -> Root:
    """Why it goes no further than the last step."""
    last = steps[-1]
    if last.get("type") == DELIVERY:
        return Root("delivery", last["eventId"])
    cause, host = cause_of(last), host_of(last)
    if cause is None:
        return Root("beginning")
    if host is not None:
        return Root("host", cause, host)
    if any(event["eventId"] == cause for event in steps):
        return Root("circle", cause)
    return Root("limit" if find(cause) is not None else "outside", cause)


def cause_of(event: Event) -> str | None:
    cause = event.get("causationId")
    return str(cause) if cause else None


def host_of(event: Event) -> str | None:
    """The other host on which the cause happened, if it was not here."""
    host = event["payload"].get("causationHostId")
    return str(host) if host else None


def found_by(histories: Histories, event_id: str) -> Event | None:
    """The event of that id, if it is one of a run that is here."""
    run_id, _, sequence = event_id.rpartition(".")
    if not run_id or not sequence.isdecimal() or not sequence.isascii():
        return None
    try:
        return histories.event(run_id, int(sequence))
    except Trouble as trouble:
        if trouble.exit_code is not Exit.NOT_FOUND:
            raise
        return None


class Finder:
    """Events by id: their own, or that of the delivery which began one of the runs seen so far."""

    def __init__(self, histories: Histories, run_id: str) -> None:
        self._histories, self._runs = histories, [run_id]

    def __call__(self, event_id: str) -> Event | None:
        found = found_by(self._histories, event_id) or self._delivery(event_id)
        if found is not None and found["runId"] not in self._runs:
            self._runs.append(found["runId"])
        return found

    def _delivery(self, event_id: str) -> Event | None:
        for run_id in self._runs:
            for sequence in DELIVERED_AT:
                found = found_by(self._histories, f"{run_id}.{sequence}")
                if found is not None and found["eventId"] == event_id:
                    return found
        return None


def _show(steps: list[Event], root: Root) -> None:
    """On a terminal a list downwards, the newest first; for programs a row for each step."""
    if not output.on_terminal():
        rows = [[step["runId"], step["sequence"], step["type"], step.get("nodeId"), summary(step)]
                for step in steps]  # fmt: skip
        if said := last_word(steps[-1], root):
            rows.append([None, None, root.kind, None, said])
        output.table((), rows)
        return
    run_id = steps[0]["runId"]
    click.echo(click.style(output.line(run_id), bold=True))
    for count, step in enumerate(steps):
        if step["runId"] != run_id:
            run_id = step["runId"]
            click.echo(f"in {click.style(output.line(run_id), bold=True)}")
        output.fitted(f"{'←' if count else ' '} {_step(step)}")
    if said := last_word(steps[-1], root):
        output.fitted(f"  {said}")


def _step(event: Event) -> str:
    number, node = f"#{event['sequence']}", output.one_line(event.get("nodeId") or "")
    return f"{number:<5} {node:<12}  {summary(event)}"


def last_word(last: Event, root: Root) -> str:
    place = f"{last['runId']}@{last['sequence']}"
    words: dict[str, str] = {
        "beginning": "",
        "delivery": f"the delivery {root.cause} began the run",
        "host": f"caused by {root.cause} on {root.host}",
        "outside": f"caused by {root.cause}, which is no event of a run here",
        "circle": f"caused by {root.cause}, which is above already",
        "limit": f"there is more: {way(f'why {place}')}",
    }
    return output.one_line(words[root.kind])
