"""Minutes as Markdown and as a page of HTML. What somebody said stays text in both."""

import re
from html import escape as escaped
from typing import Any

from moot.api.minutes import PROFILE, Line, Minutes, text_of
from moot.core.decisions import Decision

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


def markdown(minutes: Minutes) -> str:
    lines = [f"# {_plain(_title(minutes))}", "", *_md_facts(minutes), ""]
    if minutes.decision is not None:
        lines += _md_decision(minutes.decision)
    elif minutes.outcome is not None:
        lines += ["## Outcome", "", *_quoted(text_of(minutes.outcome)), ""]
    lines += ["## Transcript", ""]
    for line in minutes.transcript:
        lines += _md_line(line)
    return "\n".join(lines).rstrip() + "\n"


def _title(minutes: Minutes) -> str:
    return minutes.title or text_of(minutes.question)


def _participant(member: dict[str, Any]) -> str:
    """``host:ada (Ada, skeptic, demo)``"""
    about = ", ".join(str(member[key]) for key in PROFILE if member.get(key))
    return f"{member['agentId']} ({about})" if about else str(member["agentId"])


def _md_facts(minutes: Minutes) -> list[str]:
    names = ", ".join(_plain(_participant(member)) for member in minutes.participants)
    thread = minutes.thread_id.replace("`", "'")
    facts = [f"- Thread: `{thread}`", f"- Opened: {minutes.opened_at}"]
    facts.append(f"- Closed: {minutes.closed_at or 'still open'}")
    return [*facts, f"- Participants: {names}"]


def _md_decision(decision: Decision) -> list[str]:
    title = "Decision" if decision.adopted else "Proposal, not adopted"
    lines = [f"## {title}", "", *_quoted(decision.text)]
    lines[-1] += "".join(f" [{index}]" for index in decision.cited_turns)
    lines.append("")
    if decision.votes:
        lines += ["### Votes", "", "| Who | Vote | Why |", "|---|---|---|"]
        lines += [
            f"| {_plain(v.by)} | {_plain(v.vote)} | {_plain(v.reason or '')} |"
            for v in decision.votes
        ]
        lines.append("")
    if decision.dissent:
        lines += ["### Dissent", ""]
        lines += [f"- **{_plain(each.by)}**: {_plain(each.text)}" for each in decision.dissent]
        lines.append("")
    if decision.action_items:
        lines += ["### Action items", ""]
        for item in decision.action_items:
            owner = f" ({_plain(item.owner)})" if item.owner else ""
            due = f", due {_plain(item.due)}" if item.due else ""
            lines.append(f"- [ ] {_plain(item.text)}{owner}{due}")
        lines.append("")
    return lines


def _md_line(line: Line) -> list[str]:
    if line.note is not None:
        return [f"*{_plain(line.by)}: {_plain(line.note)}*", ""]
    to = f" to {_plain(line.to)}" if line.to else ""
    model = f" · {_plain(line.model)}" if line.model else ""
    edited = f" · edited by {_plain(line.edited_by)}" if line.edited_by else ""
    head = f"**[{line.index}] {_plain(line.by)}**{to} · {line.at}{model}{edited}"
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


def html(minutes: Minutes) -> str:
    title = escape(_title(minutes))
    names = ", ".join(escape(_participant(member)) for member in minutes.participants)
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>',
        f"<h1>{title}</h1><p>Thread <code>{escape(minutes.thread_id)}</code><br>",
        f"Opened {escape(minutes.opened_at)}<br>",
        f"Closed {escape(minutes.closed_at or 'still open')}<br>Participants: {names}</p>",
    ]
    if minutes.decision is not None:
        parts += _html_decision(minutes.decision)
    elif minutes.outcome is not None:
        parts.append(f"<h2>Outcome</h2><blockquote>{escape(text_of(minutes.outcome))}</blockquote>")
    parts.append("<h2>Transcript</h2>")
    parts += [_html_line(line) for line in minutes.transcript]
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _html_decision(decision: Decision) -> list[str]:
    links = "".join(f' <a href="#t{n}">[{n}]</a>' for n in decision.cited_turns)
    title = "Decision" if decision.adopted else "Proposal, not adopted"
    parts = [f"<h2>{title}</h2><blockquote>{escape(decision.text)}{links}</blockquote>"]
    if decision.votes:
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(part or '')}</td>" for part in (v.by, v.vote, v.reason))
            for v in decision.votes
        )
        parts.append(
            f"<h3>Votes</h3><table><tr><th>Who</th><th>Vote</th><th>Why</th></tr>{rows}</table>"
        )
    if decision.dissent:
        rows = "".join(
            f"<li><b>{escape(each.by)}</b>: {escape(each.text)}</li>" for each in decision.dissent
        )
        parts.append(f"<h3>Dissent</h3><ul>{rows}</ul>")
    if decision.action_items:
        rows = "".join(
            f"<li>{escape(item.text)}{f' ({escape(item.owner)})' if item.owner else ''}"
            f"{f', due {escape(item.due)}' if item.due else ''}</li>"
            for item in decision.action_items
        )
        parts.append(f"<h3>Action items</h3><ul>{rows}</ul>")
    return parts


def _html_line(line: Line) -> str:
    if line.note is not None:
        return f'<p class="note">{escape(line.by)}: {escape(line.note)}</p>'
    to = f" to {escape(line.to)}" if line.to else ""
    model = f" · {escape(line.model)}" if line.model else ""
    edited = f" · edited by {escape(line.edited_by)}" if line.edited_by else ""
    who = f"<b>[{line.index}] {escape(line.by)}</b>{to} · {escape(line.at)}{model}{edited}"
    head = f'<p id="t{line.index}">{who}</p>'
    return f"{head}<blockquote>{escape(text_of(line.content))}</blockquote>"
