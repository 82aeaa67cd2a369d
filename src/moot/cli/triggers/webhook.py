"""``moot webhook``: receivers of this host's events. A secret is printed once."""

from collections.abc import Iterator
from typing import Any

import click

from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading, api_for_writing, api_path
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, server_options

WEBHOOKS = "/v1/host/moot/webhooks"


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
    body = {"url": url, "events": list(events), "tags": list(tags)}
    _print_secret(
        options, api_for_writing(options).post("/v1/webhooks", body), "is told of what happens"
    )


@webhook.command("list")
@server_options
def list_(options: CommandOptions) -> None:
    """List webhooks; never their secrets."""
    rows = api_for_reading(options).get(WEBHOOKS)["webhooks"]
    if options.json:
        output.print_json(rows)
        return
    output.print_table(
        ("ID", "STATE", "WAITING", "DEAD", "EVENTS", "URL", "SINCE"),
        ([output.short_id(r["webhookId"]), _webhook_state(r), r["waiting"], r["deadLetters"],
          " ".join(r["events"]), r["url"], r["createdAt"][:10]] for r in rows),
    )  # fmt: skip


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@server_options
def show(options: CommandOptions, name: str) -> None:
    """Show a webhook and how its receiver does, with its dead letters."""
    api = api_for_reading(options)
    path = f"{WEBHOOKS}{api_path(_find_webhook(api, name))}"
    webhook_record, letters = api.get(path), api.get(f"{path}/dead-letters")["deadLetters"]
    if options.json:
        output.print_json({**webhook_record, "deadLetters": letters})
        return
    head = f"{webhook_record['webhookId']} {webhook_record['url']}"
    click.echo(output.safe_line(f"{head}: {_webhook_state(webhook_record)}"))
    for line in _health_lines(webhook_record):
        click.echo(output.safe_line(line))
    if letters:
        rows = ([r["deliveryId"], r["eventType"], f"{r['runId']}@{r['sequence']}", r["reason"]]
                for r in letters)  # fmt: skip
        output.print_table(("DEAD LETTER", "EVENT", "OF", "WHY"), rows)


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@server_options
def rotate(options: CommandOptions, name: str) -> None:
    """Make another secret and print it, this once; the one before stays good for a day."""
    api = api_for_writing(options)
    rotated = api.post(f"/v1/webhooks{api_path(_find_webhook(api, name))}/rotate-secret", {})
    _print_secret(options, rotated, "has another secret; the one before is good for a day")


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@server_options
def pause(options: CommandOptions, name: str) -> None:
    """Call it no more; what happens meanwhile is kept for it."""
    _post_webhook_action(options, name, "pause", "is not called; what happens is kept for it")


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@server_options
def resume(options: CommandOptions, name: str) -> None:
    """Call it again at once, also where it was left alone after failures."""
    _post_webhook_action(options, name, "resume", "is called again")


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@click.argument("letter", metavar="[DEAD-LETTER]", required=False)
@click.option("--all", "every", is_flag=True, help="All of its dead letters.")
@server_options
def redeliver(options: CommandOptions, name: str, letter: str | None, every: bool) -> None:
    """Try a dead letter once more, or --all of them."""
    _post_letter_action(options, name, letter, every, "redeliver", "on the way again")


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@click.argument("letter", metavar="[DEAD-LETTER]", required=False)
@click.option("--all", "every", is_flag=True, help="All of its dead letters.")
@server_options
def drop(options: CommandOptions, name: str, letter: str | None, every: bool) -> None:
    """Take a dead letter off the list, or --all of them."""
    _post_letter_action(options, name, letter, every, "drop", "dropped")


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@server_options
def remove(options: CommandOptions, name: str) -> None:
    """Tell it nothing more."""
    api = api_for_writing(options)
    webhook_id = _find_webhook(api, name)
    api.delete(f"/v1/webhooks{api_path(webhook_id)}")
    if options.json:
        output.print_json({"webhookId": webhook_id, "removed": True})
    else:
        click.echo(output.safe_line(f"{webhook_id} is told nothing more"))


def _webhook_state(webhook_record: dict[str, Any]) -> str:
    """Return the state in a word; a receiver that is left alone for a while is still active."""
    if webhook_record["state"] == "active" and "leftAloneUntil" in webhook_record:
        return "left alone"
    return str(webhook_record["state"])


def _health_lines(webhook_record: dict[str, Any]) -> Iterator[str]:
    """Yield the state of the receiver, with a remedy."""
    name = output.short_id(webhook_record["webhookId"])
    if "lastError" in webhook_record:
        failures = webhook_record["failuresInARow"]
        times = "once" if failures == 1 else f"{failures} times in a row"
        yield f"failed {times}, last {webhook_record['lastErrorAt']}: {webhook_record['lastError']}"
    if webhook_record["state"] == "failed":
        yield "given up: register it again"
    elif "leftAloneUntil" in webhook_record:
        at_once = command_hint(f"webhook resume {name}")
        yield f"left alone until {webhook_record['leftAloneUntil']}; to call it at once: {at_once}"
    if webhook_record["waiting"]:
        waiting = webhook_record["waiting"]
        yield "1 event waits for it" if waiting == 1 else f"{waiting} events wait for it"


def _post_webhook_action(options: CommandOptions, name: str, verb: str, result: str) -> None:
    api = api_for_writing(options)
    webhook_id = _find_webhook(api, name)
    answer = api.post(f"{WEBHOOKS}{api_path(webhook_id)}/{verb}", {})
    if options.json:
        output.print_json(answer)
    else:
        click.echo(output.safe_line(f"{webhook_id} {result}"))


def _post_letter_action(
    options: CommandOptions, name: str, letter: str | None, every: bool, verb: str, result: str
) -> None:
    if every == (letter is not None):
        raise CommandError("name a dead letter, or all of them with --all.", ExitCode.USAGE)
    api = api_for_writing(options)
    path = f"{WEBHOOKS}{api_path(_find_webhook(api, name))}/dead-letters"
    names = _read_letter_ids(api, path) if letter is None else [letter]
    answers = [api.post(f"{path}{api_path(each)}:{verb}", {}) for each in names]
    if options.json:
        output.print_json(answers if letter is None else answers[0])
    else:
        subject = names[0] if len(names) == 1 else f"{len(names)} dead letters"
        click.echo(output.safe_line(f"{subject} {'is' if len(names) == 1 else 'are'} {result}"))


def _read_letter_ids(api: Api, path: str) -> list[str]:
    """Return all dead letters there are now; one that fails again meanwhile is not read twice."""
    names: list[str] = []
    page = api.get(path, limit=200)
    while True:
        names += [str(row["deliveryId"]) for row in page["deadLetters"]]
        if "nextCursor" not in page:
            return names
        page = api.get(path, limit=200, cursor=page["nextCursor"])


def _print_secret(options: CommandOptions, created: dict[str, Any], result: str) -> None:
    if options.json:
        output.print_json(created)
        return
    click.echo(created["secret"])
    click.echo(
        f"{created['webhookId']} {result}. Keep the secret; it is not shown again.", err=True
    )


def _find_webhook(api: Api, text: str) -> str:
    ids = [str(row["webhookId"]) for row in api.get(WEBHOOKS)["webhooks"]]
    matches = [webhook_id for webhook_id in ids if webhook_id.startswith((text, f"wh_{text}"))]
    if text in ids or len(matches) == 1:
        return text if text in ids else matches[0]
    if matches:
        raise CommandError(
            f"several webhooks are meant by '{text}': {', '.join(matches)}.", ExitCode.USAGE
        )
    raise CommandError(
        f"no webhook is called '{text}'. See: {command_hint('webhook list')}", ExitCode.NOT_FOUND
    )
