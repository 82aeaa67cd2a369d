"""``moot tree RUN``: show the children and the forks of a run as a tree."""

from collections import deque

import click
from msgspec import to_builtins

from moot.cli.runs.find import resolve_run_id
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.events import read_event
from moot.cli.shared.logs import read_page
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations import runs
from moot.core.payloads.nodes import NodeDispatched
from moot.core.payloads.supervisors import ChildForked
from moot.core.sentences.forks import describe_origin, last_common_event
from moot.wire.runs import RunRow

#: runs that are shown by default, and pages of a log that are searched for its children
DEFAULT_LIMIT = 100
MAX_PAGES = 20
#: rows of one page of the list of runs
PAGE_SIZE = 100
#: levels that are shown
MAX_DEPTH = 40


class RunTreeNode:
    """A run in the tree.

    ``kind`` is its relation to the run above, ``at`` the event it came from.
    """

    def __init__(self, row: RunRow, kind: str = "run", depth: int = 0) -> None:
        self.row, self.kind, self.depth = row, kind, depth
        self.at: int | None = None
        self.below: list[RunTreeNode] = []
        #: some runs below are left out
        self.cut = False

    @property
    def run_id(self) -> str:
        return self.row.run_id

    @property
    def note(self) -> str:
        return (self.row.forked_from and self.row.forked_from.note) or ""


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 10_000), default=DEFAULT_LIMIT, show_default=True,
    help="Show at most so many runs.",
)  # fmt: skip
@server_options
def tree(options: CommandOptions, run_id: str, limit: int) -> None:
    """Show the workers and the forks of a run, and theirs.

    Each stands at the event of the run above that it came from: a worker where it was started, a
    fork at the last event that is common to both.
    """
    api = api_for_reading(options)
    run_id = resolve_run_id(api, run_id)
    rows = api.send(runs.list_runs(prefix=run_id, limit=1)).runs
    if not rows:
        message = f"there is no run {run_id}. See: {command_hint('run list')}"
        raise CommandError(message, ExitCode.NOT_FOUND)
    top = build_tree(api, rows[0], limit)
    if options.json:
        output.print_json(_node_json(top))
    elif output.on_terminal():
        _print_tree(top)
    else:
        output.print_table((), _node_rows(top, ""))
    if cut := _first_cut_node(top):
        deep = cut.depth >= MAX_DEPTH
        more = f"tree {cut.run_id}" if deep else f"tree {top.run_id} --limit {limit * 4}"
        click.echo(f"There are more: {command_hint(more)}", err=True)


def build_tree(api: Api, row: RunRow, limit: int) -> RunTreeNode:
    """Build the tree level by level, so that a limit cuts the leaves first.

    No run appears twice.
    """
    top = RunTreeNode(row)
    included, waiting = {top.run_id}, deque([top])
    while waiting:
        node = waiting.popleft()
        for kind in ("child", "fork"):
            room = limit - len(included) if node.depth < MAX_DEPTH else 0
            rows, cut = _related_runs(api, kind, node, included, room)
            node.cut = node.cut or cut
            included.update(child.run_id for child in rows)
            node.below += [RunTreeNode(child, kind, node.depth + 1) for child in rows]
        _sort_children(api, node)
        waiting.extend(node.below)
    return top


def _related_runs(
    api: Api, kind: str, node: RunTreeNode, included: set[str], room: int
) -> tuple[list[RunRow], bool]:
    """Return at most ``room`` children or forks of this run, and whether some are cut."""
    rows: list[RunRow] = []
    parent, source = (node.run_id, None) if kind == "child" else (None, node.run_id)
    cursor = None
    while len(rows) <= room:
        call = runs.list_runs(parent=parent, fork_of=source, limit=PAGE_SIZE, cursor=cursor)
        page = api.send(call)
        # a child that was forked with its parent belongs below that fork, not below its source
        rows += [
            row
            for row in page.runs
            if row.run_id not in included
            and (kind == "child" or row.parent_run_id is None or node.depth == 0)
        ]
        cursor = page.next_cursor
        if cursor is None:
            break
    return rows[: max(0, room)], len(rows) > room


def _sort_children(api: Api, node: RunTreeNode) -> None:
    places = _child_sequences(api, node) if any(one.kind == "child" for one in node.below) else {}
    for one in node.below:
        source = to_builtins(one.row.forked_from)
        one.at = last_common_event(source) if one.kind == "fork" else places.get(one.run_id)
    node.below.sort(key=lambda one: (-1 if one.at is None else one.at, one.row.started_at))


def _child_sequences(api: Api, node: RunTreeNode) -> dict[str, int]:
    """Return the sequence at which each child was started, from the log of its parent."""
    children = {one.run_id for one in node.below if one.kind == "child"}
    sequences: dict[str, int] = {}
    after = -1
    for _ in range(MAX_PAGES):
        page = read_page(api, node.run_id, after)
        for event in map(read_event, page.events):
            match event.payload:
                case NodeDispatched(child_run_id=child) | ChildForked(fork_run_id=child):
                    if child in children:
                        sequences.setdefault(child, event.sequence)
                case _:
                    pass
        after = page.last_event_seq
        if children <= sequences.keys() or not page.events or page.is_complete:
            break
    return sequences


def _first_cut_node(node: RunTreeNode) -> RunTreeNode | None:
    return node if node.cut else next(filter(None, map(_first_cut_node, node.below)), None)


def _node_json(node: RunTreeNode) -> dict[str, object]:
    fields = {**to_builtins(node.row), "kind": node.kind}
    if node.at is not None:
        fields["at"] = node.at
    return {**fields, "below": [_node_json(one) for one in node.below], "complete": not node.cut}


def _node_rows(node: RunTreeNode, above: str) -> list[list[object]]:
    own = [node.depth, _node_kind(node), node.at, node.run_id, node.row.workflow_id,
           node.row.status, above, node.note]  # fmt: skip
    return [own, *(row for one in node.below for row in _node_rows(one, node.run_id))]


def _print_tree(top: RunTreeNode) -> None:
    output.print_fitted(_node_text(top))
    if fork := top.row.forked_from:
        output.print_fitted(f"│  {output.one_line(describe_origin(to_builtins(fork)))}")
    if parent := top.row.parent_run_id:
        output.print_fitted(f"│  child of {output.one_line(parent)}")
    _print_branches(top, "")


def _print_branches(node: RunTreeNode, margin: str) -> None:
    for count, one in enumerate(node.below, 1):
        last = count == len(node.below) and not node.cut
        output.print_fitted(f"{margin}{'└─' if last else '├─'} {_node_text(one)}")
        _print_branches(one, margin + ("   " if last else "│  "))
    if node.cut:
        click.echo(f"{margin}└─ …")


def _node_text(node: RunTreeNode) -> str:
    where = f"#{node.at} " if node.at is not None else ""
    name = click.style(output.short_id(node.run_id), bold=True)
    label = node.row.workflow_id if node.kind != "fork" else _node_kind(node)
    note = f'  "{output.shorten(node.note)}"' if node.note else ""
    return f"{where}{name}  {output.one_line(label)}  {output.status_mark(node.row.status)}{note}"


def _node_kind(node: RunTreeNode) -> str:
    """Return ``branch`` or ``replay`` for a fork."""
    fork = node.row.forked_from
    return str(fork.mode) if fork and node.kind == "fork" else node.kind
