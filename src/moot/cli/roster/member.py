"""``moot agent hire``, ``pause``, ``run-now`` …: standing agents and their work."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from moot.cli.roster.triggers import HireTriggers, left_trigger_lines
from moot.cli.runs.started_by import describe_trigger
from moot.cli.schedules.wording import describe_pause_cost, describe_until
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.inputs import parse_inputs
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.shared.times import UNTIL_HELP, parse_time_option
from moot.cli.triggers.item import find_item
from moot.client.operations import host, roster
from moot.client.operations.runs import list_runs
from moot.core.text.quantities import format_count
from moot.wire.roster import PausedMember


def roster_handle(name: str) -> str:
    return name if name.startswith("host:") else f"host:{name}"


def resolve_member(api: Api, text: str) -> str:
    """Return the handle of a member, by handle or by a persona that only one member has."""
    if text.startswith("host:"):
        return text
    try:
        rows = api.send(roster.list_members()).roster
    except CommandError:
        return roster_handle(text)  # the next request reports a missing right or roster
    if any(row.roster_id == roster_handle(text) for row in rows):
        return roster_handle(text)
    matches = [r.roster_id for r in rows if r.persona.casefold() == text.casefold()]
    if len(matches) > 1:
        raise CommandError(f"several are called '{text}': {', '.join(matches)}.", ExitCode.USAGE)
    return matches[0] if matches else roster_handle(text)


@click.command()
@click.argument("name")
@click.option("--persona", help="The name it goes by [NAME with a capital].")
@click.option("--role", help="What it is there for, in a few words.")
@click.option("--from", "file", type=click.Path(exists=True, dir_okay=False),
              help="The file of the agent it is an instance of; it is taken in, too.")  # fmt: skip
@click.option("--agent", help="The agent it is an instance of, where that is here already.")
@click.option("--channel", help="Which channel of it serves: stable, canary or latest.")
@click.option("--portfolio", default="", metavar="FLOW,...", help="The workflows that are its own.")
@click.option("--every", metavar="WORDS",
              help="When the first of them is started: 'weekday 08:30 Europe/Berlin'.")  # fmt: skip
@click.option("--on", multiple=True, metavar="queue:NAME|webhook",
              help="What wakes the last of them: a queue, a webhook; repeat it.")  # fmt: skip
@click.option("--take-over", is_flag=True, help="Also a queue of another standing agent.")
@server_options
def hire(options: CommandOptions, name: str, **settings: Any) -> None:
    """Take on a standing agent: one with a name, its own workflows and what wakes it."""
    api = api_for_writing(options)
    flows = [flow.strip() for flow in settings["portfolio"].split(",") if flow.strip()]
    triggers = HireTriggers(api, flows, settings["every"], settings["on"], settings["take_over"])
    triggers.check(roster_handle(name))
    bare = name.removeprefix("host:")
    call = roster.hire_member(
        settings["persona"] or bare[:1].upper() + bare[1:],
        _agent_id(api, settings["file"], settings["agent"], name),
        roster_id=roster_handle(name),
        workflows=flows,
        channel=settings["channel"] or None,
        label=settings["role"] or None,
    )
    member = api.send(call)
    try:
        trigger_texts = triggers.begin(member.roster_id)
    except CommandError:
        api.send(roster.dismiss_member(roster_handle(name)))
        raise
    if options.json:
        binding = {} if triggers.binding is None else {"binding": triggers.binding}
        output.print_json({**to_builtins(member), "wakes": trigger_texts, **binding})
        return
    summary = " · ".join([f"{member.persona} ({member.roster_id}) is on staff", *trigger_texts])
    output.print_lines(summary, *left_trigger_lines(member.left, again=True))
    if triggers.binding is not None:
        click.echo(triggers.binding.signing_secret)
        output.print_error("This secret signs what is sent there. Keep it; it is not shown again.")


def _agent_id(api: Api, file: str | None, agent: str | None, name: str) -> str:
    """Return the agent that the member is an instance of: read from a file, or named."""
    if (file is None) == (agent is None):
        raise CommandError("say whose instance it is: --from FILE or --agent NAME.", ExitCode.USAGE)
    if agent is not None:
        return agent if ":" in agent or "." in agent else f"host:{agent}"
    from moot.cli.project.files import read_agent_file

    return api.send(host.register_agent(read_agent_file(Path(str(file))))).agent_id


@click.command()
@click.argument("name")
@click.option("--reason", default="", help="Why, for everybody who looks at it.")
@click.option("--until", metavar="TIME", help=UNTIL_HELP)
@click.option("--stop", is_flag=True, help="Cancel what it has under way, too.")
@server_options
def pause(options: CommandOptions, name: str, reason: str, until: str | None, stop: bool) -> None:
    """Start nothing more for a standing agent."""
    end = None if until is None else parse_time_option("--until", until, None)
    api = api_for_writing(options)
    call = roster.pause_member(resolve_member(api, name), reason=reason, until=end, stop=stop)
    member = api.send(call)
    output.print_answer(options, member, " ".join(_pause_sentences(member)))


def _pause_sentences(member: PausedMember) -> Iterator[str]:
    """Describe the effects of a pause in sentences."""
    end, inert = member.paused.until if member.paused else None, member.inert
    yield f"{member.persona} is paused{f' until {describe_until(end)}' if end else ''}."
    if member.costs is not None and member.costs.count:
        yield describe_pause_cost(member.costs).strip()
    verb = "is" if inert == 1 else "are"
    yield f"{format_count(inert, 'trigger')} {verb} inert." if inert else "It has no triggers."
    if running := [output.short_id(run_id) for run_id in member.running]:
        verb_running, pronoun = ("continues", "it") if len(running) == 1 else ("continue", "them")
        yield f"Running: {', '.join(running)} {verb_running} (use --stop to cancel {pronoun})."
    if stopped := [output.short_id(run_id) for run_id in member.stopped]:
        yield f"Cancelled: {', '.join(stopped)}."


@click.command()
@click.argument("name")
@server_options
def resume(options: CommandOptions, name: str) -> None:
    """On duty again."""
    api = api_for_writing(options)
    member = api.send(roster.resume_member(resolve_member(api, name)))
    status = member.status.replace("-", " ")
    output.print_answer(options, member, f"{member.persona} is {status}.")
    if member.status == "disabled":
        name = member.roster_id.removeprefix("host:")
        output.print_error(
            f"No pause kept it from work. See: {command_hint(f'agent set {name} enabled=yes')}"
        )


@click.command("run-now")
@click.argument("name")
@click.argument("flow")
@click.option("--item", help="Give it this work item, or @last; the item stays where it is.")
@click.option("-i", "--input", "inputs", multiple=True, metavar="K=V", help="An input.")
@click.option("--dry-run", is_flag=True, help="Only say what would be started, and by whom.")
@server_options
def run_now(
    options: CommandOptions,
    name: str,
    flow: str,
    item: str | None,
    inputs: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Start one of a standing agent's workflows, as its work."""
    values = parse_inputs(inputs)
    api = api_for_writing(options)
    item_id = None if item is None else find_item(api, item)
    call = roster.run_member_workflow(
        resolve_member(api, name), flow, inputs=values, item=item_id, dry_run=dry_run
    )
    answer = api.send(call)
    line = answer.run_id or ""
    if (would := answer.would) is not None:
        by = f"{would['persona']} ({would['rosterId']}), {would['agentId']} {would['version']}"
        line = f"{would['workflowId']} would be started by {by}. Nothing was."
    output.print_answer(options, answer, line)


@click.command()
@click.argument("name")
@click.option("--limit", default=20, type=click.IntRange(1, 500), help="How many [20].")
@server_options
def runs(options: CommandOptions, name: str, limit: int) -> None:
    """The runs of a standing agent, newest first; also of one that has gone."""
    api = api_for_reading(options)
    call = list_runs(member=resolve_member(api, name), limit=limit, begun=True)
    output.print_list(
        options,
        api.send(call).runs,
        ("RUN", "WORKFLOW", "STATUS", "AGE", "BEGUN BY"),
        lambda row: [output.short_id(row.run_id), row.workflow_id, row.status,
                     output.format_age(row.started_at), describe_trigger(row.begun)],
        empty="No runs yet.",
    )  # fmt: skip


@click.command()
@click.argument("name")
@server_options
def dismiss(options: CommandOptions, name: str) -> None:
    """Let a standing agent go. What it did stays its own; what woke it wakes nobody."""
    api = api_for_writing(options)
    name = resolve_member(api, name)
    api.send(roster.dismiss_member(name))
    left_triggers = api.send(roster.list_member_history(name)).left
    output.print_answer(
        options,
        {"rosterId": roster_handle(name), "dismissed": True, "left": left_triggers},
        f"{roster_handle(name)} is let go. Its runs stay its own.",
        *left_trigger_lines(left_triggers, again=False),
    )


COMMANDS = (hire, pause, resume, run_now, runs, dismiss)
