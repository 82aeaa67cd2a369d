"""``moot approve``, ``moot reject`` and ``moot answer``: answer an interrupt."""

from collections.abc import Mapping, Sequence

import click
from msgspec import to_builtins

from moot.cli.interrupts.questions import (
    FLOOR_ACTIONS,
    answer_hint,
    find_question,
    is_conversation,
    is_decision,
    question_title,
    reread_question,
    too_late_error,
)
from moot.cli.runs.follow import THREAD, find_run_thread
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_writing
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.inputs import parse_value, read_text
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations import runs, threads
from moot.wire.interrupts import AnsweredQuestion, InboxItem, Question

_WHAT = click.argument("what", metavar="N|RUN")
_NODE = click.option("--node", help="The node that asks, where several of RUN do.")
_AS = click.option("--as", "name", metavar="NAME", help="In whose name, if the key may.")
_OVERRIDE = click.option(
    "--override", "why", metavar="REASON", help="As an administrator, though others are to decide."
)
_COMMENT = click.option("--comment", metavar="TEXT", help="The reason; the log records it.")


@click.command()
@_WHAT
@_COMMENT
@_OVERRIDE
@click.option("--edit", metavar="FILE", help="Approve what is in this file instead; - is stdin.")
@_AS
@_NODE
@server_options
def approve(
    options: CommandOptions,
    what: str,
    comment: str | None,
    why: str | None,
    edit: str | None,
    name: str | None,
    node: str | None,
) -> None:
    """Approve what waits: a number of `moot inbox`, or a run.

    Runs are named by id, unique prefix or @last.
    """
    action, verb = {"action": "accept"}, "Approved"
    if edit is not None:
        action = {"action": "edit-accept", "editedArtifactData": parse_value(read_text(edit))}
        verb = "Approved with the edit"
    value = runs.vote_value(action, comment, name, why)
    _send_decision(options, (what, node), value, verb, name)


@click.command()
@_WHAT
@_COMMENT
@_OVERRIDE
@click.option("--refine", metavar="TEXT", help="Send it back to be made better like this.")
@_AS
@_NODE
@server_options
def reject(
    options: CommandOptions,
    what: str,
    comment: str | None,
    why: str | None,
    refine: str | None,
    name: str | None,
    node: str | None,
) -> None:
    """Reject what waits, or send it back with --refine."""
    value = runs.rejection_value(refine, comment, name, why)
    verb = "Rejected" if refine is None else "Sent back"
    _send_decision(options, (what, node), value, verb, name)


def _send_decision(
    options: CommandOptions,
    place: tuple[str, str | None],
    value: Mapping[str, object],
    verb: str,
    name: str | None,
) -> None:
    api = api_for_writing(options)
    question = find_question(api, *place, decision=True)
    if not is_decision(question.kind):
        raise CommandError(
            f"{question_title(question)} wants words, not a decision: {answer_hint(question)}",
            ExitCode.USAGE,
        )
    if isinstance(question, InboxItem):
        _send_control(options, api, question, value, name)
        if not options.json:
            click.echo(f"{verb} {question_title(question)}.")
    else:
        _send_answer(options, api, question, value, verb)


def _send_control(
    options: CommandOptions,
    api: Api,
    question: InboxItem,
    value: Mapping[str, object],
    voter: str | None,
) -> None:
    """Send the decision on a member's request as a control of its conversation."""
    word = FLOOR_ACTIONS[question.kind].get(str(value["action"]))
    if word is None or set(value) - {"action", "voter"}:
        raise CommandError(
            f"{question_title(question)} takes a yes or a no, nothing else.", ExitCode.USAGE
        )
    run_id, place = question.run_id, question.asked_by
    name = place if place.startswith(f"{run_id}:") else run_id
    content = {word: question.id.split(":", 2)[2]}
    reply = api.send(threads.control_thread(name, content, sender=voter))
    if options.json:
        fields = {"kind": question.kind, "question": question.question}
        output.print_json({**to_builtins(reply), **fields})


@click.command()
@_WHAT
@click.argument("text", required=False)
@click.option("--answer", "answers", multiple=True, metavar="ID=TEXT",
              help="The answer to one of several questions; repeat it.")  # fmt: skip
@_AS
@_NODE
@server_options
def answer(
    options: CommandOptions,
    what: str,
    text: str | None,
    answers: tuple[str, ...],
    name: str | None,
    node: str | None,
) -> None:
    """Answer a question that waits with TEXT, or say TEXT in a conversation.

    \b
    moot answer 1 "the blue one"
    moot answer 1 --answer colour=blue --answer size=7
    """
    api = api_for_writing(options)
    question = find_question(api, what, node)
    if isinstance(question, InboxItem) or is_decision(question.kind):
        raise CommandError(
            f"{question_title(question)} wants a decision: {answer_hint(question)}", ExitCode.USAGE
        )
    if name is not None and not is_conversation(question):
        raise click.UsageError("--as is for decisions and conversations.")
    value = _answer_value(question, read_text("-") if text == "-" else text, answers, name)
    _send_answer(
        options, api, question, value, "Said in" if is_conversation(question) else "Answered"
    )


def _answer_value(
    question: Question, text: str | None, answers: tuple[str, ...], name: str | None
) -> object:
    if question.kind == "clarification":
        return {"answers": _clarification_answers(question.data["questions"], text, answers)}
    if answers:
        raise click.UsageError("--answer is for several questions; here write TEXT.")
    if text is None:
        raise click.UsageError("write TEXT, the answer.")
    if not is_conversation(question):
        return _parse_answer(text, question.resume_schema)
    return {"operation": "exchange", "turn": {**_turn_speaker(name), "content": text}}


def _turn_speaker(name: str | None) -> dict[str, str]:
    """Return the speaker of a turn.

    A bare name is a person; an agent has a full name (host:ada).
    """
    if name is None:
        return {"role": "user"}
    if ":" in name and not name.startswith("user:"):
        return {"role": "agent", "speakerId": name}
    return {"role": "user", "from": name if name.startswith("user") else f"user:{name}"}


def _clarification_answers(
    questions: Sequence[Mapping[str, object]], text: str | None, answers: tuple[str, ...]
) -> dict[str, object]:
    """Return the answers by question id. With one question, TEXT alone is enough."""
    schemas = {str(question["id"]): question.get("schema") for question in questions}
    texts = dict(_parse_pair(word) for word in answers)
    if text is not None:
        if len(schemas) > 1:
            example = " ".join(f"--answer {name}=TEXT" for name in schemas)
            raise click.UsageError(f"there are {len(schemas)} questions; write: {example}.")
        texts = {**dict.fromkeys(schemas, text), **texts}
    for name in texts:
        if name not in schemas:
            raise click.UsageError(f"no question is called '{name}': {', '.join(schemas)}.")
    if missing := [name for name in schemas if name not in texts]:
        example = " ".join(f"--answer {name}=TEXT" for name in missing)
        raise click.UsageError(f"not answered yet: {', '.join(missing)}. Write: {example}.")
    return {
        name: _parse_answer(word, schemas[name] or {"type": "string"})
        for name, word in texts.items()
    }


def _parse_pair(word: str) -> tuple[str, str]:
    name, equals, text = word.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--answer {word}: write ID=TEXT.")
    return name, text


def _parse_answer(text: str, schema: object) -> object:
    """Return the JSON value of the text, unless the schema asks for a string."""
    is_text = isinstance(schema, dict) and schema.get("type") == "string"
    return text if is_text else parse_value(text)


def _send_answer(
    options: CommandOptions, api: Api, question: Question, value: object, verb: str
) -> None:
    run_id, node_id = question.run_id, question.node_id
    try:
        reply = api.send(runs.resolve_interrupt(run_id, node_id, value))
    except CommandError as error:
        details = error.details
        if "resolvedBy" not in details:
            raise
        by, at = details["resolvedBy"], details["resolvedAt"]
        action = details.get("action")
        answered = AnsweredQuestion(node_id=node_id, by=by, at=at, action=action)
        raise too_late_error(run_id, answered) from error
    if options.json:
        question_fields = {
            "interruptId": question.interrupt_id,
            "kind": question.kind,
            "question": question.question,
            "askedBy": question.asked_by,
        }
        output.print_json({**to_builtins(reply), **question_fields, "resumeValue": value})
        return
    thread = find_run_thread(api, run_id) if question.asked_by.startswith(f"{THREAD}/") else None
    if thread is not None:
        click.echo(f'{verb} "{output.shorten(thread.title)}" ({output.short_id(run_id)}).')
        return
    mark = output.status_mark(reply.status)
    head = f"{verb} {question_title(question)}: {output.short_id(run_id)}"
    click.echo(f"{head} {mark}{_quorum_suffix(api, question)}")


def _quorum_suffix(api: Api, question: Question) -> str:
    """Return the votes so far while a quorum still waits."""
    needed = int(question.data.get("requiredApprovals", 1))
    current = reread_question(api, question) if needed > 1 else None
    if current is None:
        return ""
    accepts = sum(vote != "reject" for vote in current.votes.values())
    return f" ({accepts} of {needed} have approved)"
