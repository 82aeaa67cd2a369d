"""``moot tools``: list the tools that agents may use."""

import click

from moot.cli.shared import output
from moot.cli.shared.client import api_for_writing
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations.host import list_tools


@click.group()
def tools() -> None:
    """Tools: functions, HTTP addresses and MCP servers that agents may use."""


@tools.command("list")
@click.option("--connect", is_flag=True, help="Ask MCP servers that were not asked yet.")
@server_options
def list_(options: CommandOptions, connect: bool) -> None:
    """List the tools of the running server: where each is from, who may use it."""
    output.print_list(
        options,
        api_for_writing(options).send(list_tools(connect=connect)).tools,
        ("NAME", "ASKS FIRST", "AGENTS", "SOURCE", "DESCRIPTION"),
        lambda tool: [tool.name, "yes" if tool.dangerous else "no", " ".join(tool.agents),
                      tool.source, tool.problem or tool.description],
        empty="There are no tools. See: docs/tools.md",
    )  # fmt: skip
