"""Places in runs as they are typed: ``RUN@N`` is event N, ``RUN@turnN`` turn N of its council."""

from typing import Any, NamedTuple

from moot.cli.runs.find import resolve
from moot.cli.shared import output
from moot.cli.shared.client import Api
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.logs import last_of, whole

#: events that are shown to who has named none
SHOWN = 5
DIGITS = 15
TURN = "turn"
#: events that are looked through for a turn
LONGEST = 100_000


class Place(NamedTuple):
    run_id: str
    sequence: int


def place_of(api: Api, given: str, verb: str) -> Place:
    """The run, found as everywhere, and the number of its event; ``verb`` is the command."""
    name, _, number = given.rpartition("@")
    if number.isdecimal() and number.isascii() and len(number) <= DIGITS and name:
        return Place(resolve(api, name), int(number))
    if name and number.startswith(TURN) and number.removeprefix(TURN).isdecimal():
        run_id = resolve(api, name)
        return Place(run_id, _turn(api, run_id, int(number.removeprefix(TURN)[:DIGITS])))
    if name:
        hint = f"'{number}' is no number of an event" if number else "the number is missing"
        raise Trouble(f"{given}: {hint}. Write: {way(f'{verb} {name}@N')}", Exit.USAGE)
    raise _nowhere(api, resolve(api, given), verb)


def _turn(api: Api, run_id: str, number: int) -> int:
    """The event of a turn, by the number that a transcript shows before it."""
    events, _ = whole(api, run_id, LONGEST)
    turns = {index: event["sequence"] for event in events if (index := _index(event)) is not None}
    if number in turns:
        return int(turns[number])
    there = f"it has turns 0 to {max(turns)}" if turns else "nobody talks in it"
    raise Trouble(f"{run_id} has no turn {number}; {there}.", Exit.NOT_FOUND)


def _index(event: dict[str, Any]) -> int | None:
    if event["type"] not in ("conversation.opened", "conversation.exchanged"):
        return None
    said = event["payload"]
    index = (said.get("turn") or said.get("initialTurn") or {}).get("turnIndex")
    return index if isinstance(index, int) else None


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
    node, turn = event.get("nodeId"), _index(event)
    if turn is not None:
        return f"{TURN}{turn}"
    return output.one_line(f"{event['type']} {node}" if node else event["type"])
