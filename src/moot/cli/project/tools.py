"""``moot tools``: what agents can be given to use, and which of them may."""

import click

from moot.cli.shared import output
from moot.cli.shared.client import to_write
from moot.cli.shared.options import Options, talks

TOOLS = "/v1/host/moot/tools"


@click.group()
def tools() -> None:
    """Tools: functions, HTTP addresses and MCP servers that agents may use."""


@tools.command("list")
@click.option("--connect", is_flag=True, help="Ask MCP servers that were not asked yet.")
@talks
def list_(options: Options, connect: bool) -> None:
    """List the tools of the running server: where each is from, who may use it."""
    found = to_write(options).get(TOOLS, connect="true" if connect else "false")["tools"]
    if options.json:
        output.show_json(found)
        return
    output.table(
        ("NAME", "ASKS FIRST", "AGENTS", "SOURCE", "DESCRIPTION"),
        ([tool["name"], "yes" if tool["dangerous"] else "no", " ".join(tool["agents"]) or "-",
          tool["source"], tool.get("problem") or tool["description"]]
         for tool in found),
        empty="There are no tools. See: docs/tools.md",
    )  # fmt: skip
