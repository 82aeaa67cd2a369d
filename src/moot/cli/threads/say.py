"""``moot say`` and ``moot wait``: speak in a thread, or wait to be asked."""

import time

import click
from msgspec import to_builtins

from moot.cli.joining.participant import POLL, Participant
from moot.cli.shared import output
from moot.cli.shared.client import api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.inputs import read_bytes
from moot.cli.shared.options import CommandOptions, parse_span_option, server_options
from moot.cli.threads.thread import find_thread
from moot.wire.agent_bridge import PostedType

AS = click.option("--as", "name", metavar="NAME", help="Under which name [the key's own].")


@click.command()
@click.argument("thread")
@click.argument("text", default="-")
@AS
@click.option("--to", metavar="NAME", help="For one participant [all].")
@click.option("--reply-to", metavar="EVENT", help="The id of what it replies to.")
@click.option("--task", "kind", flag_value="task", default="message", help="Ask --to to do it.")
@click.option("--result", "kind", flag_value="result", help="It is the result of --reply-to.")
@server_options
def say(
    options: CommandOptions,
    thread: str,
    text: str,
    name: str | None,
    to: str | None,
    reply_to: str | None,
    kind: PostedType,
) -> None:
    """Say something in a thread; - reads it from stdin. Prints the id of what was said."""
    content = read_bytes("-").decode(errors="replace").strip() if text == "-" else text
    if not content.strip():
        raise click.UsageError("Say something: moot say THREAD TEXT.")
    if kind == "task" and to is None:
        raise click.UsageError("a task is for one participant: --to NAME.")
    if kind == "result" and reply_to is None:
        raise click.UsageError("a result names its task: --reply-to EVENT.")
    api = api_for_writing(options)
    participant = Participant(api, find_thread(api, thread), name)
    try:
        turn = participant.say(content, kind=kind, to=to, reply_to=reply_to)
    except CommandError as error:
        if error.code != "task_not_open":
            raise
        hint = command_hint(f"thread show {participant.thread_id}")
        raise CommandError(f"{reply_to} is no open task here. See those: {hint}") from None
    output.print_answer(options, turn.as_json(), turn.event.id)
    if turn.warning is not None and not options.json:
        output.print_error(f"It is said, but {turn.warning[:1].lower()}{turn.warning[1:]}")


@click.command()
@click.argument("thread")
@AS
@click.option("--timeout", default="10m", show_default=True, callback=parse_span_option,
              metavar="SPAN", help="How long: 90s, 10m, 2h.")  # fmt: skip
@click.option("--after", type=click.IntRange(-1), metavar="SEQ",
              help="Only what is asked after that [what is not answered yet].")  # fmt: skip
@server_options
def wait(
    options: CommandOptions, thread: str, name: str | None, timeout: int, after: int | None
) -> ExitCode:
    """Wait until somebody is asked, and print what for.

    Exit code 3 when nobody was in time. Whoever answers says so with --reply-to, or is asked
    again the next time.
    """
    from moot.cli.joining.briefing import newest_turns, render_transcript

    api = api_for_writing(options)
    participant = Participant(api, find_thread(api, thread), name)
    until = time.monotonic() + timeout
    while (seconds_left := until - time.monotonic()) > 0:
        due = participant.next(after, max(1, min(POLL, int(seconds_left))))
        if due is None:
            continue
        context = newest_turns(participant.events())
        if options.json:
            output.print_json({**to_builtins(due), "context": context})
            return ExitCode.OK
        click.echo(output.safe_lines("\n".join(render_transcript(participant.thread(), context))))
        reply_id = due.event.id if due.event else None
        answer = f" --reply-to {reply_id}" if reply_id else ""
        speaker = due.speaks_as.removeprefix("host:")
        question = f"{speaker}: {due.reason} (--after {due.seq}{answer})"
        click.echo(output.safe_line(question, err=True), err=True)
        return ExitCode.OK
    click.echo("Nobody was asked in that time.", err=True)
    return ExitCode.TIMED_OUT
