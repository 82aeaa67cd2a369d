"""``moot item``: work that came in through queues or webhooks, and its runs."""

import json
from collections.abc import Callable

import click
from msgspec import to_builtins

from moot.cli.runs.find import format_cost
from moot.cli.schedules.wording import localize_times, machine_time
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.inputs import parse_inputs
from moot.cli.shared.names import choose_id
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.http.operation import PreparedCall
from moot.client.operations import triggers
from moot.client.operations.roster import get_member
from moot.wire.interrupts import InboxNotice
from moot.wire.triggers import PushedItem, QueueItemView, QueueView

#: header of an answer to a request that was made before under the same key
REPLAYED = "openwop-idempotent-replay"


item_argument = click.argument("name", metavar="ITEM")


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
@server_options
def list_(options: CommandOptions, queue: str | None, states: tuple[str, ...], limit: int) -> None:
    """List items of QUEUE, or all that came in, newest first."""
    api = api_for_reading(options)
    if queue is not None:
        rows = api.send(triggers.list_items(queue, state=states, limit=limit)).items
    else:
        rows = api.send(triggers.list_deliveries(state=states, limit=limit)).deliveries
    if options.json:
        place = {} if queue is None else {"queue": queue}
        output.print_json([{**place, **to_builtins(row)} for row in rows])
        return
    output.print_table(
        ("ITEM", "CAME BY", "STATE", "RUN", "MEMBER", "SINCE", "SUBJECT", "WHY"),
        ([output.short_id(r.item_id), queue or r.queue or r.source, r.state,
          output.short_id(r.run_id or ""), r.roster_id, _since_text(r), r.subject or None,
          localize_times(r.reason)] for r in rows),
    )  # fmt: skip


def _since_text(row: QueueItemView) -> str:
    """Return the age on a terminal, the time in a pipe."""
    since = row.received_at
    return f"{output.format_age(since)} ago" if output.on_terminal() else since[:19]


@item.command()
@click.argument("queue", metavar="QUEUE")
@click.option("--subject", help="What it is about, in a line.")
@click.option("--body", help="What it says.")
@click.option("-i", "--input", "fields", multiple=True, metavar="K=V",
              help="More of it; also @file.json, or - for stdin.")  # fmt: skip
@click.option("--key", help="Names the item: pushed again under it, it is the same one.")
@server_options
def push(
    options: CommandOptions, queue: str, subject: str | None, body: str | None,
    fields: tuple[str, ...], key: str | None,
) -> ExitCode:  # fmt: skip
    """Put an item into QUEUE. The exit code is 1 when no run can be made of it."""
    texts = {"subject": subject, "body": body}
    content = {
        **{name: text for name, text in texts.items() if text is not None},
        **parse_inputs(fields),
    }
    if not content:
        raise click.UsageError("say something: --subject, --body or --input.")
    api = api_for_writing(options)
    call = triggers.push_item(queue, content, key=key or None)
    answer = api.exchange(call)
    created = call.read(answer.body)
    details = " ".join(filter(None, (created.run_id, created.roster_id)))
    output.print_answer(options, created, f"{created.item_id} {created.status} {details}".rstrip())
    if REPLAYED in answer.headers:
        hint = command_hint(f"item show {created.item_id}")
        output.print_error(f"It was there already under this key; nothing was added. See: {hint}")
    elif created.reason:
        output.print_error(_undelivered_reason(api, queue, created))
    return ExitCode.FAILED if created.status == "dead" else ExitCode.OK


def _undelivered_reason(api: Api, queue: str, item: PushedItem) -> str:
    """Return the reason why the item has no run, and a remedy."""
    reason, name = item.reason, item.item_id
    if item.status == "dead":
        redeliver = command_hint(f"item redeliver {name}")
        see = command_hint(f"item show {name}")
        return f"It could not be delivered: {reason} See: {see}, then {redeliver}"
    hint = _queue_hint(api, api.send(triggers.get_queue(queue)))
    return f"It waits: {reason}" + (f" See: {command_hint(hint)}" if hint else "")


def _queue_hint(api: Api, queue: QueueView) -> str | None:
    """Return the command after which items of this queue become runs."""
    if queue.workflow_id is None:
        return f"queue bind {queue.name} --flow FLOW"
    if queue.inert is not None and queue.roster_id is not None:
        return _member_hint(api, queue, queue.roster_id)
    return f"queue resume {queue.name}" if queue.state != "active" else None


def _member_hint(api: Api, queue: QueueView, roster_id: str) -> str | None:
    """Return the command after which the member of this queue works again."""
    flow, name = str(queue.workflow_id), roster_id.removeprefix("host:")
    try:
        member = api.find(get_member(roster_id))
    except CommandError:
        return None
    if member is None:
        return f"queue bind {queue.name} --flow {flow} --member NAME"
    if queue.state != "active":
        return f"queue resume {queue.name}"
    if member.status == "on-duty":  # the workflow is no longer in its portfolio
        return f"agent set {name} portfolio={','.join([*member.workflows, flow])}"
    paused = member.status == "paused"
    return f"agent resume {name}" if paused else f"agent set {name} enabled=yes"


@item.command()
@item_argument
@server_options
def show(options: CommandOptions, name: str) -> None:
    """Show an item: its run, its member, the turns, the cost."""
    api = api_for_reading(options)
    item_record = api.send(triggers.get_delivery(find_item(api, name)))
    if options.json:
        output.print_json(item_record)
        return
    webhook = f"by webhook {item_record.subscription_id}"
    by = webhook if item_record.queue is None else f"in {item_record.queue}"
    head = f"{item_record.item_id} {item_record.state} {by} since {_since_text(item_record)}"
    output.print_lines(head, *(f"{label:<10}{value}" for label, value in _item_facts(item_record)))
    for attempt in item_record.attempts:
        why = "" if attempt.reason is None else f": {attempt.reason}"
        at = machine_time(attempt.at) if output.on_terminal() else attempt.at[:19]
        output.print_lines(f"{at}  {attempt.outcome}{why}")


def _item_facts(item: QueueItemView) -> list[tuple[str, str]]:
    facts = [("subject", item.subject)]
    for name, value in (item.content or {}).items():  # as long as the server keeps it
        if (name, value) != ("subject", item.subject):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            facts.append((f"{name}:", text))
    if item.member is not None:
        facts.append(("member", f"{item.member.persona} ({item.member.roster_id})"))
    if run := item.run:
        facts.append(("run", f"{run.run_id} {run.workflow_id} {run.status}"))
        facts.append(("turns", str(len(item.turns))))
        facts.append(("models", format_cost(run.metrics)))
    return [(label, value) for label, value in facts if value]


@item.command()
@item_argument
@server_options
def redeliver(options: CommandOptions, name: str) -> None:
    """Try an item again from the beginning."""
    _change_item(options, name, triggers.redeliver_delivery)


@item.command()
@item_argument
@server_options
def drop(options: CommandOptions, name: str) -> None:
    """Forget what an item says."""
    _change_item(options, name, triggers.drop_delivery)


def _change_item(
    options: CommandOptions, name: str, change: Callable[[str], PreparedCall[QueueItemView]]
) -> None:
    api = api_for_writing(options)
    item_id = find_item(api, name)
    try:
        item = api.send(change(item_id))
    except CommandError as error:
        raise _with_hint(error, item_id) from None
    why = f": {item.reason}" if item.state in ("dead", "retrying", "waiting") else ""
    line = f"{item_id} {item.state} {item.run_id or ''}".rstrip()
    output.print_answer(options, item, f"{line}{why}")


def _with_hint(error: CommandError, item_id: str) -> CommandError:
    """Return the server's refusal with a command that helps."""
    queue, hook = (error.details.get(name) for name in ("queue", "subscriptionId"))
    if error.details.get("state") == "delivered":
        hint = f"agent run-now MEMBER FLOW --item {item_id}"
    elif queue is not None:
        hint = f"queue resume {queue}" if hook is not None else f"queue bind {queue} --flow FLOW"
    else:
        hint = f"hook resume {hook}" if hook is not None else f"item show {item_id}"
    message = f"{error} See: {command_hint(hint)}"
    return CommandError(message, error.exit_code)


def find_item(api: Api, text: str) -> str:
    """Return the full id of an item: a prefix of only one item, or @last."""
    if text == "@last":
        rows = api.send(triggers.list_deliveries(limit=1)).deliveries
        if not rows:
            raise CommandError("no item has come yet.", ExitCode.NOT_FOUND)
        return rows[0].item_id
    prefixes = [text] if text.startswith(("wi_", "dlv_")) else [f"wi_{text}", f"dlv_{text}"]
    matches = [
        row.item_id
        for prefix in prefixes
        for row in api.send(triggers.list_deliveries(prefix=prefix, limit=2)).deliveries
    ]
    return choose_id(matches, text, "item", "item list")


def notice_hint(notice: InboxNotice) -> str:
    """Return the commands that deal with a notice about an item or its source."""
    if notice.kind == "stopped":
        queue = notice.queue
        return command_hint(f"queue resume {queue}" if queue else f"hook resume {notice.id}")
    redeliver = command_hint(f"item redeliver {notice.id}")
    return f"{redeliver} / drop {notice.id}"
