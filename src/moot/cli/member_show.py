"""A standing agent on the screen: who it is, what it does, what it waits for, what is left."""

from typing import Any

import click

from moot.cli import output
from moot.cli.client import Api
from moot.cli.member import ROSTER, place_of
from moot.cli.trouble import Exit, Trouble

#: runs that are looked through for the newest of each workflow
LOOKED_AT = 200


def find_member(api: Api, name: str) -> dict[str, Any] | None:
    """The member of this name, unless there is none."""
    try:
        found: dict[str, Any] = api.get(place_of(name))
    except Trouble as trouble:
        if trouble.exit_code is Exit.NOT_FOUND or "no roster" in str(trouble):
            return None
        raise
    return found


def all_members(api: Api) -> list[dict[str, Any]]:
    """None on a host that keeps no roster."""
    try:
        found: list[dict[str, Any]] = api.get(ROSTER)["roster"]
    except Trouble as trouble:
        if "no roster" in str(trouble):
            return []
        raise
    return found


def row_of(member: dict[str, Any]) -> list[str]:
    many = len(member.get("workflows", []))
    about = f"{member['status']} · {many} workflow{'' if many == 1 else 's'}"
    return [member["rosterId"], member["persona"], member.get("label", ""),
            member["agentRef"]["agentId"], about]  # fmt: skip


def show_member(api: Api, found: dict[str, Any]) -> None:
    role = f" · {found['label']}" if found.get("label") else ""
    mark = "●" if found["status"] == "on-duty" else "⏸"
    since = f"since {output.age(found['hiredAt'])}"
    named = click.style(output.line(found["persona"]), bold=True)
    click.echo(f"{named}{output.line(role)} · {mark} {found['status']} ({since})")
    if "paused" in found:
        click.echo(output.line(f"  {_pause(found['paused'])}"))
    ref = found["agentRef"]
    version = ref.get("version") or ref.get("channel") or "as it is"
    click.echo(output.line(f"  {found['rosterId']}, an instance of {ref['agentId']} ({version})"))
    _show_portfolio(api, found)
    for bound in found.get("budget", []):
        said = f"{bound['limit']}: {bound['used']:g} of {bound['most']:g}"
        click.echo(f"  {said}" + ("" if bound["state"] == "ok" else f", {bound['state']}"))
    _show_waiting(api, found)


def _pause(paused: dict[str, Any]) -> str:
    words = [f"paused by {paused['by']}", paused.get("reason", "")]
    if "until" in paused:
        words.append(f"until {paused['until'][:16]}Z")
    return ", ".join(word for word in words if word)


def _show_portfolio(api: Api, found: dict[str, Any]) -> None:
    """Each workflow, the newest run of it, and how many there were lately."""
    runs = api.get("/v1/host/moot/runs", member=found["rosterId"], limit=LOOKED_AT)["runs"]
    rows = []
    for flow in found.get("workflows", []):
        mine = [run for run in runs if run["workflowId"] == flow and "parentRunId" not in run]
        failed = sum(run["status"] == "failed" for run in mine)
        many = f"{len(mine)} run{'' if len(mine) == 1 else 's'}"
        last = f"{mine[0]['status']} {output.age(mine[0]['startedAt'])} ago" if mine else "never"
        rows.append([flow, last, many + (f", {failed} failed" if failed else "")])
    if rows:
        output.table(("PORTFOLIO", "LAST", "RUNS"), rows)


def _show_waiting(api: Api, found: dict[str, Any]) -> None:
    runs = api.get("/v1/host/moot/runs", member=found["rosterId"], status="waiting")["runs"]
    mine = {run["runId"] for run in runs}
    if not mine:
        return
    for number, item in enumerate(api.get("/v1/host/moot/inbox")["items"], start=1):
        if item["runId"] in mine:
            asked = output.line(str(item.get("question", "")))
            click.echo(f"WAITING ON YOU  {output.short(item['runId'])}  {asked}  ({number})")
