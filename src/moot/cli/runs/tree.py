"""``moot tree RUN``: what came out of a run, as a tree: its workers and its forks."""

from collections import deque
from typing import Any

import click

from moot.cli.replay.lineage import descent, place
from moot.cli.runs.find import resolve
from moot.cli.shared import output
from moot.cli.shared.client import Api, to_read
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.logs import page_of
from moot.cli.shared.options import Options, talks

RUNS = "/v1/host/moot/runs"
#: runs that are shown unless more are asked for, and pages of a log that are looked through for
#: the places of its children
SHOWN = 100
PAGES = 20
#: rows of the list that are read at once
PAGE = 100
#: events with which a run has a child -> where they name it
STARTS = {"node.dispatched": "childRunId", "moot.child.forked": "forkRunId"}
#: levels that are shown: what lies deeper is a tree of its own
DEEP = 40


class Node:
    """A run in the tree: ``kind`` is how it hangs on the one above, ``at`` where in its log."""

    def __init__(self, row: dict[str, Any], kind: str = "run", depth: int = 0) -> None:
        self.row, self.kind, self.depth = row, kind, depth
        self.at: int | None = None
        self.below: list[Node] = []
        #: not all that hangs on it is here
        self.cut = False

    @property
    def run_id(self) -> str:
        return str(self.row["runId"])

    @property
    def note(self) -> str:
        return str(self.row.get("forkedFrom", {}).get("note") or "")


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 10_000), default=SHOWN, show_default=True,
    help="Show at most so many runs.",
)  # fmt: skip
@talks
def tree(options: Options, run_id: str, limit: int) -> None:
    """Show the workers and the forks of a run, and theirs.

    Each stands at the event of the run above that it came from: a worker where it was started, a
    fork at the last event that is common to both.
    """
    api = to_read(options)
    top = grown(api, _row(api, resolve(api, run_id)), limit)
    if options.json:
        output.show_json(_as_json(top))
    elif output.on_terminal():
        _draw(top)
    else:
        output.table((), _rows(top, ""))
    if cut := _first_cut(top):
        deep = cut.depth >= DEEP
        more = f"tree {cut.run_id}" if deep else f"tree {top.run_id} --limit {limit * 4}"
        click.echo(f"There are more: {way(more)}", err=True)


def _row(api: Api, run_id: str) -> dict[str, Any]:
    for row in api.get(RUNS, prefix=run_id, limit=1)["runs"]:
        return dict(row)
    raise Trouble(f"there is no run {run_id}. See: {way('run list')}", Exit.NOT_FOUND)


def grown(api: Api, row: dict[str, Any], limit: int) -> Node:
    """Level by level, so that a bound cuts the leaves first; no run stands there twice."""
    top = Node(row)
    seen, waiting = {top.run_id}, deque([top])
    while waiting:
        node = waiting.popleft()
        for kind, key in (("child", "parent"), ("fork", "forkOf")):
            room = limit - len(seen) if node.depth < DEEP else 0
            rows, cut = _hanging(api, key, node, seen, room)
            node.cut = node.cut or cut
            seen.update(found["runId"] for found in rows)
            node.below += [Node(found, kind, node.depth + 1) for found in rows]
        _put_in_place(api, node)
        waiting.extend(node.below)
    return top


def _hanging(
    api: Api, key: str, node: Node, seen: set[str], room: int
) -> tuple[list[dict[str, Any]], bool]:
    """Runs that name this one as theirs, at most so many, and whether some are left out."""
    rows: list[dict[str, Any]] = []
    cursor = None
    while len(rows) <= room:
        page = api.get(RUNS, **{key: node.run_id}, limit=PAGE, cursor=cursor)
        rows += [row for row in page["runs"] if row["runId"] not in seen
                 and _belongs(row, key, node)]  # fmt: skip
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    return rows[: max(0, room)], len(rows) > room


def _belongs(row: dict[str, Any], key: str, node: Node) -> bool:
    """A worker that was forked with its parent hangs on that one, not on the worker it was."""
    return key == "parent" or "parentRunId" not in row or node.depth == 0


def _put_in_place(api: Api, node: Node) -> None:
    places = _dispatches(api, node) if any(one.kind == "child" for one in node.below) else {}
    for one in node.below:
        one.at = place(one.row["forkedFrom"]) if one.kind == "fork" else places.get(one.run_id)
    node.below.sort(key=lambda one: (-1 if one.at is None else one.at, one.row["startedAt"]))


def _dispatches(api: Api, node: Node) -> dict[str, int]:
    """Where children were started, read from the log of the run that started them."""
    missing = {one.run_id for one in node.below if one.kind == "child"}
    found: dict[str, int] = {}
    after = -1
    for _ in range(PAGES):
        page = page_of(api, node.run_id, after)
        for event in page["events"]:
            child = event["payload"].get(STARTS.get(event["type"], ""))
            if child in missing:
                found.setdefault(child, event["sequence"])
        after = page["lastEventSeq"]
        if missing <= found.keys() or not page["events"] or page["isComplete"]:
            break
    return found


def _first_cut(node: Node) -> Node | None:
    return node if node.cut else next(filter(None, map(_first_cut, node.below)), None)


def _as_json(node: Node) -> dict[str, Any]:
    shown: dict[str, Any] = {**node.row, "kind": node.kind}
    if node.at is not None:
        shown["at"] = node.at
    return {**shown, "below": [_as_json(one) for one in node.below], "complete": not node.cut}


def _rows(node: Node, above: str) -> list[list[Any]]:
    own = [node.depth, _how(node), node.at, node.run_id, node.row["workflowId"], node.row["status"],
           above, node.note]  # fmt: skip
    rows = [own]
    for one in node.below:
        rows += _rows(one, node.run_id)
    return rows


def _draw(top: Node) -> None:
    output.fitted(_words(top))
    if fork := top.row.get("forkedFrom"):
        output.fitted(f"│  {descent(fork)}")
    if parent := top.row.get("parentRunId"):
        output.fitted(f"│  child of {output.one_line(parent)}")
    _branches(top, "")


def _branches(node: Node, margin: str) -> None:
    for count, one in enumerate(node.below, 1):
        last = count == len(node.below) and not node.cut
        output.fitted(f"{margin}{'└─' if last else '├─'} {_words(one)}")
        _branches(one, margin + ("   " if last else "│  "))
    if node.cut:
        click.echo(f"{margin}└─ …")


def _words(node: Node) -> str:
    where = f"#{node.at} " if node.at is not None else ""
    name = click.style(output.short(node.run_id), bold=True)
    what = node.row["workflowId"] if node.kind != "fork" else _how(node)
    said = f'  "{output.brief(node.note)}"' if node.note else ""
    return f"{where}{name}  {output.one_line(what)}  {output.status_mark(node.row['status'])}{said}"


def _how(node: Node) -> str:
    """A fork is a branch or a replay."""
    return str(node.row["forkedFrom"]["mode"]) if node.kind == "fork" else node.kind
