"""``moot queue``: queues of inbound work, and the workflows that take from them."""

from typing import Literal

import click

from moot.cli.schedules.wording import describe_state, describe_until
from moot.cli.shared import output
from moot.cli.shared.client import api_for_reading, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.names import member_id
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.shared.times import UNTIL_HELP, parse_time_option
from moot.client.operations import triggers

queue_argument = click.argument("name", metavar="QUEUE")


@click.group()
def queue() -> None:
    """Queues: what comes in becomes runs of a workflow."""


@queue.command("list")
@server_options
def list_(options: CommandOptions) -> None:
    """List queues and how many items are in which state."""
    output.print_list(
        options,
        api_for_reading(options).send(triggers.list_queues()).queues,
        ("QUEUE", "STATE", "WORKFLOW", "MEMBER", "ITEMS"),
        lambda row: [row.name, describe_state(row.state, row.inert, row.until, row.note),
                     row.workflow_id, row.roster_id, format_counts(row.items)],
    )  # fmt: skip


def format_counts(items: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(items.items()))


@queue.command()
@queue_argument
@click.option("--flow", required=True, help="The workflow that takes from it.")
@click.option("--member", metavar="NAME", help="The standing agent whose work it is.")
@click.option("--tries", type=click.IntRange(1, 20), help="How often an item is tried [3].")
@click.option("--take-over", is_flag=True, help="Also from another standing agent.")
@server_options
def bind(
    options: CommandOptions,
    name: str,
    flow: str,
    member: str | None,
    tries: int | None,
    take_over: bool,
) -> None:
    """Let a workflow take from QUEUE, also what waits in it."""
    owner = member_id(member)
    call = triggers.bind_queue(name, flow, roster_id=owner, max_attempts=tries, take_over=take_over)
    answer = api_for_writing(options).send(call)
    output.print_answer(options, answer, f"{name}: {flow} takes from it")


@queue.command()
@queue_argument
@server_options
def unbind(options: CommandOptions, name: str) -> None:
    """Let nobody take from QUEUE; it keeps its items."""
    api = api_for_writing(options)
    if api.send(triggers.get_queue(name)).workflow_id is None:
        remove = command_hint(f"queue remove {name}")
        raise CommandError(f"nobody takes from {name} anyway. To end it: {remove}", ExitCode.FAILED)
    answer = api.send(triggers.unbind_queue(name))
    output.print_answer(options, answer, f"{name}: nobody takes from it; it keeps its items")


@queue.command()
@queue_argument
@server_options
def remove(options: CommandOptions, name: str) -> None:
    """End QUEUE; nobody may take from it, and nothing in it may wait."""
    api = api_for_writing(options)
    if api.send(triggers.get_queue(name)).workflow_id is not None:
        unbind_it = command_hint(f"queue unbind {name}")
        raise CommandError(f"a workflow takes from {name}; first: {unbind_it}", ExitCode.FAILED)
    answer = api.send(triggers.unbind_queue(name))
    output.print_answer(options, answer, f"{name} is removed; the next item creates it again")


@queue.command()
@queue_argument
@click.option("--reason", default="", help="Why, for everybody who looks at it.")
@click.option("--until", metavar="TIME", help=UNTIL_HELP)
@server_options
def pause(options: CommandOptions, name: str, reason: str, until: str | None) -> None:
    """Let items of QUEUE wait."""
    end = None if until is None else parse_time_option("--until", until, None)
    _set_queue_state(options, name, "paused", reason, end)


@queue.command()
@queue_argument
@server_options
def resume(options: CommandOptions, name: str) -> None:
    """Take items of QUEUE again, also after they could not be delivered."""
    _set_queue_state(options, name, "active")


def _set_queue_state(
    options: CommandOptions,
    name: str,
    state: Literal["active", "paused"],
    note: str = "",
    until: str | None = None,
) -> None:
    api = api_for_writing(options)
    subscription_id = api.send(triggers.get_queue(name)).subscription_id
    call = triggers.change_subscription(subscription_id, state=state, note=note, until=until)
    answer = api.send(call)
    end = answer.bound.until
    suffix = f" until {describe_until(end)}" if end else ""
    output.print_answer(options, answer, f"{name} is {state}{suffix}")
