"""Parse the edits of a fork: ``--set K=V``, or a text changed in an editor."""

import json
import sys
from typing import Any, NamedTuple

import click
from msgspec import UNSET
from msgspec.structs import replace

from moot.cli.shared import output
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.inputs import parse_value
from moot.cli.shared.logs import inner_object
from moot.core.events import Event, payload_fields
from moot.core.payloads.conversations import ConversationEnded, ConversationExchanged
from moot.core.payloads.interrupts import (
    ApprovalGranted,
    ApprovalOverridden,
    ApprovalRejected,
    InterruptResolved,
)
from moot.core.payloads.nodes import VariableChanged
from moot.core.payloads.runs import RunStarted
from moot.core.payloads.supervisors import SupervisorDecided
from moot.wire.replay import ForkEdit, TurnEdit

#: word before the dot -> the part of the edit
PARTS = {"var": "variables", "input": "inputs", "model": "models"}
#: parts that replace the named event; all others apply after it
REPLACING = ("turn", "decision", "answer")

#: events with which an answer begins
ANSWERS = (
    InterruptResolved.event_type, ApprovalGranted.event_type, ApprovalRejected.event_type,
    ApprovalOverridden.event_type,
)  # fmt: skip
TURNS = {ConversationExchanged.event_type: "turn", ConversationEnded.event_type: "finalTurn"}
EDITABLE = (
    *ANSWERS,
    *TURNS,
    SupervisorDecided.event_type,
    VariableChanged.event_type,
    RunStarted.event_type,
)
ACTIONS = {"approve": "accept", "edit": "edit-accept"}

#: how often an editor is opened for a text that cannot be parsed
ATTEMPTS = 3


class EditDraft(NamedTuple):
    """The text in the editor, and the part of an edit that it changes."""

    part: str
    value: Any
    #: the name of a variable
    name: str | None = None

    @property
    def is_text(self) -> bool:
        return self.part == "turn" and isinstance(self.value, str)

    def apply(self, edit: ForkEdit, value: Any) -> ForkEdit:
        if self.part == "turn":
            return replace(edit, turn=TurnEdit(content=value))
        return replace(edit, **{self.part: value if self.name is None else {self.name: value}})


def has_part(edit: ForkEdit, part: str) -> bool:
    return getattr(edit, part) not in (UNSET, {})


def replaced_parts(edit: ForkEdit) -> list[str]:
    return [part for part in REPLACING if has_part(edit, part)]


def parse_edits(settings: tuple[str, ...], at: Event) -> ForkEdit:
    """Return the edit of all ``--set`` options; ``at`` is the named event."""
    edit = ForkEdit()
    for word in settings:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--set {word}: write K=V.")
        if name in REPLACING:
            edit = replace(edit, **{name: _replacement(name, text, at)})
            continue
        part, key = _parse_part(name)
        value = text if part == "models" else parse_value(text)
        values = getattr(edit, part) if has_part(edit, part) else {}
        edit = replace(edit, **{part: {**values, key: value}})
    return edit


def _parse_part(name: str) -> tuple[str, str]:
    from moot.core.text.nearest import nearest_word

    word, dot, rest = name.partition(".")
    if not dot:
        return "variables", name
    if word in PARTS and rest:
        return PARTS[word], rest
    suggestion = nearest_word(word, PARTS)
    hint = f" Did you mean '{suggestion}.{rest}'?" if suggestion and rest else ""
    raise click.UsageError(
        f"--set {name}: before a dot stands var, input or model.{hint}"
        f" A variable with a dot in its name: --set var.{name}=V"
    )


def _replacement(name: str, text: str, at: Event) -> object:
    if name == "turn":
        return TurnEdit(content=text)
    if name == "answer":
        return parse_answer(text, at)
    value = parse_value(text)
    if not isinstance(value, dict):
        raise click.UsageError('--set decision=V: V is an object, like {"kind": "terminate"}.')
    return value


def parse_answer(text: str, at: Event) -> object:
    """Return JSON as it is; a bare word is a decision, or the answer to the only question."""
    value = parse_value(text)
    if isinstance(value, dict):
        return value
    if _is_decision(at):
        return {"action": ACTIONS.get(text, text)}
    payload = payload_fields(at)
    question_ids = list(inner_object(inner_object(payload, "resumeValue"), "answers"))
    if payload.get("kind") == "clarification" and len(question_ids) != 1:
        shape = json.dumps({"answers": dict.fromkeys(question_ids, "…")}, ensure_ascii=False)
        raise click.UsageError(f"--set answer={text}: there were several questions; write {shape}.")
    return {"answers": {question_ids[0]: text}} if question_ids else value


def _is_decision(at: Event) -> bool:
    is_answer = at.type == InterruptResolved.event_type
    return not is_answer or payload_fields(at).get("kind") in ("approval", "low-confidence")


def draft_from_event(at: Event) -> EditDraft | None:
    """Return the part of the event that can be edited, or None."""
    payload = payload_fields(at)
    if at.type in TURNS:
        turn = inner_object(payload, TURNS[at.type])
        return EditDraft("turn", turn.get("content")) if turn else None
    match at.type:
        case RunStarted.event_type:
            return EditDraft("inputs", payload.get("inputs", {}))
        case SupervisorDecided.event_type:
            return EditDraft("decision", payload.get("decision", {}))
        case VariableChanged.event_type if "next" in payload:
            return EditDraft("variables", payload["next"], str(payload["name"]))
        case InterruptResolved.event_type:
            return EditDraft("answer", payload.get("resumeValue"))
        case ApprovalRejected.event_type:
            return EditDraft("answer", {"action": "reject"})
        case ApprovalGranted.event_type | ApprovalOverridden.event_type:
            return EditDraft("answer", {"action": "accept"})
        case _:
            return None


def edit_draft(edit: ForkEdit, draft: EditDraft) -> ForkEdit:
    """Add the draft as the user edits it to the edit. Raise CommandError when nothing changed."""
    _refuse_without_editor()
    text = original = _draft_text(draft)
    for attempts_left in range(ATTEMPTS, 0, -1):
        # an editor that is left without saving has changed nothing
        text = click.edit(text, extension=".md" if draft.is_text else ".json") or text
        if text.strip() == original.strip():
            raise CommandError("nothing changed, no fork made.")
        try:
            value = text.removesuffix("\n") if draft.is_text else json.loads(text)
            return draft.apply(edit, value)
        except ValueError as error:
            if attempts_left == 1 or not sys.stdin.isatty():
                raise CommandError(f"that is not JSON: {error}; no fork made.") from None
            output.print_error(f"That is not JSON: {error}. Once more.")
    raise AssertionError  # the last attempt returns or raises


def _draft_text(draft: EditDraft) -> str:
    if draft.is_text:
        return f"{draft.value}\n"
    return json.dumps(draft.value, indent=2, ensure_ascii=False) + "\n"


def _refuse_without_editor() -> None:
    """Raise CommandError without a terminal, unless the user has chosen an editor."""
    from moot.config.settings import client_environment

    environ = client_environment()
    editor = environ.get("VISUAL") or environ.get("EDITOR")
    if not editor and not sys.stdin.isatty():
        raise CommandError(
            "--edit needs a terminal, or a program in EDITOR; or use --set.", ExitCode.USAGE
        )
