"""Format minutes as Markdown, HTML or JSON.

Each format writes a head, one piece for each line of the transcript, and an end. Quoted text stays
text in all of them.
"""

import html
import re
from collections.abc import Mapping

import msgspec

from moot.api.threads.minutes import PROFILE_FIELDS, MinutesHead, display_names
from moot.core.conversations.closing_decision import CouncilDecision
from moot.core.text.fencing import content_text
from moot.core.text.names import handle_from_name
from moot.wire.minutes import Line

#: Participant's id -> display name.
DisplayNames = dict[str, str]

#: Characters that would end a line or control a terminal.
CONTROL = re.compile(r"[\x00-\x08\n-\x1f\x7f-\x9f]")
#: Characters that begin markup anywhere, and those that do so only at the start of a line.
MARKUP = re.compile(r"[\\`*_\[\]<>|~&]")
LEADING = re.compile(r"^(\s*)([#+=-])")
NUMBERED = re.compile(r"^(\s*\d+)([.)])")

#: Characters that are invalid in HTML even when escaped.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")


def _escape_html(text: str) -> str:
    return html.escape(UNPRINTABLE.sub("", text))


# -- Markdown ----------------------------------------------------------------------------------


class MarkdownMinutes:
    """Minutes in Markdown. Blanks at the end of a piece wait until text follows."""

    media, end = "text/markdown; charset=utf-8", "\n"

    def __init__(self, minutes: MinutesHead) -> None:
        self._minutes, self._names, self._blanks = minutes, display_names(minutes), ""

    def head(self) -> str:
        minutes, names = self._minutes, self._names
        lines = [f"# {_escape_md(_title(minutes))}", "", *_md_facts(minutes, names), ""]
        if minutes.decision is not None:
            lines += _md_decision(minutes.decision, names)
        elif minutes.outcome is not None:
            lines += ["## Outcome", "", *_quote(content_text(minutes.outcome)), ""]
        return self._hold_back_blanks("\n".join([*lines, "## Transcript", ""]))

    def line(self, line: Line) -> str:
        return self._hold_back_blanks("".join(f"\n{row}" for row in _md_line(line, self._names)))

    def _hold_back_blanks(self, text: str) -> str:
        text = self._blanks + text
        visible = text.rstrip()
        self._blanks = text[len(visible) :]
        return visible


def _title(minutes: MinutesHead) -> str:
    return minutes.title or content_text(minutes.question)


def _decision_heading(decision: CouncilDecision) -> tuple[str, str]:
    """Return a heading and the text below it, without repeating the heading."""
    if decision.adopted:
        return "Decision", decision.text
    return "Proposal, not adopted", decision.text.removeprefix("Not adopted: ")


def _participant_text(member: Mapping[str, object], names: DisplayNames) -> str:
    """Return ``Bob (bo, builder, demo)``. A handle that equals the name appears once."""
    name = str(member["agentId"])
    short = handle_from_name(name).removeprefix("user:")
    about = [str(member[key]) for key in PROFILE_FIELDS[1:] if member.get(key)]
    about = about if names[name].casefold() == short else [short, *about]
    return f"{names[name]} ({', '.join(about)})" if about else names[name]


def _time(text: str) -> str:
    """Return ``2030-01-31 12:00:00 UTC``."""
    return f"{text[:19].replace('T', ' ')} UTC" if text.endswith("Z") else text


def _md_facts(minutes: MinutesHead, names: DisplayNames) -> list[str]:
    people = ", ".join(
        _escape_md(_participant_text(member, names)) for member in minutes.participants
    )
    thread = minutes.thread_id.replace("`", "'")
    facts = [f"- Thread: `{thread}`", f"- Opened: {_time(minutes.opened_at)}"]
    facts.append(f"- Closed: {_time(minutes.closed_at or 'still open')}")
    return [*facts, f"- Participants: {people}"]


def _md_decision(decision: CouncilDecision, names: DisplayNames) -> list[str]:
    title, text = _decision_heading(decision)
    lines = [f"## {title}", "", *_quote(text)]
    lines[-1] += "".join(f" [{index}]" for index in decision.cited_turns)
    lines.append("")
    if decision.votes:
        lines += ["### Votes", "", "| Who | Vote | Why |", "|---|---|---|"]
        for vote in decision.votes:
            cells = (_display_name(vote.by, names), vote.vote, vote.reason or "")
            lines.append(f"| {' | '.join(map(_escape_md, cells))} |")
        lines.append("")
    if decision.dissent:
        lines += ["### Dissent", ""]
        lines += [
            f"- **{_escape_md(_display_name(each.by, names))}**: {_escape_md(each.text)}"
            for each in decision.dissent
        ]
        lines.append("")
    if decision.action_items:
        lines += ["### Action items", ""]
        for item in decision.action_items:
            owner = f" ({_escape_md(_display_name(item.owner, names))})" if item.owner else ""
            due = f", due {_escape_md(item.due)}" if item.due else ""
            lines.append(f"- [ ] {_escape_md(item.text)}{owner}{due}")
        lines.append("")
    return lines


def _display_name(name: str, names: DisplayNames) -> str:
    return names.get(name, name)


def _speaker_details(line: Line, names: DisplayNames) -> str:
    """Return the text after the speaker's name: addressee, time, kind, model."""
    to = f" to {_display_name(line.to, names)}" if line.to else ""
    more = [line.kind, line.model]
    for label, name in (("said by", line.spoken_by), ("edited by", line.edited_by)):
        more += [f"{label} {_display_name(name, names)}"] if name else []
    return " · ".join([f"{to} · {_time(line.at)}", *filter(None, more)])


def _md_line(line: Line, names: DisplayNames) -> list[str]:
    if line.note is not None:
        return [f"*{_escape_md(line.note)}*", ""]
    speaker = _escape_md(_display_name(line.by, names))
    head = f"**[{line.index}] {speaker}**{_escape_md(_speaker_details(line, names))}"
    return [head, "", *_quote(content_text(line.content)), ""]


def _quote(text: str) -> list[str]:
    """Return quoted lines that cannot become a heading or markup."""
    return [f"> {_escape_md(row)}" for row in text.splitlines() or [""]]


def _escape_md(text: str) -> str:
    """Escape text so that every Markdown reader shows it as it is."""
    text = MARKUP.sub(r"\\\g<0>", CONTROL.sub(" ", text))
    return NUMBERED.sub(r"\g<1>\\\g<2>", LEADING.sub(r"\g<1>\\\g<2>", text))


# -- HTML --------------------------------------------------------------------------------------

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "blockquote{margin:.2rem 0 1rem;padding-left:.8rem;border-left:3px solid #bbb;"
    "white-space:pre-wrap}table{border-collapse:collapse}td,th{border:1px solid #bbb;"
    "padding:.2rem .6rem;text-align:left}.note{color:#555;font-style:italic}"
)


class HtmlMinutes:
    """Minutes as an HTML page."""

    media, end = "text/html; charset=utf-8", "\n</body></html>\n"

    def __init__(self, minutes: MinutesHead) -> None:
        self._minutes, self._names = minutes, display_names(minutes)

    def head(self) -> str:
        minutes, names = self._minutes, self._names
        title = _escape_html(_title(minutes))
        people = ", ".join(
            _escape_html(_participant_text(member, names)) for member in minutes.participants
        )
        parts = [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            '<meta name="viewport" content="width=device-width">'
            f"<style>{STYLE}</style></head><body>",
            f"<h1>{title}</h1><p>Thread <code>{_escape_html(minutes.thread_id)}</code><br>",
            f"Opened {_escape_html(_time(minutes.opened_at))}<br>",
            f"Closed {_escape_html(_time(minutes.closed_at or 'still open'))}<br>",
            f"Participants: {people}</p>",
        ]
        if minutes.decision is not None:
            parts += _html_decision(minutes.decision, names)
        elif minutes.outcome is not None:
            outcome = _escape_html(content_text(minutes.outcome))
            parts.append(f"<h2>Outcome</h2><blockquote>{outcome}</blockquote>")
        return "\n".join([*parts, "<h2>Transcript</h2>"])

    def line(self, line: Line) -> str:
        return f"\n{_html_line(line, self._names)}"


def _html_decision(decision: CouncilDecision, names: DisplayNames) -> list[str]:
    links = "".join(f' <a href="#t{n}">[{n}]</a>' for n in decision.cited_turns)
    title, text = _decision_heading(decision)
    parts = [f"<h2>{title}</h2><blockquote>{_escape_html(text)}{links}</blockquote>"]
    if decision.votes:
        rows = "".join(
            "<tr>" + "".join(f"<td>{_escape_html(part or '')}</td>" for part in row)
            for row in ((_display_name(v.by, names), v.vote, v.reason) for v in decision.votes)
        )
        parts.append(
            f"<h3>Votes</h3><table><tr><th>Who</th><th>Vote</th><th>Why</th></tr>{rows}</table>"
        )
    if decision.dissent:
        rows = "".join(
            f"<li><b>{_escape_html(_display_name(each.by, names))}</b>:"
            f" {_escape_html(each.text)}</li>"
            for each in decision.dissent
        )
        parts.append(f"<h3>Dissent</h3><ul>{rows}</ul>")
    if decision.action_items:
        rows = "".join(
            f"<li>{_escape_html(item.text)}"
            f"{f' ({_escape_html(_display_name(item.owner, names))})' if item.owner else ''}"
            f"{f', due {_escape_html(item.due)}' if item.due else ''}</li>"
            for item in decision.action_items
        )
        parts.append(f"<h3>Action items</h3><ul>{rows}</ul>")
    return parts


def _html_line(line: Line, names: DisplayNames) -> str:
    if line.note is not None:
        return f'<p class="note">{_escape_html(line.note)}</p>'
    speaker = f"<b>[{line.index}] {_escape_html(_display_name(line.by, names))}</b>"
    details = _escape_html(_speaker_details(line, names))
    head = f'<p id="t{line.index}">{speaker}{details}</p>'
    return f"{head}<blockquote>{_escape_html(content_text(line.content))}</blockquote>"


# -- JSON --------------------------------------------------------------------------------------


class JsonMinutes:
    """Minutes as one JSON object."""

    media = "application/json"

    def __init__(self, minutes: MinutesHead) -> None:
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


FORMATTERS: dict[str, type[MarkdownMinutes | HtmlMinutes | JsonMinutes]] = {
    "md": MarkdownMinutes,
    "html": HtmlMinutes,
    "json": JsonMinutes,
}
