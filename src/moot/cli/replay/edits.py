"""What a fork changes, as it is typed: ``--set K=V``, or a text written anew in an editor."""

import json
import sys
from typing import Any, NamedTuple

import click

from moot.cli.shared import output
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.inputs import value_of
from moot.cli.shared.logs import Event

#: word before the dot -> the part of the edit
PARTS = {"var": "variables", "input": "inputs", "model": "models"}
#: these take the place of the event that is named; all else is changed after it
REPLACING = ("turn", "decision", "answer")

#: events with which somebody's answer begins
ANSWERS = (
    "interrupt.resolved", "moot.approval.granted", "moot.approval.rejected",
    "approval.overridden",
)  # fmt: skip
TURNS = {"conversation.exchanged": "turn", "conversation.closed": "finalTurn"}
EDITABLE = (*ANSWERS, *TURNS, "runOrchestrator.decided", "variable.changed", "run.started")
ACTIONS = {"approve": "accept", "edit": "edit-accept"}

#: how often an editor is opened again on what cannot be read
ATTEMPTS = 3

Edit = dict[str, Any]


class Draft(NamedTuple):
    """What stands in the editor, and where in an edit it belongs."""

    part: str
    value: Any
    #: a name within the part: of a variable
    name: str | None = None

    @property
    def is_text(self) -> bool:
        return self.part == "turn" and isinstance(self.value, str)

    def edit(self, value: Any) -> Edit:
        if self.part == "turn":
            return {"turn": {"content": value}}
        return {self.part: value if self.name is None else {self.name: value}}


def gathered(given: tuple[str, ...], at: Event) -> Edit:
    """All of ``--set``; ``at`` is the event that was named."""
    edit: Edit = {}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--set {word}: write K=V.")
        if name in REPLACING:
            edit[name] = _replacing(name, text, at)
            continue
        part, key = _part(name)
        value = text if part == "models" else value_of(text)
        edit.setdefault(part, {})[key] = value
    return edit


def _part(name: str) -> tuple[str, str]:
    from moot.core.text.nearest import nearest

    word, dot, rest = name.partition(".")
    if not dot:
        return "variables", name
    if word in PARTS and rest:
        return PARTS[word], rest
    meant = nearest(word, PARTS)
    hint = f" Did you mean '{meant}.{rest}'?" if meant and rest else ""
    raise click.UsageError(
        f"--set {name}: before a dot stands var, input or model.{hint}"
        f" A variable with a dot in its name: --set var.{name}=V"
    )


def _replacing(name: str, text: str, at: Event) -> Any:
    if name == "turn":
        return {"content": text}
    if name == "answer":
        return answer_of(text, at)
    value = value_of(text)
    if not isinstance(value, dict):
        raise click.UsageError('--set decision=V: V is an object, like {"kind": "terminate"}.')
    return value


def answer_of(text: str, at: Event) -> Any:
    """JSON as it is; a bare word is a decision, or the answer to the one question there was."""
    value = value_of(text)
    if isinstance(value, dict):
        return value
    if _decides(at):
        return {"action": ACTIONS.get(text, text)}
    was = at["payload"].get("resumeValue")
    asked = list(was.get("answers", {})) if isinstance(was, dict) else []
    if at["payload"].get("kind") == "clarification" and len(asked) != 1:
        shape = json.dumps({"answers": dict.fromkeys(asked, "…")}, ensure_ascii=False)
        raise click.UsageError(f"--set answer={text}: there were several questions; write {shape}.")
    return {"answers": {asked[0]: text}} if asked else value


def _decides(at: Event) -> bool:
    return at["type"] != "interrupt.resolved" or at["payload"].get("kind") in (
        "approval", "low-confidence",
    )  # fmt: skip


def draft(at: Event) -> Draft | None:
    """What of the event can be written anew; None where nobody said anything."""
    said = at["payload"]
    if at["type"] in TURNS:
        turn = said.get(TURNS[at["type"]])
        return Draft("turn", turn.get("content")) if isinstance(turn, dict) else None
    match str(at["type"]):
        case "run.started":
            return Draft("inputs", said.get("inputs", {}))
        case "runOrchestrator.decided":
            return Draft("decision", said.get("decision", {}))
        case "variable.changed" if "next" in said:
            return Draft("variables", said["next"], str(said["name"]))
        case "interrupt.resolved":
            return Draft("answer", said.get("resumeValue"))
        case "moot.approval.rejected":
            return Draft("answer", {"action": "reject"})
        case "moot.approval.granted" | "approval.overridden":
            return Draft("answer", {"action": "accept"})
        case _:
            return None


def written(found: Draft) -> Edit:
    """What somebody makes of it in an editor. Trouble when that is nothing."""
    _refuse_without_editor()
    text = before = _as_text(found)
    for left in range(ATTEMPTS, 0, -1):
        text = _edited(text, ".md" if found.is_text else ".json")
        if text.strip() == before.strip():
            raise Trouble("nothing changed, no fork made.")
        try:
            return found.edit(text.removesuffix("\n") if found.is_text else json.loads(text))
        except ValueError as error:
            if left == 1 or not sys.stdin.isatty():
                raise Trouble(f"that is not JSON: {error}; no fork made.") from None
            output.complain(f"That is not JSON: {error}. Once more.")
    raise AssertionError  # the last attempt has ended


def _as_text(found: Draft) -> str:
    if found.is_text:
        return f"{found.value}\n"
    return json.dumps(found.value, indent=2, ensure_ascii=False) + "\n"


def _edited(text: str, suffix: str) -> str:
    """An editor that is left without saving has changed nothing."""
    return click.edit(text, extension=suffix) or text


def _refuse_without_editor() -> None:
    """Without a choice some editor is opened, which needs a terminal."""
    from moot.config.settings import client_environment

    environ = client_environment()
    named = environ.get("VISUAL") or environ.get("EDITOR")
    if not named and not sys.stdin.isatty():
        raise Trouble("--edit needs a terminal, or a program in EDITOR; or use --set.", Exit.USAGE)
