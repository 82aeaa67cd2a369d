"""``moot agent``: list, show, change and remove agents."""

import click
from msgspec import to_builtins

from moot.cli.roster.member import COMMANDS, resolve_member
from moot.cli.roster.set import change_agent, change_member
from moot.cli.roster.show import (
    find_member,
    find_work,
    member_rows,
    print_member,
    read_members,
)
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading, api_for_writing
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations import host
from moot.wire.roster import MemberDetail


@click.group()
def agent() -> None:
    """Agents, and those of them that are on staff: standing agents with work of their own."""


for _each in COMMANDS:
    agent.add_command(_each)


@agent.command("set")
@click.argument("name")
@click.argument("changes", metavar="KEY=VALUE...", nargs=-1, required=True)
@server_options
def set_(options: CommandOptions, name: str, changes: tuple[str, ...]) -> None:
    """Change a standing agent: persona=Sal, portfolio=a,b, tokens-per-day=20k, enabled=no; or an
    agent: model=local, tools=look,http:rates, toolRounds=3, confidence=0.8.

    Nothing after the = takes a budget away, or puts back what is usual. Runs that go on keep the
    version they began with where one was pinned.
    """
    api = api_for_writing(options)
    if (member := _find_member_by_name(api, name)) is not None:
        change_member(options, member.roster_id, changes)
    else:
        change_agent(options, name, changes)


@agent.command("list")
@server_options
def list_(options: CommandOptions) -> None:
    """The standing agents of the server, then the agents."""
    api = api_for_reading(options)
    members, agents = read_members(api), api.send(host.list_agents()).agents
    if options.json:
        output.print_json([*members, *agents])
        return
    rows = ([one.name, one.persona, one.role, one.model, "", "", "", one.description]
            for one in agents)  # fmt: skip
    empty = "No agents. Write agents/NAME.md and start the server beside it."
    all_rows = [*member_rows(api, members), *rows]
    columns = ("NAME", "CALLED", "ROLE", "MODEL", "STATE", "NEXT", "WAITING", "ABOUT")
    output.print_table(columns, all_rows, empty=empty)


@agent.command()
@click.argument("name")
@server_options
def remove(options: CommandOptions, name: str) -> None:
    """Let an agent go; what it has said stays. One with a file comes back with the next start."""
    short = name.removeprefix("host:")
    api_for_writing(options).send(host.remove_agent(short))
    output.print_answer(options, {"name": short, "removed": True}, f"{short} is gone.")


def _show_member(options: CommandOptions, api: Api, name: str) -> bool:
    """Show a standing agent, or a dismissed one if no agent has the name. Return False for none."""
    member, work = _find_member_by_name(api, name), None
    if member is not None:
        work = find_work(api, member.roster_id)
    elif not _is_agent(api, name):
        work = find_work(api, name)
    if work is None:
        return False
    if options.json:
        output.print_json({**(to_builtins(member) if member else {}), **to_builtins(work)})
    else:
        print_member(work, member.budget if member else ())
    return True


def _find_member_by_name(api: Api, name: str) -> MemberDetail | None:
    """Find a member by its handle, else by its persona unless an agent has that name."""
    if (member := find_member(api, name)) is not None:
        return member
    return None if _is_agent(api, name) else find_member(api, resolve_member(api, name))


def _is_agent(api: Api, name: str) -> bool:
    agents = api.send(host.list_agents()).agents
    return any(each.name == name.removeprefix("host:") for each in agents)


@agent.command()
@click.argument("name")
@server_options
def show(options: CommandOptions, name: str) -> None:
    """A standing agent with its work, or else an agent with its prompt and its history."""
    api = api_for_reading(options)
    if _show_member(options, api, name):
        return
    agent_record = api.send(host.get_agent(name.removeprefix("host:")))
    if options.json:
        output.print_json(agent_record)
        return
    role = f" · {output.safe_line(agent_record.role)}" if agent_record.role else ""
    click.echo(f"{click.style(output.safe_line(agent_record.persona), bold=True)}{role}")
    newest = agent_record.history[0] if agent_record.history else None
    by = f", by {newest.by}, {newest.at}" if newest else ""
    facts = {"id": agent_record.agent_id, "model": agent_record.model}
    facts |= {"tools": ", ".join(agent_record.tools), "version": agent_record.version + by}
    for label, value in facts.items():
        if value:
            click.echo(f"{label:<10}{output.safe_line(value)}")
    if agent_record.prompt:
        click.echo(f"\n{output.safe_lines(agent_record.prompt)}")
