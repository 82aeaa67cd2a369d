"""``moot agent``: who there is."""

from typing import Any

import click

from moot.cli.roster.agent_set import change_agent
from moot.cli.roster.list import staff_rows
from moot.cli.roster.member import COMMANDS, meant
from moot.cli.roster.set import change_member
from moot.cli.roster.show import all_members, find_member, find_work, show_member
from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, to_read, to_write
from moot.cli.shared.options import Options, talks


@click.group()
def agent() -> None:
    """Agents, and those of them that are on staff: standing agents with work of their own."""


for _each in COMMANDS:
    agent.add_command(_each)


@agent.command("set")
@click.argument("name")
@click.argument("changes", metavar="KEY=VALUE...", nargs=-1, required=True)
@talks
def set_(options: Options, name: str, changes: tuple[str, ...]) -> None:
    """Change a standing agent: persona=Sal, portfolio=a,b, tokens-per-day=20k, enabled=no; or an
    agent: model=local, tools=look,http:rates, toolRounds=3, confidence=0.8.

    Nothing after the = takes a budget away, or puts back what is usual. Runs that go on keep the
    version they began with where one was pinned.
    """
    api = to_write(options)
    if (member := _found(api, name)) is not None:
        change_member(options, member["rosterId"], changes)
    else:
        change_agent(options, name, changes)


@agent.command("list")
@talks
def list_(options: Options) -> None:
    """The standing agents of the server, then the agents."""
    api = to_read(options)
    staff, found = all_members(api), api.get("/v1/host/moot/agents")["agents"]
    if options.json:
        output.show_json([*staff, *found])
        return
    rows = ([one["name"], one["persona"], one["role"], one["model"], "", "", "", one["description"]]
            for one in found)  # fmt: skip
    empty = "No agents. Write agents/NAME.md and start the server beside it."
    everybody = [*staff_rows(api, staff), *rows]
    columns = ("NAME", "CALLED", "ROLE", "MODEL", "STATE", "NEXT", "WAITING", "ABOUT")
    output.table(columns, everybody, empty=empty)


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


def _member(api: Api, name: str) -> dict[str, Any] | None:
    """One that is on staff, or was and no agent is called so."""
    if (member := _found(api, name)) is not None:
        return {**member, **(find_work(api, member["rosterId"]) or {})}
    return None if _is_agent(api, name) else find_work(api, name)


def _found(api: Api, name: str) -> dict[str, Any] | None:
    """By its handle, else by the name it goes by, unless an agent is called so."""
    if (member := find_member(api, name)) is not None:
        return member
    return None if _is_agent(api, name) else find_member(api, meant(api, name))


def _is_agent(api: Api, name: str) -> bool:
    agents = api.get("/v1/host/moot/agents")["agents"]
    return any(each["name"] == name.removeprefix("host:") for each in agents)


@agent.command()
@click.argument("name")
@talks
def show(options: Options, name: str) -> None:
    """A standing agent with its work, or else an agent with its prompt and its history."""
    api = to_read(options)
    if (member := _member(api, name)) is not None:
        output.show_json(member) if options.json else show_member(member)
        return
    found = api.get(path_of("v1", "host", "moot", "agents", name.removeprefix("host:")))
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
