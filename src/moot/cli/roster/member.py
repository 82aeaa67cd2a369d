"""``moot agent hire``, ``pause``, ``run-now`` …: standing agents and their work."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from moot.cli.roster.dismissal import left_lines
from moot.cli.roster.triggers import Waking
from moot.cli.runs.started_by import trigger_words
from moot.cli.schedules.wording import cost_words, until_words
from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, to_read, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.inputs import gather
from moot.cli.shared.options import Options, talks
from moot.cli.shared.quantities import counted
from moot.cli.shared.times import UNTIL, typed
from moot.cli.triggers.item import find_item

ROSTER = "/v1/host/moot/roster"


def handle(name: str) -> str:
    return name if name.startswith("host:") else f"host:{name}"


def place_of(name: str, *more: str) -> str:
    return ROSTER + path_of(handle(name), *more)


def meant(api: Api, given: str) -> str:
    """The handle of whoever is meant: by that, or by the name that only one of them goes by."""
    if given.startswith("host:"):
        return given
    try:
        rows = api.get(ROSTER)["roster"]
    except Trouble:
        return handle(given)  # who may not look, or finds no roster, is told so by what follows
    if any(row["rosterId"] == handle(given) for row in rows):
        return handle(given)
    called = [r["rosterId"] for r in rows if r["persona"].casefold() == given.casefold()]
    if len(called) > 1:
        raise Trouble(f"several are called '{given}': {', '.join(called)}.", Exit.USAGE)
    return str(called[0]) if called else handle(given)


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
@talks
def hire(options: Options, name: str, **given: Any) -> None:
    """Take on a standing agent: one with a name, its own workflows and what wakes it."""
    api = to_write(options)
    flows = [flow.strip() for flow in given["portfolio"].split(",") if flow.strip()]
    waking = Waking(api, flows, given["every"], given["on"], given["take_over"])
    waking.check(handle(name))
    ref = {"agentId": _agent(api, given["file"], given["agent"], name)}
    if given["channel"]:
        ref["channel"] = given["channel"]
    bare = name.removeprefix("host:")
    body = {
        "rosterId": handle(name), "persona": given["persona"] or bare[:1].upper() + bare[1:],
        "agentRef": ref, "workflows": flows,
    }  # fmt: skip
    made = api.post(ROSTER, body | ({"label": given["role"]} if given["role"] else {}))
    try:
        woken = waking.begin(made["rosterId"])
    except Trouble:
        api.delete(place_of(name))
        raise
    if options.json:
        binding = {} if waking.binding is None else {"binding": waking.binding}
        output.show_json({**made, "wakes": woken, **binding})
        return
    said = " · ".join([f"{made['persona']} ({made['rosterId']}) is on staff", *woken])
    click.echo(output.line(said))
    for text in left_lines(made["left"], again=True):
        click.echo(output.line(text))
    if waking.binding is not None:
        click.echo(waking.binding["signingSecret"])
        output.complain("This secret signs what is sent there. Keep it; it is not shown again.")


def _agent(api: Api, file: str | None, agent: str | None, name: str) -> str:
    """Whose instance it is: from a file that is taken in, or by name."""
    if (file is None) == (agent is None):
        raise Trouble("say whose instance it is: --from FILE or --agent NAME.", Exit.USAGE)
    if agent is not None:
        return agent if ":" in agent or "." in agent else f"host:{agent}"
    made = api.post("/v1/host/moot/agents", read_agent(Path(str(file))))
    return str(made["agentId"])


def read_agent(file: Path) -> dict[str, Any]:
    """An agent's file as the server takes it: Markdown with front matter, YAML or JSON."""
    import msgspec

    from moot.agents.definitions.manifest import ManifestProblem, from_markdown

    text = file.read_text(encoding="utf-8")
    if file.suffix in (".yaml", ".yml", ".json"):
        import yaml

        said = yaml.safe_load(text)  # JSON is YAML, too
        if not isinstance(said, dict):
            raise Trouble(f"{file}: this is no agent; write 'key: value' lines.", Exit.USAGE)
        return said if "agentId" in said else {"name": file.stem, **said}
    try:
        found: dict[str, Any] = msgspec.to_builtins(from_markdown(text, file.stem))
    except ManifestProblem as problem:
        raise Trouble(f"{file}:{problem.line}: {problem.message}", Exit.USAGE) from None
    return {key: value for key, value in found.items() if value is not None}


@click.command()
@click.argument("name")
@click.option("--reason", default="", help="Why, for everybody who looks at it.")
@click.option("--until", metavar="TIME", help=UNTIL)
@click.option("--stop", is_flag=True, help="Cancel what it has under way, too.")
@talks
def pause(options: Options, name: str, reason: str, until: str | None, stop: bool) -> None:
    """Start nothing more for a standing agent."""
    body: dict[str, Any] = {"reason": reason, "stop": stop}
    if until is not None:
        body["until"] = typed("--until", until, None)
    api = to_write(options)
    found = api.post(place_of(meant(api, name), "pause"), body)
    if options.json:
        output.show_json(found)
        return
    click.echo(output.line(" ".join(_paused(found))))


def _paused(found: dict[str, Any]) -> Iterator[str]:
    """What a pause has come to, in sentences."""
    end, inert = found["paused"].get("until"), found["inert"]
    yield f"{found['persona']} is paused{f' until {until_words(end)}' if end else ''}."
    if found.get("costs", {}).get("count"):
        yield cost_words(found["costs"]).strip()
    verb = "is" if inert == 1 else "are"
    yield f"{counted(inert, 'trigger')} {verb} inert." if inert else "It has no triggers."
    if running := [output.short(run_id) for run_id in found.get("running", ())]:
        goes_on, it = ("continues", "it") if len(running) == 1 else ("continue", "them")
        yield f"Running: {', '.join(running)} {goes_on} (use --stop to cancel {it})."
    if stopped := [output.short(run_id) for run_id in found.get("stopped", ())]:
        yield f"Cancelled: {', '.join(stopped)}."


@click.command()
@click.argument("name")
@talks
def resume(options: Options, name: str) -> None:
    """On duty again."""
    api = to_write(options)
    found = api.post(place_of(meant(api, name), "resume"))
    if options.json:
        output.show_json(found)
    else:
        status = found["status"].replace("-", " ")
        click.echo(output.line(f"{found['persona']} is {status}."))
    if found["status"] == "disabled":
        name = found["rosterId"].removeprefix("host:")
        output.complain(f"No pause kept it from work. See: {way(f'agent set {name} enabled=yes')}")


@click.command("run-now")
@click.argument("name")
@click.argument("flow")
@click.option("--item", help="Give it this work item, or @last; the item stays where it is.")
@click.option("-i", "--input", "inputs", multiple=True, metavar="K=V", help="An input.")
@click.option("--dry-run", is_flag=True, help="Only say what would be started, and by whom.")
@talks
def run_now(
    options: Options, name: str, flow: str, item: str | None, inputs: tuple[str, ...], dry_run: bool
) -> None:
    """Start one of a standing agent's workflows, as its work."""
    body: dict[str, Any] = {"workflowId": flow, "inputs": gather(inputs), "dryRun": dry_run}
    api = to_write(options)
    if item is not None:
        body["item"] = find_item(api, item)
    found = api.post(place_of(meant(api, name), "run"), body)
    if options.json:
        output.show_json(found)
    elif dry_run:
        would = found["would"]
        by = f"{would['persona']} ({would['rosterId']}), {would['agentId']} {would['version']}"
        click.echo(output.line(f"{would['workflowId']} would be started by {by}. Nothing was."))
    else:
        click.echo(found["runId"])


@click.command()
@click.argument("name")
@click.option("--limit", default=20, type=click.IntRange(1, 500), help="How many [20].")
@talks
def runs(options: Options, name: str, limit: int) -> None:
    """The runs of a standing agent, newest first; also of one that has gone."""
    api = to_read(options)
    rows = api.get("/v1/host/moot/runs", member=meant(api, name), limit=limit, begun="true")["runs"]
    if options.json:
        output.show_json(rows)
        return
    output.table(
        ("RUN", "WORKFLOW", "STATUS", "AGE", "BEGUN BY"),
        ([output.short(r["runId"]), r["workflowId"], r["status"], output.age(r["startedAt"]),
          trigger_words(r.get("begun", {}))] for r in rows),
        empty="No runs yet.",
    )  # fmt: skip


@click.command()
@click.argument("name")
@talks
def dismiss(options: Options, name: str) -> None:
    """Let a standing agent go. What it did stays its own; what woke it wakes nobody."""
    api = to_write(options)
    name = meant(api, name)
    api.delete(place_of(name))
    left = api.get(f"{place_of(name)}/history").get("left", [])
    if options.json:
        output.show_json({"rosterId": handle(name), "dismissed": True, "left": left})
        return
    click.echo(output.line(f"{handle(name)} is let go. Its runs stay its own."))
    for text in left_lines(left, again=False):
        click.echo(output.line(text))


COMMANDS = (hire, pause, resume, run_now, runs, dismiss)
