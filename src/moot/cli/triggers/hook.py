"""``moot hook``: webhooks that come in and start runs. A secret is shown once, when it is made."""

import json
from typing import Any

import click

from moot.cli.schedules.wording import state_of
from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, to_read, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, talks
from moot.cli.triggers.queue import SUBSCRIPTIONS, counts


@click.group()
def hook() -> None:
    """Webhooks that come in: somebody's server starts runs here.

    One is named by its id or by a unique beginning of it. (What is told to others: moot webhook.)
    """


@hook.command()
@click.argument("flow", metavar="FLOW")
@click.option("--member", metavar="NAME", help="The standing agent whose work it is.")
@click.option("--map", "mapping", multiple=True, metavar="INPUT=PATH",
              help="Where an input stands: title=webhook.body.issue.name; repeat it.")  # fmt: skip
@click.option("--mode", type=click.Choice(["required", "best-effort", "none"]), default="required",
              help="Whether it must be signed [required].")  # fmt: skip
@talks
def add(
    options: Options, flow: str, member: str | None, mapping: tuple[str, ...], mode: str
) -> None:
    """Let a webhook start FLOW; print the address and, this once, the secret."""
    body: dict[str, Any] = {
        "source": "webhook", "workflowId": flow, "verification": {"mode": mode},
        "inputMapping": _mapping(mapping),
    }  # fmt: skip
    if member:
        body["rosterId"] = member if member.startswith("host:") else f"host:{member}"
    _told(options, to_write(options).post(SUBSCRIPTIONS, body), f"starts {flow}")


def _mapping(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=")[::2] for text in given]
    if wrong := [text for text, (name, path) in zip(given, pairs, strict=True)
                 if not name or not path]:  # fmt: skip
        raise Trouble(f"--map: write INPUT=PATH, not '{wrong[0]}'.", Exit.USAGE)
    return dict(pairs)


@hook.command("list")
@talks
def list_(options: Options) -> None:
    """List webhooks that come in; never their secrets."""
    rows = _all(to_read(options))
    if options.json:
        output.show_json(rows)
        return
    output.table(
        ("HOOK", "STATE", "WORKFLOW", "MEMBER"),
        (
            [output.short(r["subscriptionId"]), state_of(r), r.get("workflowId"), r.get("rosterId")]
            for r in rows
        ),
    )


@hook.command()
@click.argument("name", metavar="HOOK")
@talks
def show(options: Options, name: str) -> None:
    """Show a webhook that comes in, what came by it, and how that went."""
    api = to_read(options)
    found = _read(api, _find(api, name))
    if options.json:
        output.show_json(found)
        return
    flat = {**found["subscription"], **found["bound"]}
    member = f" for {flat['rosterId']}" if "rosterId" in flat else ""
    about = f"{flat['subscriptionId']} {flat['workflowId']}{member}"
    click.echo(output.line(f"{about}: {state_of(flat)}"))
    click.echo(output.line(f"address  {found['ingestUrl']}"))
    click.echo(output.line(f"came in  {counts(found['counts']) or 'nothing yet'}"))
    for input_, path in flat.get("inputMapping", {}).items():
        click.echo(output.line(f"input    {input_} is {path}"))
    output.table(
        ("CAME IN", "STATE", "RUN", "WHY"),
        ([output.short(r["deliveryId"]), r["state"], output.short(r.get("runId", "")),
          r.get("reason")] for r in found["deliveries"]),
    )  # fmt: skip


@hook.command()
@click.argument("name", metavar="HOOK")
@click.option("--reason", default="", help="Why, for everybody who looks at it.")
@talks
def pause(options: Options, name: str, reason: str) -> None:
    """Let it start nothing; who sends is refused."""
    _change(options, name, {"state": "paused", "note": reason}, "is paused")


@hook.command()
@click.argument("name", metavar="HOOK")
@talks
def resume(options: Options, name: str) -> None:
    """Let it start runs again, also after they could not be begun."""
    _change(options, name, {"state": "active"}, "is active")


@hook.command("map")
@click.argument("name", metavar="HOOK")
@click.argument("mapping", nargs=-1, metavar="INPUT=PATH...")
@talks
def map_(options: Options, name: str, mapping: tuple[str, ...]) -> None:
    """Say where its inputs stand; with none they are filled by their names."""
    _change(options, name, {"inputMapping": _mapping(mapping)}, "is mapped")


@hook.command()
@click.argument("name", metavar="HOOK")
@talks
def rotate(options: Options, name: str) -> None:
    """Make another secret and print it, this once; the one before stays good for a day."""
    api = to_write(options)
    made = api.post(f"{SUBSCRIPTIONS}{path_of(_find(api, name))}/rotate-secret", {})
    _told(options, made, "has another secret; the one before is good for a day")


@hook.command()
@click.argument("name", metavar="HOOK")
@talks
def remove(options: Options, name: str) -> None:
    """End it, with what could not be delivered."""
    api = to_write(options)
    found = _find(api, name)
    api.delete(f"{SUBSCRIPTIONS}{path_of(found)}")
    if options.json:
        output.show_json({"subscriptionId": found, "removed": True})
    else:
        click.echo(output.line(f"{found} starts nothing more"))


def _change(options: Options, name: str, body: dict[str, Any], what: str) -> None:
    api = to_write(options)
    found = _find(api, name)
    answer = api.ask("PATCH", f"{SUBSCRIPTIONS}{path_of(found)}", json.dumps(body).encode())
    if options.json:
        output.show_json(answer)
    else:
        click.echo(output.line(f"{found} {what}"))


def _told(options: Options, made: dict[str, Any], what: str) -> None:
    if options.json:
        output.show_json(made)
        return
    binding = made["binding"]
    click.echo(binding["ingestUrl"])
    click.echo(binding["signingSecret"])
    name = made["subscription"]["subscriptionId"]
    click.echo(f"{name} {what}. Keep the secret; it is not shown again.", err=True)


def _read(api: Api, name: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"{SUBSCRIPTIONS}{path_of(name)}")
    return found


def _all(api: Api) -> list[dict[str, Any]]:
    """There are no more of them than one page has."""
    found = api.get(SUBSCRIPTIONS, source="webhook")
    reasons = found.get("inert", {})
    return [
        {**row, **found["bound"][name], **({"inert": reasons[name]} if name in reasons else {})}
        for row in found["subscriptions"]
        if (name := row["subscriptionId"])
    ]


def _find(api: Api, given: str) -> str:
    ids = [str(row["subscriptionId"]) for row in _all(api)]
    meant = [found for found in ids if found.startswith((given, f"sub_{given}"))]
    if given in ids or len(meant) == 1:
        return given if given in ids else meant[0]
    if meant:
        raise Trouble(f"several webhooks are meant by '{given}': {', '.join(meant)}.", Exit.USAGE)
    raise Trouble(f"no webhook is called '{given}'. See: {way('hook list')}", Exit.NOT_FOUND)
