"""``moot key``: who may call the server. A secret is shown once, when its key is made."""

from typing import Any

import click

from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, to_read, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, talks

KEYS = "/v1/host/moot/keys"


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
@talks
def create(
    options: Options,
    name: str,
    tenant: str | None,
    scopes: tuple[str, ...],
    speaks_as: tuple[str, ...],
    expires_in: int | None,
    **flags: bool,
) -> None:
    """Make a key and print its secret, this once."""
    body: dict[str, Any] = {"name": name, "as": list(speaks_as), **flags}
    if tenant:
        body["tenant"] = tenant
    if scopes:
        body["scopes"] = list(scopes)
    if expires_in:
        body["expires_in_s"] = expires_in
    made = to_write(options).post(KEYS, body)
    if options.json:
        output.show_json(made)
        return
    click.echo(made["key"])
    what = "an administrator's key" if made["admin"] else ", ".join(made["scopes"]) or "no scopes"
    click.echo(
        f"{made['id']} '{made['name']}' of tenant {made['tenant']}: {what}."
        " Keep the secret; it is not shown again.",
        err=True,
    )


@key.command("list")
@talks
def list_(options: Options) -> None:
    """List keys; never their secrets."""
    rows = to_read(options).get(KEYS)["keys"]
    if options.json:
        output.show_json(rows)
        return
    output.table(
        ("ID", "NAME", "TENANT", "STATE", "MADE", "SCOPES"),
        ([r["id"], r["name"], r["tenant"], _state(r), r["createdAt"][:10], _scopes(r)]
         for r in rows),
    )  # fmt: skip


def _state(row: dict[str, Any]) -> str:
    if "revokedAt" in row:
        return "revoked"
    return f"until {row['expiresAt'][:16]}" if "expiresAt" in row else "in use"


def _scopes(row: dict[str, Any]) -> str:
    return "admin" if row["admin"] else " ".join(row["scopes"])


@key.command()
@click.argument("key_ids", metavar="KEY...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Also the last administrator's key.")
@talks
def revoke(options: Options, key_ids: tuple[str, ...], yes: bool) -> None:
    """Revoke keys, by id, unique prefix of an id, or name."""
    api = to_write(options)
    for given in key_ids:
        rows = _in_use(api)
        found = _resolve(rows, given)
        if not yes and [row["id"] for row in rows if row["admin"]] == [found["id"]]:
            raise Trouble(
                f"{found['id']} '{found['name']}' is the last administrator's key in use; without"
                " it nobody is an administrator any more. To revoke it all the same: --yes",
                Exit.USAGE,
            )
        api.delete(f"{KEYS}{path_of(found['id'])}")
        if options.json:
            output.json_line({"id": found["id"], "revoked": True})
        else:
            click.echo(output.line(f"{found['id']} '{found['name']}' is revoked"))


def _in_use(api: Api) -> list[dict[str, Any]]:
    """Keys that are neither revoked nor past their end."""
    from moot.clock import SystemClock

    now = SystemClock().millis() / 1000
    return [
        row
        for row in api.get(KEYS)["keys"]
        if "revokedAt" not in row
        and ("expiresAt" not in row or output.moment(row["expiresAt"]).timestamp() > now)
    ]


def _resolve(rows: list[dict[str, Any]], given: str) -> dict[str, Any]:
    named = [row for row in rows if given in (row["id"], row["name"])]
    meant = named or [row for row in rows if row["id"].startswith((given, f"key_{given}"))]
    if len(meant) == 1:
        return dict(meant[0])
    if meant:
        found = ", ".join(row["id"] for row in meant)
        raise Trouble(f"several keys are meant by '{given}': {found}.", Exit.USAGE)
    raise Trouble(f"no key in use is called '{given}'. See: {way('key list')}", Exit.NOT_FOUND)
