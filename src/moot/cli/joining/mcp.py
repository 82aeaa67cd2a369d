"""``moot mcp``: threads for assistants that speak MCP, over stdin and stdout."""

import os

import click

from moot.cli.shared.client import to_write
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, reaches
from moot.config.extras import install


@click.command()
@click.option("--as", "name", metavar="NAME",
              help="Under which name it takes part [the key's own person].")  # fmt: skip
@reaches
def mcp(options: Options, name: str | None) -> None:
    """Serve threads to an assistant over MCP: list, read, say, wait, ask a person, start a run.

    Give this command to the assistant as that of an MCP server; it ends with its input, or when
    nobody reads its output. It needs the official SDK. In a clone: make setup, or
    .venv/bin/pip install -e '.[mcp]'.
    """
    try:
        from moot.cli.joining.mcp_tools import server
    except ImportError:
        raise Trouble(f"the SDK is missing; install it with: {install('mcp')}") from None
    try:
        server(to_write(options), name).run("stdio")
    except ExceptionGroup as group:
        if group.subgroup(BrokenPipeError) is None:
            raise
        # nobody reads what it answers: its assistant has gone, which is an end like any other; at
        # once, because what was not written would be tried again, and complained of, on the way out
        os._exit(Exit.OK)
