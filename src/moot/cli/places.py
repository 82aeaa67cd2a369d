"""Places in runs as they are typed: ``RUN@N`` is event N of a run."""

from typing import Any, NamedTuple

from moot.cli import output
from moot.cli.client import Api
from moot.cli.histories import last_of
from moot.cli.runs import resolve
from moot.cli.trouble import Exit, Trouble
from moot.cli.way import way

#: events that are shown to who has named none
SHOWN = 5
DIGITS = 15


class Place(NamedTuple):
    run_id: str
    sequence: int


def place_of(api: Api, given: str, verb: str) -> Place:
    """The run, found as everywhere, and the number of its event; ``verb`` is the command."""
    name, _, number = given.rpartition("@")
    if number.isdecimal() and number.isascii() and len(number) <= DIGITS and name:
        return Place(resolve(api, name), int(number))
    if name:
        hint = f"'{number}' is no number of an event" if number else "the number is missing"
        raise Trouble(f"{given}: {hint}. Write: {way(f'{verb} {name}@N')}", Exit.USAGE)
    raise _nowhere(api, resolve(api, given), verb)


def _nowhere(api: Api, run_id: str, verb: str) -> Trouble:
    """What could be meant: the run's last events."""
    found = last_of(api, run_id, SHOWN)
    last = f"{run_id}@{found[-1]['sequence']}"
    shown = ", ".join(f"#{event['sequence']} {_word(event)}" for event in found)
    return Trouble(
        f"name an event of the run, too: {way(f'{verb} {last}')}."
        f" Its last ones are {shown}. All: {way(f'run tail {run_id}')}",
        Exit.USAGE,
    )


def _word(event: dict[str, Any]) -> str:
    node = event.get("nodeId")
    return output.one_line(f"{event['type']} {node}" if node else event["type"])
