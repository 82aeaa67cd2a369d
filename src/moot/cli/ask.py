"""``moot ask``: one question to one agent."""

import sys
from typing import Any

import click

from moot.cli import output
from moot.cli.client import Client, to_write
from moot.cli.inputs import read_bytes
from moot.cli.options import Options, place, talks
from moot.cli.trouble import Exit, Trouble


@click.command()
@click.argument("agent")
@click.argument("text", default="-")
@talks
def ask(options: Options, agent: str, text: str) -> Exit:
    """Ask an agent one thing and read the answer as it comes; - reads the question from stdin.

    The question and the answer are kept as a thread: moot thread export @last.
    """
    from moot.cli.council import threads
    from moot.cli.feed import frames

    question = read_bytes("-").decode(errors="replace").strip() if text == "-" else text.strip()
    if not question:
        raise click.UsageError("Say what to ask: moot ask AGENT TEXT.")
    api, client = to_write(options), Client(place(options))
    known = api.get(f"/v1/host/moot/agents/{agent.removeprefix('host:')}")
    body = {"question": question, "participants": [known["agentId"]], "open": True,
            "policy": {"mode": "declared"}}  # fmt: skip
    thread_id = str(api.post("/v1/host/moot/councils", body)["threadId"])
    turn = _answer(frames(client, thread_id, -1, 60.0), thread_id, aloud=not options.json)
    outcome = turn["content"] if turn["role"] == "agent" else None
    api.post(f"{threads(thread_id)}:close", {"outcome": outcome})
    if turn["role"] != "agent":
        raise Trouble(str(turn["content"]))
    if options.json:
        output.show_json({"threadId": thread_id, "agentId": turn["from"],
                          "answer": turn["content"], "meta": turn.get("meta", {})})  # fmt: skip
    return Exit.OK


def _answer(stream: Any, thread_id: str, aloud: bool) -> dict[str, Any]:
    """The turn; on a terminal its words as they come."""
    spoken = ""
    for frame in stream:
        if frame.kind == "speech.delta" and aloud and output.on_terminal():
            words = output.lines(str(frame.data.get("delta", "")))
            spoken += words
            sys.stdout.write(words)
            sys.stdout.flush()
        elif frame.kind == "event" and frame.data["type"] == "moot.tool.asked":
            _needs_a_word(frame.data["payload"], thread_id)
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


def _needs_a_word(asked: dict[str, Any], thread_id: str) -> None:
    """The agent waits until somebody agrees; who asked is told so, and how."""
    what = f"{asked['toolName']}({output.brief(asked.get('inputs', {}))})"
    output.complain(
        f"{asked['agentId']} wants to use {what} and waits for a person. Agree or refuse in"
        f" another terminal: moot watch {thread_id}, then /allow or /deny"
    )


def _rest(turn: dict[str, Any], spoken: str) -> None:
    """The answer, unless its words stand there already."""
    text = output.lines(str(turn["content"]))
    if spoken.strip() == text.strip():
        click.echo()
    else:
        click.echo(("\n" if spoken else "") + text)
