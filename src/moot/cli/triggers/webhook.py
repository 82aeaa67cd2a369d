"""``moot webhook``: receivers of this host's events. A secret is printed once."""

from collections.abc import Callable, Iterator

import click
from msgspec import to_builtins

from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.names import find_id
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.http.operation import PreparedCall
from moot.client.operations import webhooks
from moot.wire.webhooks import WebhookDeadLetter, WebhookSecret, WebhookView

webhook_argument = click.argument("name", metavar="WEBHOOK")
letter_argument = click.argument("letter", metavar="[DEAD-LETTER]", required=False)
all_option = click.option("--all", "every", is_flag=True, help="All of its dead letters.")


@click.group()
def webhook() -> None:
    """Webhooks: tell somebody's server of what happens here.

    One is named by its id or by a unique beginning of it.
    """


@webhook.command()
@click.argument("url", metavar="URL")
@click.option("--event", "events", multiple=True, metavar="TYPE", default=("*",),
              help="Which type of event; repeat it [all].")  # fmt: skip
@click.option("--tag", "tags", multiple=True, help="Only of runs with this tag; repeat it.")
@server_options
def add(options: CommandOptions, url: str, events: tuple[str, ...], tags: tuple[str, ...]) -> None:
    """Register URL and print the secret that signs, this once."""
    call = webhooks.register_webhook(url, events, tags=tags)
    _print_secret(options, api_for_writing(options).send(call), "receives events")


@webhook.command("list")
@server_options
def list_(options: CommandOptions) -> None:
    """List webhooks; never their secrets."""
    output.print_list(
        options,
        api_for_reading(options).send(webhooks.list_webhooks()).webhooks,
        ("ID", "STATE", "WAITING", "DEAD", "EVENTS", "URL", "SINCE"),
        lambda row: [output.short_id(row.webhook_id), _webhook_state(row), row.waiting,
                     row.dead_letters, " ".join(row.events), row.url, row.created_at[:10]],
    )  # fmt: skip


@webhook.command()
@webhook_argument
@server_options
def show(options: CommandOptions, name: str) -> None:
    """Show a webhook and how its receiver does, with its dead letters."""
    api = api_for_reading(options)
    webhook_id = _find_webhook(api, name)
    webhook_record = api.send(webhooks.get_webhook(webhook_id))
    letters = api.send(webhooks.list_webhook_dead_letters(webhook_id)).dead_letters
    if options.json:
        output.print_json({**to_builtins(webhook_record), "deadLetters": letters})
        return
    head = f"{webhook_record.webhook_id} {webhook_record.url}"
    output.print_lines(f"{head}: {_webhook_state(webhook_record)}", *_health_lines(webhook_record))
    if letters:
        rows = ([r.delivery_id, r.event_type, f"{r.run_id}@{r.sequence}", r.reason]
                for r in letters)  # fmt: skip
        output.print_table(("DEAD LETTER", "EVENT", "OF", "WHY"), rows)


@webhook.command()
@webhook_argument
@server_options
def rotate(options: CommandOptions, name: str) -> None:
    """Make another secret and print it, this once; the one before stays good for a day."""
    api = api_for_writing(options)
    rotated = api.send(webhooks.rotate_webhook_secret(_find_webhook(api, name)))
    _print_secret(options, rotated, "has another secret; the one before is good for a day")


@webhook.command()
@webhook_argument
@server_options
def pause(options: CommandOptions, name: str) -> None:
    """Call it no more; what happens meanwhile is kept for it."""
    result = "is not called; what happens is kept for it"
    _change_webhook(options, name, webhooks.pause_webhook, result)


@webhook.command()
@webhook_argument
@server_options
def resume(options: CommandOptions, name: str) -> None:
    """Call it again at once, also where it was left alone after failures."""
    _change_webhook(options, name, webhooks.resume_webhook, "is called again")


@webhook.command()
@webhook_argument
@letter_argument
@all_option
@server_options
def redeliver(options: CommandOptions, name: str, letter: str | None, every: bool) -> None:
    """Try a dead letter once more, or --all of them."""
    change = webhooks.redeliver_dead_letter
    _change_letters(options, name, letter, every, change, "on the way again")


@webhook.command()
@webhook_argument
@letter_argument
@all_option
@server_options
def drop(options: CommandOptions, name: str, letter: str | None, every: bool) -> None:
    """Take a dead letter off the list, or --all of them."""
    _change_letters(options, name, letter, every, webhooks.drop_dead_letter, "dropped")


@webhook.command()
@webhook_argument
@server_options
def remove(options: CommandOptions, name: str) -> None:
    """Tell it nothing more."""
    api = api_for_writing(options)
    webhook_id = _find_webhook(api, name)
    api.send(webhooks.remove_webhook(webhook_id))
    removed = {"webhookId": webhook_id, "removed": True}
    output.print_answer(options, removed, f"{webhook_id} is told nothing more")


def _webhook_state(webhook_record: WebhookView) -> str:
    """Return the state in a word; a receiver that is left alone for a while is still active."""
    if webhook_record.state == "active" and webhook_record.left_alone_until is not None:
        return "left alone"
    return webhook_record.state


def _health_lines(webhook_record: WebhookView) -> Iterator[str]:
    """Yield the state of the receiver, with a remedy."""
    name = output.short_id(webhook_record.webhook_id)
    if webhook_record.last_error is not None:
        failures = webhook_record.failures_in_a_row
        times = "once" if failures == 1 else f"{failures} times in a row"
        yield f"failed {times}, last {webhook_record.last_error_at}: {webhook_record.last_error}"
    if webhook_record.state == "failed":
        yield "given up: register it again"
    elif webhook_record.left_alone_until is not None:
        at_once = command_hint(f"webhook resume {name}")
        yield f"left alone until {webhook_record.left_alone_until}; to call it at once: {at_once}"
    if waiting := webhook_record.waiting:
        yield "1 event waits for it" if waiting == 1 else f"{waiting} events wait for it"


def _change_webhook(
    options: CommandOptions,
    name: str,
    change: Callable[[str], PreparedCall[WebhookView]],
    result: str,
) -> None:
    api = api_for_writing(options)
    webhook_id = _find_webhook(api, name)
    output.print_answer(options, api.send(change(webhook_id)), f"{webhook_id} {result}")


def _change_letters(
    options: CommandOptions,
    name: str,
    letter: str | None,
    every: bool,
    change: Callable[[str, str], PreparedCall[WebhookDeadLetter]],
    result: str,
) -> None:
    if every == (letter is not None):
        raise CommandError("name a dead letter, or all of them with --all.", ExitCode.USAGE)
    api = api_for_writing(options)
    webhook_id = _find_webhook(api, name)
    names = _read_letter_ids(api, webhook_id) if letter is None else [letter]
    answers = [api.send(change(webhook_id, each)) for each in names]
    subject = f"{names[0]} is" if len(names) == 1 else f"{len(names)} dead letters are"
    answer: object = answers if letter is None else answers[0]
    output.print_answer(options, answer, f"{subject} {result}")


def _read_letter_ids(api: Api, webhook_id: str) -> list[str]:
    """Return all dead letters there are now; one that fails again meanwhile is not read twice."""
    names: list[str] = []
    cursor = None
    while True:
        call = webhooks.list_webhook_dead_letters(webhook_id, limit=200, cursor=cursor)
        page = api.send(call)
        names += [row.delivery_id for row in page.dead_letters]
        cursor = page.next_cursor
        if cursor is None:
            return names


def _print_secret(options: CommandOptions, created: WebhookSecret, result: str) -> None:
    sentence = f"{created.webhook_id} {result}"
    output.print_secret(options, created, [created.secret], sentence)


def _find_webhook(api: Api, text: str) -> str:
    ids = [row.webhook_id for row in api.send(webhooks.list_webhooks()).webhooks]
    return find_id(ids, text, "wh_", "webhook", "webhook list")
