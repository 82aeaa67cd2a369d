"""``moot ask``: one question to one agent."""

import sys
from collections.abc import Callable, Iterable

import click

from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.events import read_event
from moot.cli.shared.inputs import read_bytes
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.shared.streams import StreamFrame, follow_stream
from moot.client.operations import host, threads
from moot.core.payloads.conversations import ConversationExchanged
from moot.core.payloads.councils import InvitationAnswered, ToolAsked
from moot.core.payloads.runs import RunFailed
from moot.core.sentences.table import text_of
from moot.core.sentences.turns import RecordedTurn, read_turn


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

    def decide(request: ToolAsked) -> None:
        _ask_tool_approval(api, request, thread_id, at_hand=not options.json)

    stream = follow_stream(api, threads.stream_thread(thread_id), -1, PATIENCE)
    turn = _read_answer(stream, decide, aloud=not options.json)
    is_answer = turn.role == "agent"
    api.send(threads.close_thread(thread_id, outcome=turn.content if is_answer else None))
    if not is_answer:
        raise CommandError(str(turn.content))
    if options.json:
        output.print_json({"threadId": thread_id, "agentId": turn.speaker,
                          "answer": turn.content, "meta": turn.meta})  # fmt: skip
    return ExitCode.OK


def _read_answer(
    stream: Iterable[StreamFrame], decide: Callable[[ToolAsked], None], aloud: bool
) -> RecordedTurn:
    """Return the turn. On a terminal, print its words as they arrive."""
    printed = ""
    for frame in stream:
        if frame.kind == "speech.delta" and aloud and output.on_terminal():
            words = output.safe_lines(str(frame.data.get("delta", "")))
            printed += words
            sys.stdout.write(words)
            sys.stdout.flush()
        if frame.kind != "event":
            continue
        match read_event(frame.data).payload:
            case ToolAsked() as request:
                decide(request)
            case InvitationAnswered(outcome="passed"):
                silence = "the agent has nothing to say to that."
                return RecordedTurn(speaker="system", role="system", content=silence)
            case ConversationExchanged(turn=recorded):
                turn = read_turn(recorded)
                text = output.safe_lines(str(turn.content))
                if aloud and turn.role == "agent" and printed.strip() == text.strip():
                    click.echo()  # its words are on the screen already
                elif aloud and turn.role == "agent":
                    click.echo(("\n" if printed else "") + text)
                return turn
            case RunFailed():
                break
            case _:
                pass
    raise CommandError("the thread ended before there was an answer.")


def _ask_tool_approval(api: Api, request: ToolAsked, thread_id: str, at_hand: bool) -> None:
    """Ask the person at the terminal to allow a tool. Raise CommandError (exit 4) without one."""
    request_text = output.one_line(text_of(request) or "")
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
    api.send(threads.control_thread(thread_id, {word: request.ask_id}))
