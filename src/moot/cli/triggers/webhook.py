"""``moot webhook``: who is told of what happens. A secret is shown once, when it is made."""

from collections.abc import Iterator
from typing import Any

import click

from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, to_read, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, talks

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
        ("ID", "STATE", "WAITING", "DEAD", "EVENTS", "URL", "SINCE"),
        ([output.short(r["webhookId"]), _state(r), r["waiting"], r["deadLetters"],
          " ".join(r["events"]), r["url"], r["createdAt"][:10]] for r in rows),
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
    click.echo(output.line(f"{found['webhookId']} {found['url']}: {_state(found)}"))
    for line in _doing(found):
        click.echo(output.line(line))
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
@talks
def pause(options: Options, name: str) -> None:
    """Call it no more; what happens meanwhile is kept for it."""
    _turned(options, name, "pause", "is not called; what happens is kept for it")


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@talks
def resume(options: Options, name: str) -> None:
    """Call it again at once, also where it was left alone after failures."""
    _turned(options, name, "resume", "is called again")


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@click.argument("letter", metavar="[DEAD-LETTER]", required=False)
@click.option("--all", "every", is_flag=True, help="All of its dead letters.")
@talks
def redeliver(options: Options, name: str, letter: str | None, every: bool) -> None:
    """Try a dead letter once more, or --all of them."""
    _acted(options, name, letter, every, "redeliver", "on the way again")


@webhook.command()
@click.argument("name", metavar="WEBHOOK")
@click.argument("letter", metavar="[DEAD-LETTER]", required=False)
@click.option("--all", "every", is_flag=True, help="All of its dead letters.")
@talks
def drop(options: Options, name: str, letter: str | None, every: bool) -> None:
    """Take a dead letter off the list, or --all of them."""
    _acted(options, name, letter, every, "drop", "dropped")


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


def _state(found: dict[str, Any]) -> str:
    """In a word; one that is left alone for a while is still active."""
    if found["state"] == "active" and "leftAloneUntil" in found:
        return "left alone"
    return str(found["state"])


def _doing(found: dict[str, Any]) -> Iterator[str]:
    """How its receiver does, and what can be done about it."""
    name = output.short(found["webhookId"])
    if "lastError" in found:
        row = found["failuresInARow"]
        times = "once" if row == 1 else f"{row} times in a row"
        yield f"failed {times}, last {found['lastErrorAt']}: {found['lastError']}"
    if found["state"] == "failed":
        yield "given up: register it again"
    elif "leftAloneUntil" in found:
        at_once = way(f"webhook resume {name}")
        yield f"left alone until {found['leftAloneUntil']}; to call it at once: {at_once}"
    if found["waiting"]:
        waiting = found["waiting"]
        yield "1 event waits for it" if waiting == 1 else f"{waiting} events wait for it"


def _turned(options: Options, name: str, verb: str, what: str) -> None:
    api = to_write(options)
    found = _find(api, name)
    answer = api.post(f"{HOOKS}{path_of(found)}/{verb}", {})
    if options.json:
        output.show_json(answer)
    else:
        click.echo(output.line(f"{found} {what}"))


def _acted(
    options: Options, name: str, letter: str | None, every: bool, verb: str, what: str
) -> None:
    if every == (letter is not None):
        raise Trouble("name a dead letter, or all of them with --all.", Exit.USAGE)
    api = to_write(options)
    path = f"{HOOKS}{path_of(_find(api, name))}/dead-letters"
    names = _letters(api, path) if letter is None else [letter]
    answers = [api.post(f"{path}{path_of(each)}:{verb}", {}) for each in names]
    if options.json:
        output.show_json(answers if letter is None else answers[0])
    else:
        counted = names[0] if len(names) == 1 else f"{len(names)} dead letters"
        click.echo(output.line(f"{counted} {'is' if len(names) == 1 else 'are'} {what}"))


def _letters(api: Api, path: str) -> list[str]:
    """All there are now; what dies again meanwhile is not asked for twice."""
    names: list[str] = []
    page = api.get(path, limit=200)
    while True:
        names += [str(row["deliveryId"]) for row in page["deadLetters"]]
        if "nextCursor" not in page:
            return names
        page = api.get(path, limit=200, cursor=page["nextCursor"])


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
