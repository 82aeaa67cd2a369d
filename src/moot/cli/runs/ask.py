"""``moot ask``: one question to one agent."""

import sys
from collections.abc import Callable
from typing import Any

import click

from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.inputs import read_bytes
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.shared.streams import follow_stream
from moot.client.operations import host, threads
from moot.core.payloads.conversations import ConversationExchanged
from moot.core.payloads.councils import InvitationAnswered, ToolAsked
from moot.core.payloads.runs import RunFailed


@click.command()
@click.argument("agent")
@click.argument("text", default="-")
@server_options
def ask(options: CommandOptions, agent: str, text: str) -> ExitCode:
    """Ask an agent one thing and read the answer as it comes; - reads the question from stdin.

    The question and the answer are kept as a thread: moot thread export @last.
    """
    from moot.cli.councils.stream import PATIENCE

    question = read_bytes("-").decode(errors="replace").strip() if text == "-" else text.strip()
    if not question:
        raise click.UsageError("Say what to ask: moot ask AGENT TEXT.")
    api = api_for_writing(options)
    agent_id = api.send(host.get_agent(agent.removeprefix("host:"))).agent_id
    council = threads.convene_council(question, [agent_id], open=True, policy={"mode": "declared"})
    thread_id = api.send(council).thread_id

    def decide(request: dict[str, Any]) -> None:
        _ask_tool_approval(api, request, thread_id, at_hand=not options.json)

    stream = follow_stream(api, threads.stream_thread(thread_id), -1, PATIENCE)
    turn = _read_answer(stream, decide, aloud=not options.json)
    outcome = turn["content"] if turn["role"] == "agent" else None
    api.send(threads.close_thread(thread_id, outcome=outcome))
    if turn["role"] != "agent":
        raise CommandError(str(turn["content"]))
    if options.json:
        output.print_json({"threadId": thread_id, "agentId": turn["from"],
                          "answer": turn["content"], "meta": turn.get("meta", {})})  # fmt: skip
    return ExitCode.OK


def _read_answer(
    stream: Any, decide: Callable[[dict[str, Any]], None], aloud: bool
) -> dict[str, Any]:
    """Return the turn. On a terminal, print its words as they arrive."""
    printed = ""
    for frame in stream:
        if frame.kind == "speech.delta" and aloud and output.on_terminal():
            words = output.safe_lines(str(frame.data.get("delta", "")))
            printed += words
            sys.stdout.write(words)
            sys.stdout.flush()
        elif frame.kind == "event" and frame.data["type"] == ToolAsked.event_type:
            decide(frame.data["payload"])
        elif frame.kind == "event" and frame.data["type"] == InvitationAnswered.event_type:
            if frame.data["payload"].get("outcome") == "passed":
                return {"role": "system", "content": "the agent has nothing to say to that."}
        elif frame.kind == "event" and frame.data["type"] == ConversationExchanged.event_type:
            turn = dict(frame.data["payload"]["turn"])
            if aloud and turn["role"] == "agent":
                _print_rest(turn, printed)
            return turn
        elif frame.kind == "event" and frame.data["type"] == RunFailed.event_type:
            break
    raise CommandError("the thread ended before there was an answer.")


def _ask_tool_approval(api: Api, request: dict[str, Any], thread_id: str, at_hand: bool) -> None:
    """Ask the person at the terminal to allow a tool. Raise CommandError (exit 4) without one."""
    call = f"{request['toolName']}({output.shorten(request.get('inputs', {}))})"
    request_text = output.one_line(f"{request['agentId']} wants to use {call}")
    if not (at_hand and sys.stdin.isatty() and output.on_terminal(err=True)):
        name = output.short_id(thread_id)
        raise CommandError(
            f"{request_text} and waits for a person. Agree: {command_hint(f'approve {name}')},"
            f" refuse: {command_hint(f'reject {name}')}; then read the answer:"
            f" {command_hint(f'watch {name} --from-start')}",
            ExitCode.WAITING,
        )
    allowed = click.confirm(f"\n{request_text}. Allow it?", default=False, err=True)
    word = "allow" if allowed else "deny"
    api.send(threads.control_thread(thread_id, {word: request["askId"]}))


def _print_rest(turn: dict[str, Any], printed: str) -> None:
    """Print the answer unless its words are on the screen already."""
    text = output.safe_lines(str(turn["content"]))
    if printed.strip() == text.strip():
        click.echo()
    else:
        click.echo(("\n" if printed else "") + text)
