"""Reading a run of ten thousand events: its snapshot, a page of its log, the end of its log."""

from bench.bare import Sample
from bench.lab import Lab, Server, node, of, register
from bench.streams import NODES
from bench.table import Row, row

EVENTS = 10_000


def measure(lab: Lab) -> list[Row]:
    moot = lab.moot(MOOT_NODES=NODES)
    run_id = long_run(moot)
    run, poll = f"/v1/runs/{run_id}", f"/v1/runs/{run_id}/events/poll?timeout=0&lastSequence="
    asked = [
        ("snapshot of 10,000 events, 16 clients", run, 16, 3000.0),
        ("snapshot of 10,000 events, 64 clients", run, 64, 3000.0),
        ("last 10 of 10,000 events, 16 clients", f"{poll}{EVENTS - 11}", 16, None),
        ("page of 1,000 of 10,000 events, 16 clients", f"{poll}4000", 16, None),
    ]
    answers = {path: moot.body(path) for _, path, _, _ in asked}
    bare = lab.bare(Sample(database="", answers=answers))
    try:
        return [
            _reads(lab, moot, bare, f"{name} ({size(answers[path])})", (path, clients, goal))
            for name, path, clients, goal in asked
        ]
    finally:
        moot.stop()
        bare.stop()


def size(body: bytes) -> str:
    return f"{len(body) / 1000:.1f} kB" if len(body) < 10_000 else f"{len(body) / 1000:.0f} kB"


def _reads(
    lab: Lab, moot: Server, bare: Server, name: str, what: tuple[str, int, float | None]
) -> Row:
    path, clients, goal = what
    asked = {"path": path, "clients": clients, "seconds": lab.seconds}
    ours, theirs = lab.in_turn(
        lambda: moot.drive("reads", **asked), lambda: bare.drive("reads", **asked)
    )
    return row(name, "reads/s", of(ours, "rate"), of(theirs, "rate"), goal=goal)


def long_run(moot: Server) -> str:
    """Started, 9,994 pieces of output, ended: a long log with a small state."""
    register(moot, "bench-long", [node("say", "bench.chatter", chunks=EVENTS - 6)])
    run_id = str(moot.call("POST", "/v1/runs", {"workflowId": "bench-long"})["runId"])
    moot.ended(run_id)
    return run_id
