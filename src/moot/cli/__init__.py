"""The command line. Every command imports what it needs when it runs, so that help is quick."""

import sys

import click

from moot.cli.serve import serve
from moot.cli.trouble import Exit, Trouble


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def moot() -> None:
    """Moot: durable workflows in one file, an OpenWOP v1 host."""


moot.add_command(serve)


def main() -> None:
    try:
        sys.exit(moot.main(standalone_mode=False))
    except click.UsageError as error:
        error.show()
        sys.exit(Exit.USAGE)
    except click.Abort:
        sys.exit(130)
    except Trouble as trouble:
        click.echo(f"error: {trouble}", err=True)
        sys.exit(trouble.exit_code)
