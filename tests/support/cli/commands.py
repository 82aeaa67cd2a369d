"""The command line as people meet it: a process, its output, its exit code."""

import json
import os
import pty
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import processes
from tests.support.servers import server_environment

NODES = """
from moot import Failed, node


@node("acme.flaky", retries=3)
def flaky(ctx, until: int = 2):
    if ctx.attempt < until:
        raise RuntimeError("not yet")
    return {"attempt": ctx.attempt}


@node("acme.chatty")
async def chatty(ctx):
    for number in range(1200):
        await ctx.emit_chunk(str(number), number == 1199)
    return {}


@node("acme.effect")
async def effect(ctx):
    async def call(key):
        return {"sent": True}

    return await ctx.effect("acme:mail", call)


@node("acme.remember")
async def remember(ctx, text: str, ref: str):
    entry = await ctx.memory.put(text, tags=["tea"], memory_id="note", ref=ref)
    return {"id": entry.id}
"""

FLOWS = {
    "hello": 'inputs: {name: {type: any, default: world}}\nsteps: [{set: {greeting: "{name}"}}]\n'
    'outputs: {greeting: "{greeting}"}',
    "breaks": 'steps: [{id: stop, fail: {code: out_of_milk, message: "no milk"}}]',
    "slow": "steps: [{id: wait, delay: 60s}]",
    "list": "steps: [{set: {named: like-a-command}}]",
    "flaky": "steps: [{id: try, node: acme.flaky, config: {until: 2}}]",
    "chatty": "steps: [{id: talk, node: acme.chatty}]",
    "mails": "steps: [{id: mail, node: acme.effect}]",
    "parent": "steps: [{id: child, run: hello}]",
    "remembers": "inputs: {text: {type: string, default: Ada likes tea}, ref: {type: string,"
    " default: desk}}\nsteps: [{id: keep, node: acme.remember,"
    " inputs: {text: '{text}', ref: '{ref}'}}]",
    "asks": 'steps: [{id: gate, node: core.approvalGate, config: {title: "Ship it?",'
    " actions: [accept, reject, refine, edit-accept], artifactData: {price: 1}}}]\n",
    "asks-two": "steps: [{id: gate, node: core.approvalGate, config: {title: Both?,"
    " requiredApprovals: 2, timeoutMs: 86400000}}]",
    "wonders": "steps: [{id: question, node: core.clarificationGate, config: {questions:"
    ' [{id: colour, question: "Which colour?"}]}}]',
    "wonders-twice": "steps: [{id: question, node: core.clarificationGate, config: {questions:"
    ' [{id: colour, question: "Which colour?"},'
    ' {id: size, question: "Which size?", schema: {type: integer}}]}}]',
    "picks": "steps: [{id: pick, node: core.interrupt, config: {data: {customKind: a card}}}]",
    "talks": 'steps: [{id: talk, node: core.conversationGate, config: {prompt: "What now?",'
    " agentId: host:ada}}]",
    "asks-below": "steps: [{id: child, run: asks}]",
    "asks-beside": "steps: [{id: both, parallel: {left: [{id: gate, node: core.approvalGate,"
    " config: {title: Left?}}], right: [{id: nap, delay: 700ms}, {id: other,"
    " node: core.approvalGate, config: {title: Right?}}]}}]",
}


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    def lines(self) -> list[str]:
        return self.out.splitlines()


class Cli:
    """``moot`` in a folder of its own, beside the database of a server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, *words: Any, stdin: str = "", folder: Path | None = None, **environment: str
    ) -> Outcome:
        place = folder or self.folder
        done = processes.run(
            *words, folder=place, environment=server_environment(**environment), stdin=stdin
        )
        assert "Traceback" not in done.err or environment.get("MOOT_DEBUG"), done.err
        return Outcome(*done)

    def on_terminal(self, *words: Any, columns: int = 120, **environment: str) -> Outcome:
        """The same with a terminal as its output."""
        master, slave = pty.openpty()
        errors, their_errors = os.pipe()
        process = processes.start(
            *words, folder=self.folder, files=(processes.NOTHING, slave, their_errors),
            environment=server_environment(TERM="xterm", COLUMNS=str(columns), **environment),
        )  # fmt: skip
        os.close(slave)
        os.close(their_errors)
        pieces = []
        with os.fdopen(errors) as said, os.fdopen(master, "rb", buffering=0) as screen:
            while piece := _read(screen.fileno()):
                pieces.append(piece)
            complaints = said.read()
        return Outcome(process.wait(), b"".join(pieces).decode(), complaints)


def begun(moot: Cli, flow: str, question: str = "") -> str:
    """A new run of the workflow that waits for a person; its id."""
    run_id = moot("run", flow, "-d").lines()[0]
    while True:
        waiting = json.loads(moot("api", "GET", f"/v1/host/moot/runs/{run_id}/interrupts").out)
        if any(question in asked["question"] for asked in waiting["open"]):
            return run_id


def _read(screen: int) -> bytes:
    try:
        return os.read(screen, 65536)
    except OSError:  # the other side is closed
        return b""


def write_flows(folder: Path) -> None:
    (folder / "flows").mkdir()
    for name, text in FLOWS.items():
        (folder / "flows" / f"{name}.yaml").write_text(f"workflow: {name}\n{text}\n")
    (folder / "nodes.py").write_text(NODES)


SERVER_ARGUMENTS = ["--workflows", "flows", "--nodes", "nodes.py"]
