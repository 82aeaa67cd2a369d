"""Durable turns: POST until the turn is on disk and answered, into one conversation and many."""

import json

from bench.bare import Sample
from bench.lab import Figures, Lab, Server, cpu_per, events_of, node, of, register
from bench.table import Row, row

CLIENTS = (64, 16, 1)
GOALS = {64: 2500.0}
ENOUGH_OF_BARE = 0.5
SOON_MS = 60.0
FLAT = 1.3
LONG = 100_000
#: the driver writes a number in its place, another one each time
NUMBER = "#" * 20
AGENTS = ("host:ada", "host:bo", "host:cy")
PEOPLE = ("user:eve", "user:fay")
WORDS = "I have read it twice and would rather keep the first version, for the reasons given above."


def measure(lab: Lab) -> list[Row]:
    moot = lab.moot()
    register_conversation(moot)
    bare = lab.bare(_sample(moot))
    try:
        return [
            *(row for clients in CLIENTS for row in _at(lab, moot, bare, clients)),
            *_side_by_side(lab, moot, bare, "turns with messageId, 64 clients", 1, NUMBER),
            *_side_by_side(lab, moot, bare, "turns, 64 clients, 64 conversations", 64),
            *_growth(lab, moot),
        ]
    finally:
        moot.stop()
        bare.stop()


def register_conversation(moot: Server) -> None:
    members = [{"agentId": name} for name in AGENTS]
    register(moot, "bench-talk", [node("floor", "core.conversationGate", participants=members)])


def open_conversation(moot: Server) -> str:
    """The path of a new conversation."""
    run_id = moot.call("POST", "/v1/runs", {"workflowId": "bench-talk"})["runId"]
    return f"/v1/runs/{run_id}/interrupts/floor"


def bodies(message_id: str = "") -> list[str]:
    """The bodies of turns of all members, in turn."""
    turns = [{"role": "agent", "speakerId": name, "content": WORDS} for name in AGENTS]
    turns += [{"role": "user", "from": name, "content": WORDS} for name in PEOPLE]
    named = {"messageId": message_id} if message_id else {}
    return [json.dumps({"resumeValue": {**turn, **named}}) for turn in turns]


def _sample(moot: Server) -> Sample:
    """What a turn writes and answers, for the bare server to do the same."""
    path = open_conversation(moot)
    answer = moot.call("POST", path, json.loads(bodies()[0]))
    events = events_of(moot, str(answer["runId"]))[-1:]
    created = json.dumps(answer, separators=(",", ":")).encode()
    return Sample(database="", run_events=events, created=created)


def drive(lab: Lab, server: Server, clients: int, paths: list[str], name: str = "") -> Figures:
    asked = {"clients": clients, "seconds": lab.seconds, "paths": paths, "bodies": bodies(name)}
    return server.drive("turns", **asked)


def _at(lab: Lab, moot: Server, bare: Server, clients: int) -> list[Row]:
    paths = [open_conversation(moot)]
    ours, theirs = lab.in_turn(
        lambda: drive(lab, moot, clients, paths), lambda: drive(lab, bare, clients, paths)
    )
    name = f"turns, {clients} client{'s' if clients > 1 else ''}"
    rates = row(name, "turns/s", of(ours, "rate"), of(theirs, "rate"), goal=GOALS.get(clients))
    found = [rates]
    soon = None
    if clients == max(CLIENTS):
        found.append(row("  share of bare", "ratio", [rates.ratio or 0.0], goal=ENOUGH_OF_BARE))
        soon = SOON_MS
    cost, bare_cost = cpu_per(ours, "count"), cpu_per(theirs, "count")
    return [
        *found,
        row("  server CPU per turn", "µs", cost, bare_cost, better="less"),
        row("  p50", "ms", of(ours, "p50"), of(theirs, "p50"), better="less"),
        row("  p99", "ms", of(ours, "p99"), of(theirs, "p99"), better="less", goal=soon),
    ]


def _side_by_side(
    lab: Lab, moot: Server, bare: Server, title: str, conversations: int, name: str = ""
) -> list[Row]:
    paths = [open_conversation(moot) for _ in range(conversations)]
    ours, theirs = lab.in_turn(
        lambda: drive(lab, moot, 64, paths, name), lambda: drive(lab, bare, 64, paths, name)
    )
    cost, bare_cost = cpu_per(ours, "count"), cpu_per(theirs, "count")
    return [
        row(title, "turns/s", of(ours, "rate"), of(theirs, "rate")),
        row("  server CPU per turn", "µs", cost, bare_cost, better="less"),
        row("  p99", "ms", of(ours, "p99"), of(theirs, "p99"), better="less"),
    ]


def _growth(lab: Lab, moot: Server) -> list[Row]:
    """Turns into a long conversation, and into one that is begun anew each round."""
    length = LONG // 10 if lab.quick else LONG
    path = open_conversation(moot)
    moot.drive("turns", clients=64, seconds=600, paths=[path], bodies=bodies(), most=length)
    long, empty = lab.in_turn(
        lambda: drive(lab, moot, 16, [path]),
        lambda: drive(lab, moot, 16, [open_conversation(moot)]),
    )
    late, early = cpu_per(long, "count"), cpu_per(empty, "count")
    growth = [each / other for each, other in zip(late, early, strict=True)]
    return [
        row(f"server CPU per turn after {length:,} turns", "µs", late, better="less"),
        row("  in an empty conversation", "µs", early, better="less"),
        row("  one against the other", "ratio", growth, better="less", goal=FLAT),
    ]
