"""``moot approve``, ``moot reject`` and ``moot answer``: a person's word on what waits for one."""

from typing import Any

import click

from moot.cli.interrupts.questions import (
    FLOOR,
    Question,
    find,
    from_the_floor,
    is_decision,
    is_talk,
    still_open,
    title,
    too_late,
    way_to_answer,
)
from moot.cli.runs.follow import THREAD, thread_of
from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, to_write
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.inputs import read, value_of
from moot.cli.shared.options import Options, talks

_WHAT = click.argument("what", metavar="N|RUN")
_NODE = click.option("--node", help="The node that asks, where several of RUN do.")
_AS = click.option("--as", "name", metavar="NAME", help="In whose name, if the key may.")
_OVERRIDE = click.option(
    "--override", "why", metavar="REASON", help="As an administrator, though others are to decide."
)
_COMMENT = click.option("--comment", metavar="TEXT", help="Why; it stands in the log.")


@click.command()
@_WHAT
@_COMMENT
@_OVERRIDE
@click.option("--edit", metavar="FILE", help="Approve what is in this file instead; - is stdin.")
@_AS
@_NODE
@talks
def approve(
    options: Options,
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
    value: dict[str, Any] = {"action": "accept"}
    if edit is not None:
        value = {"action": "edit-accept", "editedArtifactData": value_of(read(edit))}
    said = "Approved" if edit is None else "Approved with the edit"
    _decide(options, (what, node), _voted(value, comment, name, why), said)


@click.command()
@_WHAT
@_COMMENT
@_OVERRIDE
@click.option("--refine", metavar="TEXT", help="Send it back to be made better like this.")
@_AS
@_NODE
@talks
def reject(
    options: Options,
    what: str,
    comment: str | None,
    why: str | None,
    refine: str | None,
    name: str | None,
    node: str | None,
) -> None:
    """Reject what waits, or send it back with --refine."""
    value: dict[str, Any] = {"action": "reject"}
    if refine is not None:
        feedback = {"scope": "whole", "text": refine}
        value = {"action": "refine", "refineFeedback": feedback}
    said = "Rejected" if refine is None else "Sent back"
    _decide(options, (what, node), _voted(value, comment, name, why), said)


def _voted(
    value: dict[str, Any], comment: str | None, name: str | None, why: str | None
) -> dict[str, Any]:
    given = {"comment": comment, "voter": name, "reason": why}
    found = {**value, **{key: text for key, text in given.items() if text is not None}}
    return found if why is None else {**found, "override": True}


def _decide(
    options: Options, place: tuple[str, str | None], value: dict[str, Any], said: str
) -> None:
    api = to_write(options)
    question = find(api, *place, decision=True)
    if not is_decision(question):
        raise Trouble(
            f"{title(question)} wants words, not a decision: {way_to_answer(question)}", Exit.USAGE
        )
    if from_the_floor(question):
        _steer(options, api, question, value, said)
    else:
        _send(options, api, question, value, said)


def _steer(
    options: Options, api: Api, question: Question, value: dict[str, Any], said: str
) -> None:
    """A member of a conversation waits: the word goes to the conversation."""
    word = FLOOR[question["kind"]].get(value["action"])
    if word is None or set(value) - {"action", "voter"}:
        raise Trouble(f"{title(question)} takes a yes or a no, nothing else.", Exit.USAGE)
    run_id, place = question["runId"], question["askedBy"]
    name = place if place.startswith(f"{run_id}:") else run_id
    body: dict[str, Any] = {"content": {word: question["id"].split(":", 2)[2]}}
    if "voter" in value:
        body["from"] = value["voter"]
    reply = api.post(path_of("v1", "host", "moot", "threads", name, "controls"), body)
    if options.json:
        output.show_json({**reply, "kind": question["kind"], "question": question["question"]})
        return
    click.echo(f"{said} {title(question)}.")


@click.command()
@_WHAT
@click.argument("text", required=False)
@click.option(
    "--answer", "answers", multiple=True, metavar="ID=TEXT",
    help="The answer to one of several questions; repeat it.",
)  # fmt: skip
@_AS
@_NODE
@talks
def answer(
    options: Options,
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
    api = to_write(options)
    question = find(api, what, node)
    if is_decision(question):
        raise Trouble(f"{title(question)} wants a decision: {way_to_answer(question)}", Exit.USAGE)
    if name is not None and not is_talk(question):
        raise click.UsageError("--as is for decisions and conversations.")
    value = _value(question, read("-") if text == "-" else text, answers, name)
    _send(options, api, question, value, "Said in" if is_talk(question) else "Answered")


def _value(question: Question, text: str | None, answers: tuple[str, ...], name: str | None) -> Any:
    if question["kind"] == "clarification":
        return {"answers": _answers(question["data"]["questions"], text, answers)}
    if answers:
        raise click.UsageError("--answer is for several questions; here write TEXT.")
    if text is None:
        raise click.UsageError("write TEXT, the answer.")
    if not is_talk(question):
        return _typed(text, question.get("resumeSchema"))
    return {"operation": "exchange", "turn": {**_speaker(name), "content": text}}


def _speaker(name: str | None) -> dict[str, str]:
    """A bare name is a person's; an agent is called by its whole name, like host:ada."""
    if name is None:
        return {"role": "user"}
    if ":" in name and not name.startswith("user:"):
        return {"role": "agent", "speakerId": name}
    return {"role": "user", "from": name if name.startswith("user") else f"user:{name}"}


def _answers(
    questions: list[dict[str, Any]], text: str | None, answers: tuple[str, ...]
) -> dict[str, Any]:
    """By the id of each question; with one question its id need not be known."""
    schemas = {asked["id"]: asked.get("schema") for asked in questions}
    given = dict(_pair(word) for word in answers)
    if text is not None:
        if len(schemas) > 1:
            ways = " ".join(f"--answer {name}=TEXT" for name in schemas)
            raise click.UsageError(f"there are {len(schemas)} questions; write: {ways}.")
        given = {**dict.fromkeys(schemas, text), **given}
    for name in given:
        if name not in schemas:
            raise click.UsageError(f"no question is called '{name}': {', '.join(schemas)}.")
    if missing := [name for name in schemas if name not in given]:
        ways = " ".join(f"--answer {name}=TEXT" for name in missing)
        raise click.UsageError(f"not answered yet: {', '.join(missing)}. Write: {ways}.")
    return {name: _typed(word, schemas[name] or {"type": "string"}) for name, word in given.items()}


def _pair(word: str) -> tuple[str, str]:
    name, equals, text = word.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--answer {word}: write ID=TEXT.")
    return name, text


def _typed(text: str, schema: dict[str, Any] | None) -> Any:
    """JSON if it is JSON, unless a text is asked for."""
    return text if schema is not None and schema.get("type") == "string" else value_of(text)


def _send(options: Options, api: Api, question: Question, value: Any, said: str) -> None:
    run_id, node_id = question["runId"], question["nodeId"]
    try:
        reply = api.post(
            path_of("v1", "runs", run_id, "interrupts", node_id), {"resumeValue": value}
        )
    except Trouble as trouble:
        last = trouble.details
        if "resolvedBy" not in last:
            raise
        winner = {"nodeId": node_id, "by": last["resolvedBy"], "at": last["resolvedAt"]}
        raise too_late(run_id, {**winner, "action": last.get("action")}) from trouble
    if options.json:
        shown = {key: question[key] for key in ("interruptId", "kind", "question", "askedBy")}
        output.show_json({**reply, **shown, "resumeValue": value})
        return
    thread = thread_of(api, run_id) if question["askedBy"].startswith(f"{THREAD}/") else None
    if thread is not None:
        click.echo(f'{said} "{output.brief(thread["title"])}" ({output.short(run_id)}).')
        return
    mark = output.status_mark(reply["status"])
    click.echo(f"{said} {title(question)}: {output.short(run_id)} {mark}{_votes(api, question)}")


def _votes(api: Api, question: Question) -> str:
    """A quorum goes on waiting after a vote."""
    needed = int(question["data"].get("requiredApprovals", 1))
    now = still_open(api, question) if needed > 1 else None
    if now is None:
        return ""
    accepts = sum(vote != "reject" for vote in now.get("votes", {}).values())
    return f" ({accepts} of {needed} have approved)"
