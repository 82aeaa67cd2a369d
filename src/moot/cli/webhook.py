"""``moot webhook``: who is told of what happens. A secret is shown once, when it is made."""

from typing import Any

import click

from moot.cli import output
from moot.cli.client import Api, path_of, to_read, to_write
from moot.cli.options import Options, talks
from moot.cli.trouble import Exit, Trouble
from moot.cli.way import way

HOOKS = "/v1/host/moot/webhooks"


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
@talks
def add(options: Options, url: str, events: tuple[str, ...], tags: tuple[str, ...]) -> None:
    """Register URL and print the secret that signs, this once."""
    body = {"url": url, "events": list(events), "tags": list(tags)}
    _told(options, to_write(options).post("/v1/webhooks", body), "is told of what happens")


@webhook.command("list")
@talks
def list_(options: Options) -> None:
    """List webhooks; never their secrets."""
    rows = to_read(options).get(HOOKS)["webhooks"]
    if options.json:
        output.show_json(rows)
        return
    output.table(
        ("ID", "STATE", "EVENTS", "URL", "SINCE"),
        ([r["webhookId"], r["state"], " ".join(r["events"]), r["url"], r["createdAt"][:10]]
         for r in rows),
    )  # fmt: skip


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@talks
def show(options: Options, name: str) -> None:
    """Show a webhook and how its receiver does, with its dead letters."""
    api = to_read(options)
    path = f"{HOOKS}{path_of(_find(api, name))}"
    found, letters = api.get(path), api.get(f"{path}/dead-letters")["deadLetters"]
    if options.json:
        output.show_json({**found, "deadLetters": letters})
        return
    click.echo(output.line(f"{found['webhookId']} {found['url']}: {found['state']}"))
    if "leftAloneUntil" in found:
        click.echo(output.line(f"failed too often; left alone until {found['leftAloneUntil']}"))
    if letters:
        rows = ([r["deliveryId"], r["eventType"], f"{r['runId']}@{r['sequence']}", r["reason"]]
                for r in letters)  # fmt: skip
        output.table(("DEAD LETTER", "EVENT", "OF", "WHY"), rows)


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@talks
def rotate(options: Options, name: str) -> None:
    """Make another secret and print it, this once; the one before stays good for a day."""
    api = to_write(options)
    made = api.post(f"/v1/webhooks{path_of(_find(api, name))}/rotate-secret", {})
    _told(options, made, "has another secret; the one before is good for a day")


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@click.argument("letter", metavar="DEAD-LETTER")
@talks
def redeliver(options: Options, name: str, letter: str) -> None:
    """Try a dead letter once more."""
    api = to_write(options)
    path = f"{HOOKS}{path_of(_find(api, name))}/dead-letters{path_of(letter)}:redeliver"
    answer = api.post(path, {})
    if options.json:
        output.show_json(answer)
    else:
        click.echo(output.line(f"{letter} is on its way again"))


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@talks
def remove(options: Options, name: str) -> None:
    """Tell it nothing more."""
    api = to_write(options)
    found = _find(api, name)
    api.delete(f"/v1/webhooks{path_of(found)}")
    if options.json:
        output.show_json({"webhookId": found, "removed": True})
    else:
        click.echo(output.line(f"{found} is told nothing more"))


def _told(options: Options, made: dict[str, Any], what: str) -> None:
    if options.json:
        output.show_json(made)
        return
    click.echo(made["secret"])
    click.echo(f"{made['webhookId']} {what}. Keep the secret; it is not shown again.", err=True)


def _find(api: Api, given: str) -> str:
    ids = [str(row["webhookId"]) for row in api.get(HOOKS)["webhooks"]]
    meant = [found for found in ids if found.startswith((given, f"wh_{given}"))]
    if given in ids or len(meant) == 1:
        return given if given in ids else meant[0]
    if meant:
        raise Trouble(f"several webhooks are meant by '{given}': {', '.join(meant)}.", Exit.USAGE)
    raise Trouble(f"no webhook is called '{given}'. See: {way('webhook list')}", Exit.NOT_FOUND)
