"""Parse places in runs: ``RUN@N`` is event N, ``RUN@turnN`` turn N of its council."""

from typing import NamedTuple

from moot.cli.runs.find import resolve_run_id
from moot.cli.shared import output
from moot.cli.shared.client import Api
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.logs import read_last_events, read_log, turn_fields
from moot.core.events import Event
from moot.core.payloads.conversations import ConversationExchanged, ConversationOpened

#: events that an error suggests when the user names none
SUGGESTED_EVENTS = 5
MAX_DIGITS = 15
TURN = "turn"
#: events that are searched for a turn
MAX_EVENTS = 100_000


class RunPlace(NamedTuple):
    """One event of one run."""

    run_id: str
    sequence: int


def parse_run_place(api: Api, text: str, verb: str) -> RunPlace:
    """Return the run and event that the text names. ``verb`` is the command, for hints."""
    name, _, number = text.rpartition("@")
    if number.isdecimal() and number.isascii() and len(number) <= MAX_DIGITS and name:
        return RunPlace(resolve_run_id(api, name), int(number))
    if name and number.startswith(TURN) and number.removeprefix(TURN).isdecimal():
        run_id = resolve_run_id(api, name)
        return RunPlace(
            run_id, _turn_sequence(api, run_id, int(number.removeprefix(TURN)[:MAX_DIGITS]))
        )
    if name:
        hint = f"'{number}' is no number of an event" if number else "the number is missing"
        raise CommandError(
            f"{text}: {hint}. Write: {command_hint(f'{verb} {name}@N')}", ExitCode.USAGE
        )
    raise _missing_event_error(api, resolve_run_id(api, text), verb)


def _turn_sequence(api: Api, run_id: str, number: int) -> int:
    """Return the event of a turn by the number that a transcript shows. Raise CommandError."""
    events, _ = read_log(api, run_id, MAX_EVENTS)
    turns = {index: event.sequence for event in events if (index := _turn_index(event)) is not None}
    if number in turns:
        return turns[number]
    range_text = f"it has turns 0 to {max(turns)}" if turns else "nobody talks in it"
    raise CommandError(f"{run_id} has no turn {number}; {range_text}.", ExitCode.NOT_FOUND)


def _turn_index(event: Event) -> int | None:
    if event.type not in (ConversationOpened.event_type, ConversationExchanged.event_type):
        return None
    index = turn_fields(event).get("turnIndex")
    return index if isinstance(index, int) else None


def _missing_event_error(api: Api, run_id: str, verb: str) -> CommandError:
    """Return an error that suggests the run's last events."""
    events = read_last_events(api, run_id, SUGGESTED_EVENTS)
    last_place = f"{run_id}@{events[-1].sequence}"
    suggestions = ", ".join(f"#{event.sequence} {_event_label(event)}" for event in events)
    return CommandError(
        f"name an event of the run, too: {command_hint(f'{verb} {last_place}')}."
        f" Its last ones are {suggestions}. All: {command_hint(f'run tail {run_id}')}",
        ExitCode.USAGE,
    )


def _event_label(event: Event) -> str:
    turn = _turn_index(event)
    if turn is not None:
        return f"{TURN}{turn}"
    return output.one_line(f"{event.type} {event.node_id}" if event.node_id else event.type)
