"""A standing agent on the screen: who it is, what wakes it, how it went, what it asks, what is
left."""

from collections.abc import Iterator
from typing import Any

import click

from moot.cli.interrupts.questions import is_decision
from moot.cli.roster.member import ROSTER, place_of
from moot.cli.schedules.wording import times_of, until_words, when
from moot.cli.shared import output
from moot.cli.shared.client import Api
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.quantities import counted, in_words

#: a day without a run, and with more and more of them
BARS = "▁▂▃▄▅▆▇█"


def find_member(api: Api, name: str) -> dict[str, Any] | None:
    """The member of this name, unless there is none."""
    try:
        found: dict[str, Any] = api.get(place_of(name))
    except Trouble as trouble:
        if trouble.exit_code is Exit.NOT_FOUND or "no roster" in str(trouble):
            return None
        raise
    return found


def find_work(api: Api, name: str) -> dict[str, Any] | None:
    """A member and its work, also of one that was let go; None for who never was one."""
    try:
        work: dict[str, Any] = api.get(place_of(name, "work"))
    except Trouble as trouble:
        if trouble.exit_code is Exit.NOT_FOUND or "no roster" in str(trouble):
            return None
        raise
    return work


def all_members(api: Api) -> list[dict[str, Any]]:
    """None on a host that keeps no roster."""
    try:
        found: list[dict[str, Any]] = api.get(ROSTER)["roster"]
    except Trouble as trouble:
        if "no roster" in str(trouble):
            return []
        raise
    return found


def show_member(found: dict[str, Any]) -> None:
    named = click.style(output.line(found["persona"]), bold=True)
    role = [output.line(found["label"])] if found.get("label") else []
    owner = [f"owner {_who(found, found['hiredBy'])}"] if "hiredBy" in found else []
    model = [f"model {found['model']}"] if "model" in found else []
    about = "".join(f"        {output.line(fact)}" for fact in (*owner, *model))
    click.echo(" · ".join([named, *role, output.line(_status(found))]) + about)
    ref = found["agentRef"]
    version = ref.get("version") or ref.get("channel") or "as it is"
    instance = output.line(f"{found['rosterId']}, an instance of {ref['agentId']} ({version})")
    click.echo(f"  {instance}")
    rows = [row for each in found["portfolio"] for row in _rows(each)]
    if rows:
        output.table(("PORTFOLIO", "TRIGGER", "NEXT", "LAST", "14 D"), rows)
    shown = sum(len(each["triggers"]) for each in found["portfolio"])
    if found["triggers"] > shown:
        click.echo(f"  and {counted(found['triggers'] - shown, 'trigger')} more")
    for bound in found.get("budget", []):
        said = f"{bound['limit']}: {bound['used']:g} of {bound['most']:g}"
        said += f" ({bound['unpriced']} has no price)" if "unpriced" in bound else ""
        click.echo(f"  {said}" + ("" if bound["state"] == "ok" else f", {bound['state']}"))
    for line in _waiting(found):
        click.echo(line)


def _status(found: dict[str, Any]) -> str:
    """``● on duty (since 3 days)``, ``⏸ paused by you, quarter close, until Mon 08:00``"""
    status = found["status"]
    if status == "on-duty":
        return f"● on duty (since {_age(found['since'])})"
    if status == "paused":
        pause = found["paused"]
        words = [f"paused by {_who(found, pause['by'])}", pause.get("reason", "")]
        if "until" in pause:
            words.append(f"until {until_words(pause['until'])}")
        return f"⏸ {', '.join(word for word in words if word)}"
    by = f" by {_who(found, found['dismissed']['by'])}" if status == "dismissed" else ""
    return f"○ {status}{by} ({_age(found['since'])} ago)"


def _age(since: str) -> str:
    """``3 days``, ``2 hours``, ``12 seconds``: one unit, counted down."""
    passed = max(0, round(output.seconds_since(since)))
    size = next((size for size in (86_400, 3600, 60) if passed >= size), 1)
    return in_words(passed // size * size)


def _who(found: dict[str, Any], name: str) -> str:
    return "you" if name == found["you"] else name


def _rows(flow: dict[str, Any]) -> Iterator[list[str]]:
    """A workflow, a line for each of what wakes it."""
    lately = _strip(flow)
    for number, trigger in enumerate(flow["triggers"] or [None]):
        woken = [_trigger(trigger), _next(trigger)] if trigger else ["", ""]
        if number:
            yield ["", *woken, "", ""]
        else:
            yield [flow["workflowId"], *woken, _last(flow.get("last")), lately]


def _trigger(trigger: dict[str, Any]) -> str:
    if trigger["source"] == "schedule":
        return times_of(trigger) if "kind" in trigger else str(trigger["scheduleId"])
    if trigger["source"] == "queue":
        return f"queue:{trigger['queue']}"
    return f"{trigger['source']}:{output.short(trigger['subscriptionId'])}"


def _next(trigger: dict[str, Any]) -> str:
    """When it starts something, or why it does not."""
    if trigger.get("nextFireAt") is not None:
        return when(trigger["nextFireAt"], trigger["timezone"])
    if "inert" in trigger:
        return "inert"
    if trigger["state"] != "active":
        return str(trigger["state"])
    return "on arrival" if trigger["source"] != "schedule" else ""


def _last(run: dict[str, Any] | None) -> str:
    """``✓ 41 s``, ``⏸ waiting``"""
    if run is None:
        return "never"
    status = run["status"]
    mark = output.MARKS.get(status, ("·", ""))[0]
    if "endedAt" in run:
        return f"{mark} {output.span(output.between(run['startedAt'], run['endedAt']))}"
    return f"{mark} {'waiting' if status.startswith('waiting') else status}"


def _strip(flow: dict[str, Any]) -> str:
    """A bar for each day; where something failed, how much of it."""
    if flow["failed"] or not flow["runs"]:
        failed = f", {flow['failed']} failed" if flow["failed"] else ""
        return f"{counted(flow['runs'], 'run')}{failed}"
    most = max(flow["days"])
    steps = len(BARS) - 1
    return "".join(BARS[day if most <= steps else -(-day * steps // most)] for day in flow["days"])


def _waiting(found: dict[str, Any]) -> Iterator[str]:
    """What it asks, each with the command that answers."""
    for item in found["waiting"]:
        about = f'{output.one_line(item["askedBy"])} "{output.brief(item["question"], 80)}"'
        verb = f"approve {item['number']}" if is_decision(item) else f"answer {item['number']} TEXT"
        yield f"WAITING ON YOU  {output.short(item['runId'])} {about}  {way(verb)}"
