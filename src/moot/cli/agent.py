"""``moot agent``: who there is."""

import click

from moot.cli import output
from moot.cli.agent_set import set_
from moot.cli.client import path_of, to_read, to_write
from moot.cli.options import Options, talks


@click.group()
def agent() -> None:
    """Agents: list, show, change and remove."""


agent.add_command(set_)


@agent.command("list")
@talks
def list_(options: Options) -> None:
    """The agents of the server."""
    found = to_read(options).get("/v1/host/moot/agents")["agents"]
    if options.json:
        output.show_json(found)
        return
    rows = ([one["name"], one["persona"], one["role"], one["model"], one["description"]]
            for one in found)  # fmt: skip
    empty = "No agents. Write agents/NAME.md and start the server beside it."
    output.table(("NAME", "CALLED", "ROLE", "MODEL", "ABOUT"), rows, empty=empty)


@agent.command()
@click.argument("name")
@talks
def remove(options: Options, name: str) -> None:
    """Let an agent go; what it has said stays. One with a file comes back with the next start."""
    short = name.removeprefix("host:")
    to_write(options).delete(path_of("v1", "host", "moot", "agents", short))
    if options.json:
        output.show_json({"name": short, "removed": True})
    else:
        click.echo(f"{short} is gone.")


@agent.command()
@click.argument("name")
@talks
def show(options: Options, name: str) -> None:
    """One agent, with its prompt and its history."""
    found = to_read(options).get(path_of("v1", "host", "moot", "agents", name))
    if options.json:
        output.show_json(found)
        return
    role = f" · {output.line(found['role'])}" if found["role"] else ""
    click.echo(f"{click.style(output.line(found['persona']), bold=True)}{role}")
    click.echo(f"{'id':<10}{output.line(found['agentId'])}")
    click.echo(f"{'model':<10}{output.line(found['model'])}")
    if found["tools"]:
        click.echo(f"{'tools':<10}{output.line(', '.join(found['tools']))}")
    newest = found["history"][0] if found["history"] else {}
    by = f", by {newest.get('by')}, {newest.get('at')}" if newest else ""
    click.echo(f"{'version':<10}{output.line(found['version'] + by)}")
    if found["prompt"]:
        click.echo(f"\n{output.lines(found['prompt'])}")
