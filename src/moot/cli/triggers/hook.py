"""``moot hook``: inbound webhooks that start runs. A secret is printed once."""

from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec import to_builtins

from moot.cli.schedules.wording import describe_state
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading, api_for_writing
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.names import find_id, member_id
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.triggers.queue import format_counts
from moot.client.operations import triggers
from moot.wire.triggers import NewSubscription, SubscriptionSummary, TriggerBinding

if TYPE_CHECKING:
    from moot.core.triggers.subscriptions import VerificationMode


hook_argument = click.argument("name", metavar="HOOK")


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
@server_options
def add(
    options: CommandOptions,
    flow: str,
    member: str | None,
    mapping: tuple[str, ...],
    mode: "VerificationMode",
) -> None:
    """Let a webhook start FLOW; print the address and, this once, the secret."""
    inputs, owner = _parse_mapping(mapping), member_id(member)
    call = triggers.create_subscription(
        flow, verification=mode, input_mapping=inputs, roster_id=owner
    )
    _print_secret(options, api_for_writing(options).send(call), f"starts {flow}")


def _parse_mapping(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=")[::2] for text in texts]
    if wrong := [text for text, (name, path) in zip(texts, pairs, strict=True)
                 if not name or not path]:  # fmt: skip
        raise CommandError(f"--map: write INPUT=PATH, not '{wrong[0]}'.", ExitCode.USAGE)
    return dict(pairs)


@hook.command("list")
@server_options
def list_(options: CommandOptions) -> None:
    """List webhooks that come in; never their secrets."""
    rows = _read_hooks(api_for_reading(options))
    if options.json:
        output.print_json([row.as_json() for row in rows])
        return
    output.print_table(
        ("HOOK", "STATE", "WORKFLOW", "MEMBER"),
        ([output.short_id(row.summary.subscription_id), row.state, row.bound.workflow_id,
          row.bound.roster_id] for row in rows),
    )  # fmt: skip


@hook.command()
@hook_argument
@server_options
def show(options: CommandOptions, name: str) -> None:
    """Show a webhook that comes in, what came by it, and how that went."""
    api = api_for_reading(options)
    hook_record = api.send(triggers.get_subscription(_find_hook(api, name)))
    if options.json:
        output.print_json(hook_record)
        return
    bound, summary = hook_record.bound, hook_record.subscription
    member = f" for {bound.roster_id}" if bound.roster_id else ""
    state = describe_state(summary.state, bound.inert, bound.until, bound.note)
    output.print_lines(
        f"{summary.subscription_id} {bound.workflow_id}{member}: {state}",
        f"address  {hook_record.ingest_url}",
        f"came in  {format_counts(hook_record.counts) or 'nothing yet'}",
        *(f"input    {name} is {path}" for name, path in (bound.input_mapping or {}).items()),
    )
    output.print_table(
        ("CAME IN", "STATE", "RUN", "WHY"),
        ([output.short_id(r.delivery_id), r.state, output.short_id(r.run_id or ""),
          r.reason or None] for r in hook_record.deliveries),
    )  # fmt: skip


@hook.command()
@hook_argument
@click.option("--reason", default="", help="Why, for everybody who looks at it.")
@server_options
def pause(options: CommandOptions, name: str, reason: str) -> None:
    """Let it start nothing; who sends is refused."""
    _change_hook(options, name, "is paused", state="paused", note=reason)


@hook.command()
@hook_argument
@server_options
def resume(options: CommandOptions, name: str) -> None:
    """Let it start runs again, also after they could not be begun."""
    _change_hook(options, name, "is active", state="active")


@hook.command("map")
@hook_argument
@click.argument("mapping", nargs=-1, metavar="INPUT=PATH...")
@server_options
def map_(options: CommandOptions, name: str, mapping: tuple[str, ...]) -> None:
    """Say where its inputs stand; with none they are filled by their names."""
    _change_hook(options, name, "is mapped", input_mapping=_parse_mapping(mapping))


@hook.command()
@hook_argument
@server_options
def rotate(options: CommandOptions, name: str) -> None:
    """Make another secret and print it, this once; the one before stays good for a day."""
    api = api_for_writing(options)
    rotated = api.send(triggers.rotate_subscription_secret(_find_hook(api, name)))
    _print_secret(options, rotated, "has another secret; the one before is good for a day")


@hook.command()
@hook_argument
@server_options
def remove(options: CommandOptions, name: str) -> None:
    """End it, with what could not be delivered."""
    api = api_for_writing(options)
    hook_id = _find_hook(api, name)
    api.send(triggers.remove_subscription(hook_id))
    removed = {"subscriptionId": hook_id, "removed": True}
    output.print_answer(options, removed, f"{hook_id} starts nothing more")


def _change_hook(options: CommandOptions, name: str, result: str, **changes: Any) -> None:
    api = api_for_writing(options)
    hook_id = _find_hook(api, name)
    answer = api.send(triggers.change_subscription(hook_id, **changes))
    output.print_answer(options, answer, f"{hook_id} {result}")


def _print_secret(options: CommandOptions, created: NewSubscription, result: str) -> None:
    secrets = (created.binding.ingest_url, created.binding.signing_secret)
    name = created.subscription.subscription_id
    output.print_secret(options, created, secrets, f"{name} {result}")


class InboundHook(NamedTuple):
    """An inbound webhook, its target, and the reason if it starts nothing now."""

    summary: SubscriptionSummary
    bound: TriggerBinding
    inert: str | None

    @property
    def state(self) -> str:
        return describe_state(self.summary.state, self.inert, self.bound.until, self.bound.note)

    def as_json(self) -> dict[str, object]:
        inert = {} if self.inert is None else {"inert": self.inert}
        return {**to_builtins(self.summary), **to_builtins(self.bound), **inert}


def _read_hooks(api: Api) -> list[InboundHook]:
    """Return all inbound webhooks, which fit on one page."""
    page = api.send(triggers.list_subscriptions(source="webhook"))
    targets = page.bound or {}
    return [
        InboundHook(row, targets[row.subscription_id], page.inert.get(row.subscription_id))
        for row in page.subscriptions
    ]


def _find_hook(api: Api, text: str) -> str:
    ids = [row.summary.subscription_id for row in _read_hooks(api)]
    return find_id(ids, text, "sub_", "webhook", "hook list")
