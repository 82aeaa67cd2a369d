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
    tool_rows = api_for_writing(options).send(list_tools(connect=connect)).tools
    if options.json:
        output.print_json(tool_rows)
        return
    output.print_table(
        ("NAME", "ASKS FIRST", "AGENTS", "SOURCE", "DESCRIPTION"),
        ([tool.name, "yes" if tool.dangerous else "no", " ".join(tool.agents) or "-",
          tool.source, tool.problem or tool.description]
         for tool in tool_rows),
        empty="There are no tools. See: docs/tools.md",
    )  # fmt: skip
