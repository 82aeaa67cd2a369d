"""``moot ask``: one question to one agent."""

import sys
from collections.abc import Callable
from typing import Any

import click

from moot.cli.shared import output
from moot.cli.shared.client import Api, Client, path_of, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.inputs import read_bytes
from moot.cli.shared.options import Options, place, talks


@click.command()
@click.argument("agent")
@click.argument("text", default="-")
@talks
def ask(options: Options, agent: str, text: str) -> Exit:
    """Ask an agent one thing and read the answer as it comes; - reads the question from stdin.

    The question and the answer are kept as a thread: moot thread export @last.
    """
    from moot.cli.councils.session import threads
    from moot.cli.councils.stream import frames

    question = read_bytes("-").decode(errors="replace").strip() if text == "-" else text.strip()
    if not question:
        raise click.UsageError("Say what to ask: moot ask AGENT TEXT.")
    api, client = to_write(options), Client(place(options))
    known = api.get(f"/v1/host/moot/agents{path_of(agent.removeprefix('host:'))}")
    body = {"question": question, "participants": [known["agentId"]], "open": True,
            "policy": {"mode": "declared"}}  # fmt: skip
    thread_id = str(api.post("/v1/host/moot/councils", body)["threadId"])

    def decide(wanted: dict[str, Any]) -> None:
        _needs_a_word(api, wanted, thread_id, at_hand=not options.json)

    turn = _answer(frames(client, thread_id, -1, 60.0), decide, aloud=not options.json)
    outcome = turn["content"] if turn["role"] == "agent" else None
    api.post(f"{threads(thread_id)}:close", {"outcome": outcome})
    if turn["role"] != "agent":
        raise Trouble(str(turn["content"]))
    if options.json:
        output.show_json({"threadId": thread_id, "agentId": turn["from"],
                          "answer": turn["content"], "meta": turn.get("meta", {})})  # fmt: skip
    return Exit.OK


def _answer(stream: Any, decide: Callable[[dict[str, Any]], None], aloud: bool) -> dict[str, Any]:
    """The turn; on a terminal its words as they come."""
    spoken = ""
    for frame in stream:
        if frame.kind == "speech.delta" and aloud and output.on_terminal():
            words = output.lines(str(frame.data.get("delta", "")))
            spoken += words
            sys.stdout.write(words)
            sys.stdout.flush()
        elif frame.kind == "event" and frame.data["type"] == "moot.tool.asked":
            decide(frame.data["payload"])
        elif frame.kind == "event" and frame.data["type"] == "moot.participation.answered":
            if frame.data["payload"].get("outcome") == "passed":
                return {"role": "system", "content": "the agent has nothing to say to that."}
        elif frame.kind == "event" and frame.data["type"] == "conversation.exchanged":
            turn = dict(frame.data["payload"]["turn"])
            if aloud and turn["role"] == "agent":
                _rest(turn, spoken)
            return turn
        elif frame.kind == "event" and frame.data["type"] == "run.failed":
            break
    raise Trouble("the thread ended before there was an answer.")


def _needs_a_word(api: Api, asked: dict[str, Any], thread_id: str, at_hand: bool) -> None:
    """The agent waits until somebody agrees: whoever sits here, or exit code 4 says so."""
    from moot.cli.councils.session import threads

    what = f"{asked['toolName']}({output.brief(asked.get('inputs', {}))})"
    wants = output.one_line(f"{asked['agentId']} wants to use {what}")
    if not (at_hand and sys.stdin.isatty() and output.on_terminal(err=True)):
        name = output.short(thread_id)
        raise Trouble(
            f"{wants} and waits for a person. Agree: {way(f'approve {name}')}, refuse:"
            f" {way(f'reject {name}')}; then read the answer: {way(f'watch {name} --from-start')}",
            Exit.WAITING,
        )
    agreed = click.confirm(f"\n{wants}. Allow it?", default=False, err=True)
    word = "allow" if agreed else "deny"
    api.post(threads(thread_id, "controls"), {"content": {word: asked["askId"]}})


def _rest(turn: dict[str, Any], spoken: str) -> None:
    """The answer, unless its words stand there already."""
    text = output.lines(str(turn["content"]))
    if spoken.strip() == text.strip():
        click.echo()
    else:
        click.echo(("\n" if spoken else "") + text)
