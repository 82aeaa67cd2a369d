"""``moot item``: work that came in, into queues or by webhooks, and where it has led."""

import json
from typing import Any

import click

from moot.cli.runs.find import cost_of
from moot.cli.schedules.wording import here, with_times
from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, refusal, to_read, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.inputs import gather
from moot.cli.shared.options import Options, talks
from moot.cli.triggers.queue import QUEUES

#: says of an answer that the same was asked before, under the same key
REPLAYED = "openwop-idempotent-replay"
DELIVERIES = "/v1/host/moot/deliveries"


@click.group()
def item() -> None:
    """Work that came in: list, push, show, redeliver, drop.

    One is named by its id, by a unique beginning of it, or as @last, the one that came last: wi_…
    came into a queue, dlv_… by a webhook.
    """


@item.command("list")
@click.argument("queue", metavar="[QUEUE]", required=False)
@click.option("--state", "states", multiple=True, metavar="STATE",
              help="waiting, retrying, delivered, dead or dropped; repeat it [all].")  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@talks
def list_(options: Options, queue: str | None, states: tuple[str, ...], limit: int) -> None:
    """List items of QUEUE, or all that came in, newest first."""
    api = to_read(options)
    wanted = {"state": ",".join(states) or None, "limit": limit}
    if queue is not None:
        found = api.get(f"{QUEUES}{path_of(queue)}/items", **wanted)["items"]
        rows = [{"queue": queue, **row} for row in found]
    else:
        rows = api.get(DELIVERIES, **wanted)["deliveries"]
    if options.json:
        output.show_json(rows)
        return
    output.table(
        ("ITEM", "CAME BY", "STATE", "RUN", "MEMBER", "SINCE", "SUBJECT", "WHY"),
        ([output.short(r["itemId"]), r.get("queue") or r["source"], r["state"],
          output.short(r.get("runId", "")), r.get("rosterId"), _since(r), r.get("subject"),
          with_times(r.get("reason", ""))] for r in rows),
    )  # fmt: skip


def _since(row: dict[str, Any]) -> str:
    """For people how long ago, for programs when."""
    since = str(row["receivedAt"])
    return f"{output.age(since)} ago" if output.on_terminal() else since[:19]


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
) -> Exit:  # fmt: skip
    """Put an item into QUEUE. The exit code is 1 when no run can be made of it."""
    given = {"subject": subject, "body": body}
    said = {**{name: text for name, text in given.items() if text is not None}, **gather(fields)}
    if not said:
        raise click.UsageError("say something: --subject, --body or --input.")
    api = to_write(options)
    door = api.door
    headers = {"Idempotency-Key": key} if key else {}
    path = f"{QUEUES}{path_of(queue)}/items"
    answer = door.call("POST", path, json.dumps(said).encode(), headers)
    if answer.status >= 400:
        raise refusal(answer, door.place)
    found = answer.data()
    if options.json:
        output.show_json(found)
    else:
        more = " ".join(str(found[name]) for name in ("runId", "rosterId") if name in found)
        click.echo(output.line(f"{found['itemId']} {found['status']} {more}".rstrip()))
    if any(name.lower() == REPLAYED for name in answer.headers):
        seen = way(f"item show {found['itemId']}")
        output.complain(f"It was there already under this key; nothing was added. See: {seen}")
    elif "reason" in found:
        output.complain(_why(api, queue, found))
    return Exit.FAILED if found["status"] == "dead" else Exit.OK


def _why(api: Api, queue: str, found: dict[str, Any]) -> str:
    """Why it has led to no run, and what to do about it."""
    said, name = str(found["reason"]), found["itemId"]
    if found["status"] == "dead":
        again = way(f"item redeliver {name}")
        return f"It could not be delivered: {said} See: {way(f'item show {name}')}, then {again}"
    helps = _help(api, api.get(f"{QUEUES}{path_of(queue)}"))
    return f"It waits: {said}" + (f" See: {way(helps)}" if helps else "")


def _help(api: Api, queue: dict[str, Any]) -> str | None:
    """The command after which items of this queue become runs."""
    if "workflowId" not in queue:
        return f"queue bind {queue['name']} --flow FLOW"
    if "inert" in queue:
        return _back(api, queue)
    return f"queue resume {queue['name']}" if queue["state"] != "active" else None


def _back(api: Api, queue: dict[str, Any]) -> str | None:
    """The command after which the member of this queue does its work."""
    flow, name = queue["workflowId"], queue["rosterId"].removeprefix("host:")
    try:
        member = api.get(f"/v1/host/moot/roster{path_of(queue['rosterId'])}")
    except Trouble as trouble:
        gone = trouble.exit_code is Exit.NOT_FOUND
        return f"queue bind {queue['name']} --flow {flow} --member NAME" if gone else None
    if queue["state"] != "active":
        return f"queue resume {queue['name']}"
    if member["status"] == "on-duty":  # what was its work is not any more
        return f"agent set {name} portfolio={','.join([*member.get('workflows', []), flow])}"
    paused = member["status"] == "paused"
    return f"agent resume {name}" if paused else f"agent set {name} enabled=yes"


@item.command()
@click.argument("name", metavar="ITEM")
@talks
def show(options: Options, name: str) -> None:
    """Show an item: its run, its member, the turns, the cost."""
    api = to_read(options)
    found = api.get(f"{DELIVERIES}{path_of(find_item(api, name))}")
    if options.json:
        output.show_json(found)
        return
    by = f"in {found['queue']}" if "queue" in found else f"by webhook {found['subscriptionId']}"
    click.echo(output.line(f"{found['itemId']} {found['state']} {by} since {_since(found)}"))
    for label, value in _facts(found):
        click.echo(output.line(f"{label:<10}{value}"))
    for each in found["attempts"]:
        why = f": {each['reason']}" if "reason" in each else ""
        at = here(each["at"]) if output.on_terminal() else each["at"][:19]
        click.echo(output.line(f"{at}  {each['outcome']}{why}"))


def _facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [("subject", found.get("subject", ""))]
    facts += [
        (f"{name}:", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in _fields(found).items()
    ]
    if "member" in found:
        facts.append(("member", f"{found['member']['persona']} ({found['member']['rosterId']})"))
    if run := found.get("run"):
        facts.append(("run", f"{run['runId']} {run['workflowId']} {run['status']}"))
        facts.append(("turns", str(len(found["turns"]))))
        facts.append(("models", cost_of(run["metrics"])))
    return [(label, value) for label, value in facts if value]


def _fields(found: dict[str, Any]) -> dict[str, Any]:
    """What it says, for as long as that is kept."""
    said = dict(found.get("content") or {})
    if said.get("subject") == found.get("subject"):
        said.pop("subject", None)
    return said


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
    item_id = find_item(api, name)
    try:
        found = api.post(f"{DELIVERIES}{path_of(item_id)}:{verb}")
    except Trouble as trouble:
        raise _with_way(trouble, item_id) from None
    if options.json:
        output.show_json(found)
    else:
        why = f": {found['reason']}" if found["state"] in ("dead", "retrying", "waiting") else ""
        told = f"{item_id} {found['state']} {found.get('runId', '')}".rstrip()
        click.echo(output.line(f"{told}{why}"))


def _with_way(trouble: Trouble, item_id: str) -> Trouble:
    """The server's refusal with the command that helps."""
    queue, hook = (trouble.details.get(name) for name in ("queue", "subscriptionId"))
    if trouble.details.get("state") == "delivered":
        helps = f"agent run-now MEMBER FLOW --item {item_id}"
    elif queue is not None:
        helps = f"queue resume {queue}" if hook is not None else f"queue bind {queue} --flow FLOW"
    else:
        helps = f"hook resume {hook}" if hook is not None else f"item show {item_id}"
    said = f"{trouble} See: {way(helps)}"
    return Trouble(said, trouble.exit_code)


def find_item(api: Api, given: str) -> str:
    """The id of what is meant."""
    if given == "@last":
        return _newest(api)
    prefixes = [given] if given.startswith(("wi_", "dlv_")) else [f"wi_{given}", f"dlv_{given}"]
    meant = [
        str(row["itemId"])
        for prefix in prefixes
        for row in api.get(DELIVERIES, prefix=prefix, limit=2)["deliveries"]
    ]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise Trouble(f"several items are meant by '{given}': {', '.join(meant)}.", Exit.USAGE)
    raise Trouble(f"no item is called '{given}'. See: {way('item list')}", Exit.NOT_FOUND)


def _newest(api: Api) -> str:
    rows = api.get(DELIVERIES, limit=1)["deliveries"]
    if not rows:
        raise Trouble("no item has come yet.", Exit.NOT_FOUND)
    return str(rows[0]["itemId"])


def ways(notice: dict[str, Any]) -> str:
    """What can be done about a notice of something that came in, or of where it comes from."""
    if notice["kind"] == "stopped":
        queue = notice.get("queue")
        return way(f"queue resume {queue}" if queue else f"hook resume {notice['id']}")
    again = way(f"item redeliver {notice['id']}")
    return f"{again} / drop {notice['id']}"
