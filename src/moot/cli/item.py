"""``moot item``: work that was put into queues, and where it has led."""

import json
from typing import Any

import click

from moot.cli import output
from moot.cli.client import Api, path_of, refusal, to_read, to_write
from moot.cli.inputs import gather
from moot.cli.options import Options, talks
from moot.cli.queue import QUEUES
from moot.cli.runs import cost_of
from moot.cli.trouble import Exit, Trouble


@click.group()
def item() -> None:
    """Items of queues: list, push, show, redeliver, drop.

    One is named by its id, by a unique beginning of it, or as @last: the one that came last.
    """


@item.command("list")
@click.argument("queue", metavar="[QUEUE]", required=False)
@click.option("--state", "states", multiple=True, metavar="STATE",
              help="waiting, retrying, delivered, dead or dropped; repeat it [all].")  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@talks
def list_(options: Options, queue: str | None, states: tuple[str, ...], limit: int) -> None:
    """List items of QUEUE, or of all queues, newest first."""
    api = to_read(options)
    wanted = {"state": ",".join(states) or None, "limit": limit}
    rows = [
        {"queue": name, **row}
        for name in ([queue] if queue else _queues(api))
        for row in api.get(f"{QUEUES}{path_of(name)}/items", **wanted)["items"]
    ]
    rows = sorted(rows, key=lambda row: str(row["receivedAt"]), reverse=True)[:limit]
    if options.json:
        output.show_json(rows)
        return
    output.table(
        ("ITEM", "QUEUE", "STATE", "RUN", "MEMBER", "SINCE", "SUBJECT"),
        ([r["itemId"], r["queue"], r["state"], r.get("runId"), r.get("rosterId"),
          r["receivedAt"][:19], r.get("subject") or r.get("reason")] for r in rows),
    )  # fmt: skip


@item.command()
@click.argument("queue", metavar="QUEUE")
@click.option("--subject", help="What it is about, in a line.")
@click.option("--body", help="What it says.")
@click.option("-i", "--input", "fields", multiple=True, metavar="K=V",
              help="More of it; also @file.json, or - for stdin.")  # fmt: skip
@click.option("--key", help="Names the item: pushed again under it, it is the same one.")
@talks
def push(
    options: Options, queue: str, subject: str | None, body: str | None,
    fields: tuple[str, ...], key: str | None,
) -> None:  # fmt: skip
    """Put an item into QUEUE."""
    given = {"subject": subject, "body": body}
    said = {**{name: text for name, text in given.items() if text is not None}, **gather(fields)}
    if not said:
        raise click.UsageError("say something: --subject, --body or --input.")
    door = to_write(options).door
    headers = {"Idempotency-Key": key} if key else {}
    path = f"{QUEUES}{path_of(queue)}/items"
    answer = door.call("POST", path, json.dumps(said).encode(), headers)
    if answer.status >= 400:
        raise refusal(answer, door.place)
    found = answer.data()
    if options.json:
        output.show_json(found)
        return
    more = " ".join(str(found[name]) for name in ("runId", "rosterId") if name in found)
    click.echo(output.line(f"{found['itemId']} {found['status']} {more}".rstrip()))


@item.command()
@click.argument("name", metavar="ITEM")
@talks
def show(options: Options, name: str) -> None:
    """Show an item: its run, its member, the turns, the cost."""
    api = to_read(options)
    queue, item_id = find_item(api, name)
    found = api.get(f"{QUEUES}{path_of(queue)}/items{path_of(item_id)}")
    if options.json:
        output.show_json({"queue": queue, **found})
        return
    click.echo(output.line(f"{item_id} {found['state']} in {queue} since {found['receivedAt']}"))
    for label, value in _facts(found):
        click.echo(output.line(f"{label:<10}{value}"))
    for each in found["attempts"]:
        why = f": {each['reason']}" if "reason" in each else ""
        click.echo(output.line(f"{each['at'][:19]}  {each['outcome']}{why}"))


def _facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [("subject", found.get("subject", ""))]
    if "member" in found:
        facts.append(("member", f"{found['member']['persona']} ({found['member']['rosterId']})"))
    if run := found.get("run"):
        facts.append(("run", f"{run['runId']} {run['workflowId']} {run['status']}"))
        facts.append(("turns", str(len(found["turns"]))))
        facts.append(("models", cost_of(run["metrics"])))
    return [(label, value) for label, value in facts if value]


@item.command()
@click.argument("name", metavar="ITEM")
@talks
def redeliver(options: Options, name: str) -> None:
    """Try an item again from the beginning."""
    _do(options, name, "redeliver")


@item.command()
@click.argument("name", metavar="ITEM")
@talks
def drop(options: Options, name: str) -> None:
    """Forget what an item says."""
    _do(options, name, "drop")


def _do(options: Options, name: str, verb: str) -> None:
    api = to_write(options)
    queue, item_id = find_item(api, name)
    found = api.post(f"{QUEUES}{path_of(queue)}/items{path_of(item_id)}:{verb}")
    if options.json:
        output.show_json(found)
    else:
        click.echo(output.line(f"{item_id} {found['state']} {found.get('runId', '')}".rstrip()))


def _queues(api: Api) -> list[str]:
    return [str(row["name"]) for row in api.get(QUEUES)["queues"]]


def find_item(api: Api, given: str) -> tuple[str, str]:
    """The queue and the id of the item that is meant."""
    if given == "@last":
        return _newest(api)
    prefix = given if given.startswith("wi_") else f"wi_{given}"
    meant = [
        (queue, str(row["itemId"]))
        for queue in _queues(api)
        for row in api.get(f"{QUEUES}{path_of(queue)}/items", prefix=prefix, limit=2)["items"]
    ]
    if len(meant) == 1:
        return meant[0]
    if meant:
        found = ", ".join(item_id for _, item_id in meant)
        raise Trouble(f"several items are meant by '{given}': {found}.", Exit.USAGE)
    raise Trouble(f"no item is called '{given}'. See: moot item list", Exit.NOT_FOUND)


def _newest(api: Api) -> tuple[str, str]:
    rows = [
        (str(row["receivedAt"]), queue, str(row["itemId"]))
        for queue in _queues(api)
        for row in api.get(f"{QUEUES}{path_of(queue)}/items", limit=1)["items"]
    ]
    if not rows:
        raise Trouble("no item has come yet.", Exit.NOT_FOUND)
    return max(rows)[1:]
