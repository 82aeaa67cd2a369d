"""``moot queue``: queues of work, and who takes from them."""

import json
from typing import Any

import click

from moot.cli.schedules.wording import state_of, until_words
from moot.cli.shared import output
from moot.cli.shared.client import path_of, to_read, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, talks
from moot.cli.shared.times import UNTIL, typed

QUEUES = "/v1/host/moot/queues"
SUBSCRIPTIONS = "/v1/trigger-subscriptions"


@click.group()
def queue() -> None:
    """Queues: what comes in becomes runs of a workflow."""


@queue.command("list")
@talks
def list_(options: Options) -> None:
    """List queues and how many items are in which state."""
    rows = to_read(options).get(QUEUES)["queues"]
    if options.json:
        output.show_json(rows)
        return
    output.table(
        ("QUEUE", "STATE", "WORKFLOW", "MEMBER", "ITEMS"),
        ([r["name"], state_of(r), r.get("workflowId"), r.get("rosterId"), counts(r["items"])]
         for r in rows),
    )  # fmt: skip


def counts(items: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(items.items()))


@queue.command()
@click.argument("name", metavar="QUEUE")
@click.option("--flow", required=True, help="The workflow that takes from it.")
@click.option("--member", metavar="NAME", help="The standing agent whose work it is.")
@click.option("--tries", type=click.IntRange(1, 20), help="How often an item is tried [3].")
@click.option("--take-over", is_flag=True, help="Also from another standing agent.")
@talks
def bind(
    options: Options, name: str, flow: str, member: str | None, tries: int | None, take_over: bool
) -> None:
    """Let a workflow take from QUEUE, also what waits in it."""
    body: dict[str, Any] = {"workflowId": flow, "takeOver": take_over}
    if member:
        body["rosterId"] = member if member.startswith("host:") else f"host:{member}"
    if tries:
        body["retryPolicy"] = {"maxAttempts": tries}
    path = f"{QUEUES}{path_of(name)}"
    found = to_write(options).ask("PUT", path, json.dumps(body).encode())
    _told(options, found, f"{name}: {flow} takes from it")


@queue.command()
@click.argument("name", metavar="QUEUE")
@talks
def unbind(options: Options, name: str) -> None:
    """Let nobody take from QUEUE; it keeps its items."""
    api = to_write(options)
    if "workflowId" not in api.get(f"{QUEUES}{path_of(name)}"):
        remove = way(f"queue remove {name}")
        raise Trouble(f"nobody takes from {name} anyway. To end it: {remove}", Exit.FAILED)
    found = api.delete(f"{QUEUES}{path_of(name)}")
    _told(options, found, f"{name}: nobody takes from it; it keeps its items")


@queue.command()
@click.argument("name", metavar="QUEUE")
@talks
def remove(options: Options, name: str) -> None:
    """End QUEUE; nobody may take from it, and nothing in it may wait."""
    api = to_write(options)
    if "workflowId" in api.get(f"{QUEUES}{path_of(name)}"):
        unbind_it = way(f"queue unbind {name}")
        raise Trouble(f"a workflow takes from {name}; first: {unbind_it}", Exit.FAILED)
    found = api.delete(f"{QUEUES}{path_of(name)}")
    _told(options, found, f"{name} is removed; an item that is put in makes it anew")


@queue.command()
@click.argument("name", metavar="QUEUE")
@click.option("--reason", default="", help="Why, for everybody who looks at it.")
@click.option("--until", metavar="TIME", help=UNTIL)
@talks
def pause(options: Options, name: str, reason: str, until: str | None) -> None:
    """Let items of QUEUE wait."""
    end = {} if until is None else {"until": typed("--until", until, None)}
    _turn(options, name, state="paused", note=reason, **end)


@queue.command()
@click.argument("name", metavar="QUEUE")
@talks
def resume(options: Options, name: str) -> None:
    """Take items of QUEUE again, also after they could not be delivered."""
    _turn(options, name, state="active")


def _turn(options: Options, name: str, **asked: str) -> None:
    api = to_write(options)
    found = api.get(f"{QUEUES}{path_of(name)}")
    path = f"{SUBSCRIPTIONS}{path_of(found['subscriptionId'])}"
    answer = api.ask("PATCH", path, json.dumps(asked).encode())
    end = answer["bound"].get("until")
    more = f" until {until_words(end)}" if end else ""
    _told(options, answer, f"{name} is {asked['state']}{more}")


def _told(options: Options, answer: Any, sentence: str) -> None:
    if options.json:
        output.show_json(answer)
    else:
        click.echo(output.line(sentence))
