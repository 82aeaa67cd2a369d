"""Threads: messages by way of the thread API, and how soon everybody who listens has them."""

import json
from functools import partial

from bench.bare import Sample
from bench.lab import KEY, Figures, Lab, Server, cpu_per, events_of, of
from bench.table import Row, row
from bench.turns import WORDS

CLIENTS = 64
THREADS = (1, 200)
STREAMS = (1, 100)
PROGRAMS = ("codex", "claude", "gemini")
PEOPLE = ("user:eve", "user:fay")


def measure(lab: Lab) -> list[Row]:
    moot = lab.moot(MOOT_TRUST_LOCAL="1")
    try:
        return [*_messages(lab, moot), *_deliveries(lab, moot)]
    finally:
        moot.stop()


def open_thread(moot: Server, programs: tuple[str, ...] = PROGRAMS) -> str:
    """The path of a new thread; people may speak in it unasked."""
    thread = moot.call("POST", "/threads", {"name": "bench"})["id"]
    path = f"/threads/{thread}/events"
    for name in programs:
        invite = {"invite": {"participant_id": name}}
        moot.call("POST", path, {"type": "control", "content": invite})
    return path


def messages() -> list[str]:
    """What the members say, one after the other; who is meant is decided and told with it."""
    names = (*PROGRAMS, *PEOPLE)
    return [json.dumps({"type": "message", "from": name, "content": WORDS}) for name in names]


def _sample(moot: Server, path: str, bodies: list[str]) -> Sample:
    """What each message writes, is answered and told with, for the bare server to do the same."""
    thread = path.split("/")[2]
    written, told, answer = [], b"", b""
    for body in bodies:
        before = len(events_of(moot, thread))
        said = moot.call("POST", path, json.loads(body))
        answer = json.dumps(said, separators=(",", ":")).encode()
        told = json.dumps(said["event"], separators=(",", ":")).encode()
        written.append(events_of(moot, thread)[before:])
    return Sample(database="", created=answer, messages=written, told=told)


# -- how many a second ---------------------------------------------------------------------------


def _messages(lab: Lab, moot: Server) -> list[Row]:
    bare = lab.bare(_sample(moot, open_thread(moot), messages()))
    try:
        return [
            *(row for threads in THREADS for row in _into(lab, moot, bare, threads)),
            *_into(lab, moot, bare, 1, key=""),
        ]
    finally:
        bare.stop()


def _into(lab: Lab, moot: Server, bare: Server, threads: int, key: str = KEY) -> list[Row]:
    paths = [open_thread(moot) for _ in range(threads)]
    asked = {"clients": CLIENTS, "seconds": lab.seconds, "paths": paths, "bodies": messages()}
    ours, theirs = lab.in_turn(
        lambda: moot.drive("turns", key=key, **asked), lambda: bare.drive("turns", **asked)
    )
    name = f"messages, {CLIENTS} clients, {threads} thread{'s' if threads > 1 else ''}"
    name += "" if key else ", no key"
    cost, bare_cost = cpu_per(ours, "count"), cpu_per(theirs, "count")
    return [
        row(name, "messages/s", of(ours, "rate"), of(theirs, "rate")),
        row("  server CPU per message", "µs", cost, bare_cost, better="less"),
        row("  p50", "ms", of(ours, "p50"), of(theirs, "p50"), better="less"),
        row("  p99", "ms", of(ours, "p99"), of(theirs, "p99"), better="less"),
    ]


# -- how soon ------------------------------------------------------------------------------------


def _deliveries(lab: Lab, moot: Server) -> list[Row]:
    """One message at a time, of a person among people: each is one event of the thread."""
    path = open_thread(moot, ())
    body = messages()[-1]
    bare = lab.bare(_sample(moot, path, [body]))
    asked = {"path": path, "body": body, "count": 50 if lab.quick else 200}
    drives = [
        partial(server.drive, "deliveries", streams=streams, **asked)
        for streams in STREAMS
        for server in (moot, bare)
    ]
    try:
        one, bare_one, many, bare_many = lab.in_turn(*drives)
    finally:
        bare.stop()
    return [
        *_heard(STREAMS[0], one, bare_one),
        *_heard(STREAMS[1], many, bare_many),
        *(
            row(f"  {name}, against one stream", "ratio", _against(many, one, name),
                _against(bare_many, bare_one, name), better="less")
            for name in ("p50", "p99")
        ),
    ]  # fmt: skip


def _heard(streams: int, ours: list[Figures], theirs: list[Figures]) -> list[Row]:
    name = f"post to receipt, {streams} stream{'s' if streams > 1 else ''} of a thread"
    cost, bare_cost = cpu_per(ours, "heard"), cpu_per(theirs, "heard")
    return [
        row(f"{name}, p50", "ms", of(ours, "p50"), of(theirs, "p50"), better="less"),
        row("  p99", "ms", of(ours, "p99"), of(theirs, "p99"), better="less"),
        row("  post to its answer, p50", "ms", of(ours, "answered"), of(theirs, "answered"),
            better="less"),
        row("  server CPU per delivery", "µs", cost, bare_cost, better="less"),
    ]  # fmt: skip


def _against(many: list[Figures], one: list[Figures], name: str) -> list[float]:
    return [each / other for each, other in zip(of(many, name), of(one, name), strict=True)]
