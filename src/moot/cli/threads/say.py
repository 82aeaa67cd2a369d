"""``moot say`` and ``moot wait``: take part in a thread from a shell, one word at a time."""

import time

import click

from moot.cli.joining.participant import POLL, Participant
from moot.cli.shared import output
from moot.cli.shared.client import to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.inputs import read_bytes
from moot.cli.shared.options import Options, span, talks
from moot.cli.threads.thread import find_thread

AS = click.option("--as", "name", metavar="NAME", help="Under which name [the key's own].")


@click.command()
@click.argument("thread")
@click.argument("text", default="-")
@AS
@click.option("--to", metavar="NAME", help="For one participant [all].")
@click.option("--reply-to", metavar="EVENT", help="The id of what it replies to.")
@click.option("--task", "kind", flag_value="task", default="message", help="Ask --to to do it.")
@click.option("--result", "kind", flag_value="result", help="It is the result of --reply-to.")
@talks
def say(
    options: Options,
    thread: str,
    text: str,
    name: str | None,
    to: str | None,
    reply_to: str | None,
    kind: str,
) -> None:
    """Say something in a thread; - reads it from stdin. Prints the id of what was said."""
    said = read_bytes("-").decode(errors="replace").strip() if text == "-" else text
    if not said.strip():
        raise click.UsageError("Say something: moot say THREAD TEXT.")
    if kind == "task" and to is None:
        raise click.UsageError("a task is for one participant: --to NAME.")
    if kind == "result" and reply_to is None:
        raise click.UsageError("a result names its task: --reply-to EVENT.")
    api = to_write(options)
    who = Participant(api, find_thread(api, thread), name)
    try:
        event = who.say(said, kind=kind, to=to, reply_to=reply_to)
    except Trouble as trouble:
        if trouble.code != "task_not_open":
            raise
        open_ = way(f"thread show {who.thread_id}")
        raise Trouble(f"{reply_to} is no open task here. See those: {open_}") from None
    if options.json:
        output.show_json(event)
    else:
        click.echo(output.line(event["id"]))
        if "warning" in event:
            output.complain(f"It is said, but {_lowered(event['warning'])}")


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


@click.command()
@click.argument("thread")
@AS
@click.option("--timeout", default="10m", show_default=True, callback=span, metavar="SPAN",
              help="How long: 90s, 10m, 2h.")  # fmt: skip
@click.option("--after", type=click.IntRange(-1), metavar="SEQ",
              help="Only what is asked after that [what is not answered yet].")  # fmt: skip
@talks
def wait(options: Options, thread: str, name: str | None, timeout: int, after: int | None) -> Exit:
    """Wait until somebody is asked, and print what for.

    Exit code 3 when nobody was in time. Whoever answers says so with --reply-to, or is asked
    again the next time.
    """
    from moot.cli.joining.briefing import spoken, transcript

    api = to_write(options)
    who = Participant(api, find_thread(api, thread), name)
    until = time.monotonic() + timeout
    while (left := until - time.monotonic()) > 0:
        due = who.next(after, max(1, min(POLL, int(left))))
        if due is None:
            continue
        context = spoken(who.events())
        if options.json:
            output.show_json({**due, "context": context})
            return Exit.OK
        click.echo(output.lines("\n".join(transcript(who.thread(), context))))
        about = due["event"]["id"] if due["event"] else None
        answer = f" --reply-to {about}" if about else ""
        asked = f"{due['as'].removeprefix('host:')}: {due['reason']} (--after {due['seq']}{answer})"
        click.echo(output.line(asked, err=True), err=True)
        return Exit.OK
    click.echo("Nobody was asked in that time.", err=True)
    return Exit.TIMED_OUT
