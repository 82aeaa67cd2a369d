"""``moot version`` and ``moot openapi``: facts that need no server."""

import click

from moot import __version__
from moot.cli.shared import output
from moot.cli.shared.options import CommandOptions, json_option


@click.command()
@json_option
def version(options: CommandOptions) -> None:
    """Print the version."""
    if not options.json:
        click.echo(f"moot {__version__}")
        return
    import platform

    import apsw

    from moot.api.host.discovery import PROTOCOL_VERSION

    output.print_json(
        {
            "moot": __version__,
            "protocol": PROTOCOL_VERSION,
            "python": platform.python_version(),
            "sqlite": apsw.sqlite_lib_version(),
        }
    )


@click.command()
def openapi() -> None:
    """Print the API's OpenAPI document."""
    from moot.api.host.openapi import openapi_document

    output.print_json(openapi_document())
