"""Minutes as Markdown, as a page of HTML and as JSON, each in pieces: a head, a piece for each line
of the transcript, an end. What somebody said stays text in all of them."""

import re
from html import escape as escaped
from typing import Any

import msgspec

from moot.api.threads.minutes import PROFILE, Line, Minutes, names, text_of
from moot.core.conversations.decisions import Decision
from moot.core.threads.agent_bridge import handle

#: id of who takes part -> how people call him
Known = dict[str, str]

#: what would end a line, or move a terminal
CONTROL = re.compile(r"[\x00-\x08\n-\x1f\x7f-\x9f]")
#: what begins markup anywhere, and what does only at the beginning of a line
MARKUP = re.compile(r"[\\`*_\[\]<>|~&]")
LEADING = re.compile(r"^(\s*)([#+=-])")
NUMBERED = re.compile(r"^(\s*\d+)([.)])")

#: what a page cannot say, not even escaped
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")


def escape(text: str) -> str:
    return escaped(UNPRINTABLE.sub("", text))


# -- Markdown ----------------------------------------------------------------------------------


class Markdown:
    """Piece by piece: what ends a piece and cannot be seen is kept until something follows."""

    media, end = "text/markdown; charset=utf-8", "\n"

    def __init__(self, minutes: Minutes) -> None:
        self._minutes, self._known, self._held = minutes, names(minutes), ""

    def head(self) -> str:
        minutes, known = self._minutes, self._known
        lines = [f"# {_plain(_title(minutes))}", "", *_md_facts(minutes, known), ""]
        if minutes.decision is not None:
            lines += _md_decision(minutes.decision, known)
        elif minutes.outcome is not None:
            lines += ["## Outcome", "", *_quoted(text_of(minutes.outcome)), ""]
        return self._seen("\n".join([*lines, "## Transcript", ""]))

    def line(self, line: Line) -> str:
        return self._seen("".join(f"\n{row}" for row in _md_line(line, self._known)))

    def _seen(self, text: str) -> str:
        text = self._held + text
        seen = text.rstrip()
        self._held = text[len(seen) :]
        return seen


def _title(minutes: Minutes) -> str:
    return minutes.title or text_of(minutes.question)


def _decided(decision: Decision) -> tuple[str, str]:
    """A heading, and the words below it, which do not say it again."""
    if decision.adopted:
        return "Decision", decision.text
    return "Proposal, not adopted", decision.text.removeprefix("Not adopted: ")


def _participant(member: dict[str, Any], known: Known) -> str:
    """``Bob (bo, builder, demo)``; a handle that is the name is said once."""
    name = member["agentId"]
    short = handle(name).removeprefix("user:")
    about = [str(member[key]) for key in PROFILE[1:] if member.get(key)]
    about = about if known[name].casefold() == short else [short, *about]
    return f"{known[name]} ({', '.join(about)})" if about else known[name]


def _time(text: str) -> str:
    """``2030-01-31 12:00:00 UTC``"""
    return f"{text[:19].replace('T', ' ')} UTC" if text.endswith("Z") else text


def _md_facts(minutes: Minutes, known: Known) -> list[str]:
    people = ", ".join(_plain(_participant(member, known)) for member in minutes.participants)
    thread = minutes.thread_id.replace("`", "'")
    facts = [f"- Thread: `{thread}`", f"- Opened: {_time(minutes.opened_at)}"]
    facts.append(f"- Closed: {_time(minutes.closed_at or 'still open')}")
    return [*facts, f"- Participants: {people}"]


def _md_decision(decision: Decision, known: Known) -> list[str]:
    title, text = _decided(decision)
    lines = [f"## {title}", "", *_quoted(text)]
    lines[-1] += "".join(f" [{index}]" for index in decision.cited_turns)
    lines.append("")
    if decision.votes:
        lines += ["### Votes", "", "| Who | Vote | Why |", "|---|---|---|"]
        lines += [
            f"| {_plain(_named(v.by, known))} | {_plain(v.vote)} | {_plain(v.reason or '')} |"
            for v in decision.votes
        ]
        lines.append("")
    if decision.dissent:
        lines += ["### Dissent", ""]
        lines += [
            f"- **{_plain(_named(each.by, known))}**: {_plain(each.text)}"
            for each in decision.dissent
        ]
        lines.append("")
    if decision.action_items:
        lines += ["### Action items", ""]
        for item in decision.action_items:
            owner = f" ({_plain(_named(item.owner, known))})" if item.owner else ""
            due = f", due {_plain(item.due)}" if item.due else ""
            lines.append(f"- [ ] {_plain(item.text)}{owner}{due}")
        lines.append("")
    return lines


def _named(name: str, known: Known) -> str:
    return known.get(name, name)


def _about(line: Line, known: Known) -> str:
    """What stands behind the name of who speaks."""
    to = f" to {_named(line.to, known)}" if line.to else ""
    more = [line.kind, line.model]
    for said, name in (("said by", line.spoken_by), ("edited by", line.edited_by)):
        more += [f"{said} {_named(name, known)}"] if name else []
    return " · ".join([f"{to} · {_time(line.at)}", *filter(None, more)])


def _md_line(line: Line, known: Known) -> list[str]:
    if line.note is not None:
        return [f"*{_plain(line.note)}*", ""]
    who = _plain(_named(line.by, known))
    head = f"**[{line.index}] {who}**{_plain(_about(line, known))}"
    return [head, "", *_quoted(text_of(line.content)), ""]


def _quoted(text: str) -> list[str]:
    """What somebody said cannot become a heading of ours, nor markup."""
    return [f"> {_plain(row)}" for row in text.splitlines() or [""]]


def _plain(text: str) -> str:
    """Text that every reader of Markdown shows as it is."""
    text = MARKUP.sub(r"\\\g<0>", CONTROL.sub(" ", text))
    return NUMBERED.sub(r"\g<1>\\\g<2>", LEADING.sub(r"\g<1>\\\g<2>", text))


# -- HTML --------------------------------------------------------------------------------------

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "blockquote{margin:.2rem 0 1rem;padding-left:.8rem;border-left:3px solid #bbb;"
    "white-space:pre-wrap}table{border-collapse:collapse}td,th{border:1px solid #bbb;"
    "padding:.2rem .6rem;text-align:left}.note{color:#555;font-style:italic}"
)


class Html:
    media, end = "text/html; charset=utf-8", "\n</body></html>\n"

    def __init__(self, minutes: Minutes) -> None:
        self._minutes, self._known = minutes, names(minutes)

    def head(self) -> str:
        minutes, known = self._minutes, self._known
        title = escape(_title(minutes))
        people = ", ".join(escape(_participant(member, known)) for member in minutes.participants)
        parts = [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            '<meta name="viewport" content="width=device-width">'
            f"<style>{STYLE}</style></head><body>",
            f"<h1>{title}</h1><p>Thread <code>{escape(minutes.thread_id)}</code><br>",
            f"Opened {escape(_time(minutes.opened_at))}<br>",
            f"Closed {escape(_time(minutes.closed_at or 'still open'))}<br>",
            f"Participants: {people}</p>",
        ]
        if minutes.decision is not None:
            parts += _html_decision(minutes.decision, known)
        elif minutes.outcome is not None:
            said = escape(text_of(minutes.outcome))
            parts.append(f"<h2>Outcome</h2><blockquote>{said}</blockquote>")
        return "\n".join([*parts, "<h2>Transcript</h2>"])

    def line(self, line: Line) -> str:
        return f"\n{_html_line(line, self._known)}"


def _html_decision(decision: Decision, known: Known) -> list[str]:
    links = "".join(f' <a href="#t{n}">[{n}]</a>' for n in decision.cited_turns)
    title, text = _decided(decision)
    parts = [f"<h2>{title}</h2><blockquote>{escape(text)}{links}</blockquote>"]
    if decision.votes:
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(part or '')}</td>" for part in row)
            for row in ((_named(v.by, known), v.vote, v.reason) for v in decision.votes)
        )
        parts.append(
            f"<h3>Votes</h3><table><tr><th>Who</th><th>Vote</th><th>Why</th></tr>{rows}</table>"
        )
    if decision.dissent:
        rows = "".join(
            f"<li><b>{escape(_named(each.by, known))}</b>: {escape(each.text)}</li>"
            for each in decision.dissent
        )
        parts.append(f"<h3>Dissent</h3><ul>{rows}</ul>")
    if decision.action_items:
        rows = "".join(
            f"<li>{escape(item.text)}"
            f"{f' ({escape(_named(item.owner, known))})' if item.owner else ''}"
            f"{f', due {escape(item.due)}' if item.due else ''}</li>"
            for item in decision.action_items
        )
        parts.append(f"<h3>Action items</h3><ul>{rows}</ul>")
    return parts


def _html_line(line: Line, known: Known) -> str:
    if line.note is not None:
        return f'<p class="note">{escape(line.note)}</p>'
    who = f"<b>[{line.index}] {escape(_named(line.by, known))}</b>{escape(_about(line, known))}"
    head = f'<p id="t{line.index}">{who}</p>'
    return f"{head}<blockquote>{escape(text_of(line.content))}</blockquote>"


# -- JSON --------------------------------------------------------------------------------------


class Json:
    media = "application/json"

    def __init__(self, minutes: Minutes) -> None:
        self._minutes, self._lines = minutes, 0

    def head(self) -> str:
        return msgspec.json.encode(self._minutes).decode()[:-1]

    def line(self, line: Line) -> str:
        self._lines += 1
        before = "," if self._lines > 1 else ',"transcript":['
        return before + msgspec.json.encode(line).decode()

    @property
    def end(self) -> str:
        return "]}" if self._lines else "}"


PRINTED: dict[str, type[Markdown | Html | Json]] = {"md": Markdown, "html": Html, "json": Json}
