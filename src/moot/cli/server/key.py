"""``moot key``: create, list and revoke keys. A secret is printed only once."""

import click

from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations import host
from moot.clock import SystemClock
from moot.wire.keys import KeyView


@click.group()
def key() -> None:
    """Keys: create, list, revoke."""


@key.command()
@click.option("--name", required=True, help="What the key is for.")
@click.option("--tenant", help="Whose key it is [your own tenant].")
@click.option("--scope", "scopes", multiple=True, help="What it may do; repeat it [the usual].")
@click.option("--as", "speaks_as", multiple=True, metavar="host:NAME", help="Who it speaks as.")
@click.option("--test", is_flag=True, help="A test key: mock providers are allowed.")
@click.option("--admin", is_flag=True, help="An administrator's key.")
@click.option("--expires-in", type=click.IntRange(1), metavar="SECONDS", help="It ends then.")
@server_options
def create(
    options: CommandOptions,
    name: str,
    tenant: str | None,
    scopes: tuple[str, ...],
    speaks_as: tuple[str, ...],
    expires_in: int | None,
    **flags: bool,
) -> None:
    """Make a key and print its secret, this once."""
    call = host.create_key(
        name,
        scopes=scopes or None,
        speaks_as=speaks_as,
        tenant=tenant or None,
        seconds=expires_in,
        **flags,
    )
    created = api_for_writing(options).send(call)
    rights = "an administrator's key" if created.admin else ", ".join(created.scopes) or "no scopes"
    sentence = f"{created.id} '{created.name}' of tenant {created.tenant}: {rights}"
    output.print_secret(options, created, [created.key], sentence)


@key.command("list")
@server_options
def list_(options: CommandOptions) -> None:
    """List keys; never their secrets."""
    output.print_list(
        options,
        api_for_reading(options).send(host.list_keys()).keys,
        ("ID", "NAME", "TENANT", "STATE", "MADE", "SCOPES"),
        lambda row: [row.id, row.name, row.tenant, _key_state(row), row.created_at[:10],
                     "admin" if row.admin else " ".join(row.scopes)],
    )  # fmt: skip


def _key_state(row: KeyView) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "in use" if row.expires_at is None else f"until {row.expires_at[:16]}"


@key.command()
@click.argument("key_ids", metavar="KEY...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Also the last administrator's key.")
@server_options
def revoke(options: CommandOptions, key_ids: tuple[str, ...], yes: bool) -> None:
    """Revoke keys, by id, unique prefix of an id, or name."""
    api = api_for_writing(options)
    for name in key_ids:
        rows = _active_keys(api)
        key_record = _find_key(rows, name)
        if not yes and [row.id for row in rows if row.admin] == [key_record.id]:
            raise CommandError(
                f"{key_record.id} '{key_record.name}' is the last administrator's key in use;"
                " without it nobody is an administrator any more. To revoke it all the same: --yes",
                ExitCode.USAGE,
            )
        api.send(host.revoke_key(key_record.id))
        if options.json:
            output.print_json_line({"id": key_record.id, "revoked": True})
        else:
            click.echo(output.safe_line(f"{key_record.id} '{key_record.name}' is revoked"))


def _active_keys(api: Api) -> list[KeyView]:
    """Return the keys that are neither revoked nor expired."""
    now = SystemClock().millis() / 1000
    return [
        row
        for row in api.send(host.list_keys()).keys
        if row.revoked_at is None
        and (row.expires_at is None or output.parse_timestamp(row.expires_at).timestamp() > now)
    ]


def _find_key(rows: list[KeyView], text: str) -> KeyView:
    exact = [row for row in rows if text in (row.id, row.name)]
    matches = exact or [row for row in rows if row.id.startswith((text, f"key_{text}"))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = ", ".join(row.id for row in matches)
        raise CommandError(f"several keys are meant by '{text}': {ids}.", ExitCode.USAGE)
    raise CommandError(
        f"no key in use is called '{text}'. See: {command_hint('key list')}", ExitCode.NOT_FOUND
    )
