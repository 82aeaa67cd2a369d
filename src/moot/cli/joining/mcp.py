"""``moot mcp``: serve threads to assistants that speak MCP, over stdin and stdout."""

import os

import click

from moot.cli.shared.client import api_for_writing
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, connection_options
from moot.config.extras import install_hint


@click.command()
@click.option("--as", "name", metavar="NAME",
              help="Under which name it takes part [the key's own person].")  # fmt: skip
@connection_options
def mcp(options: CommandOptions, name: str | None) -> None:
    """Serve threads to an assistant over MCP: list, read, say, wait, ask a person, start a run.

    Give this command to the assistant as that of an MCP server; it ends with its input, or when
    nobody reads its output. It needs the official SDK. In a clone: make setup, or
    .venv/bin/pip install -e '.[mcp]'.
    """
    try:
        from moot.cli.joining.mcp_tools import build_server
    except ImportError:
        raise CommandError(f"the SDK is missing; install it with: {install_hint('mcp')}") from None
    try:
        build_server(api_for_writing(options), name).run("stdio")
    except ExceptionGroup as group:
        if group.subgroup(BrokenPipeError) is None:
            raise
        # the assistant has closed the pipe, which is a normal end; exit at once, because Python
        # would try to flush the unwritten rest on the way out, and fail
        os._exit(ExitCode.OK)
