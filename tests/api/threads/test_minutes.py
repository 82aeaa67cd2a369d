"""Minutes for people and for programs: what somebody said stays text in all of them."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.support.api.caller import Api
from tests.support.api.councils import (
    ADA,
    BO,
    close,
    convened,
    export,
    join,
    key_as,
    person,
    run_of,
    steer,
    tell,
)
from tests.support.api.questions import answered

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
HOSTILE = (
    "# A heading", "A heading\n====", "A heading\n---", "## Decision\n\n> forged",
    "| a | b |\n|---|---|\n| c | d |", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))", "![a](http://tracker.example/x.png)", "<https://a.example>",
    "[a]: http://a.example\n\n[a]", "**bold** _soft_ `code` ~~gone~~", "```\nfence\n```",
    "~~~\nfence", "- a\n- b", "* a", "+ a", "1. a\n2) b", "&lt;b&gt; &amp; &#60;", "\\<b> \\\\",
    "> quoted", "---", "***", "a\r\nb\rc\x0bd\x0ce\u2028f\x85g", "</blockquote></body>",
    "- [x] done", '"><b>x', "' onmouseover='x", "\x1b[31mred\x07", "[0] user", "", "   ",
    "\u202eright to left", "nul\x00esc\x1b",
)  # fmt: skip


@pytest.fixture(scope="module")
def hostile(api: Api) -> str:
    """A council of people who try to write the minutes themselves."""
    marks = (
        "#",
        "<b>",
        "|",
        "[a](b)",
        "![a](b)",
        "**a**",
        "`a`",
        "_a_",
        "~~a~~",
        "-",
        "1.",
        "&lt;",
    )
    names = [f"host:{text}" for text in marks]
    thread = convened(api, ADA, BO, *names, question="\n".join(HOSTILE), title="# <b>|T|</b>\n# x")
    for text in HOSTILE:
        answered(tell(api, thread, ADA, text))
        answered(person(api, thread, {"said": text}))
    for name in names:
        answered(tell(api, thread, name, "x", to=name))
        answered(steer(api, thread, {"prod": [name]}))
    decision = {
        "text": "\n".join(HOSTILE), "citedTurns": [1],
        "votes": [{"by": n, "vote": t, "reason": t} for n, t in zip(names, HOSTILE, strict=False)],
        "dissent": [{"by": name, "text": text} for name, text in zip(names, HOSTILE, strict=False)],
        "actionItems": [{"text": text, "owner": text, "due": text} for text in HOSTILE if text],
    }  # fmt: skip
    answered(close(api, thread, decision=decision))
    return thread


BARE = re.compile(r"(?<!\\)(?:\\\\)*([<>\[\]`*_|~&])")
OURS = re.compile(
    r"# .*|## (Decision|Transcript)|### (Votes|Dissent|Action items)|- Thread: `[^`]*`|"
    r"- (Opened|Closed|Participants): .*|\| Who \| Vote \| Why \||\|---\|---\|---\||"
)


def test_markdown_is_only_ours(api: Api, hostile: str) -> None:
    answer = export(api, hostile)
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    lines = answer.text.split("\n")
    assert [line for line in lines if line.startswith("#")][1:] == [
        "## Decision", "### Votes", "### Dissent", "### Action items", "## Transcript"
    ]  # fmt: skip
    for line in lines:
        if OURS.fullmatch(line):
            continue
        said = _content(line)
        assert said is not None, f"not a line of the minutes: {line!r}"
        for part in said:
            assert not BARE.search(part), line
            assert not re.match(r"\s*([#+=-]|\d+[.)])", part), line
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", part), line


def _content(line: str) -> list[str] | None:
    """What somebody said in a line of the minutes; None where no such line is."""
    for pattern in (
        r"> (.*)", r"\*(.*)\*", r"- \*\*(.*)\*\*: (.*)", r"- \[ \] (.*)",
        r"\*\*\\?\[\d+\\?\] (.*)\*\*(.*)", r"\| (.*) \| (.*) \| (.*) \|",
    ):  # fmt: skip
        if found := re.fullmatch(pattern, line):
            parts = list(found.groups())
            if pattern.startswith("> "):
                parts[0] = re.sub(r" \[\d+\]$", "", parts[0])
            return [part if index == 0 else f"x{part}" for index, part in enumerate(parts)]
    return None


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_has_only_our_tags(api: Api, hostile: str) -> None:
    answer = export(api, hostile, "html")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")
    page = Tags()
    page.feed(answer.text)
    assert {tag for tag, _ in page.seen} == {
        "html", "head", "meta", "title", "style", "body", "h1", "p", "code", "br", "h2",
        "blockquote", "a", "h3", "table", "tr", "th", "td", "ul", "li", "b",
    }  # fmt: skip
    assert {name for _, names in page.seen for name in names} <= {
        "lang", "charset", "name", "content", "id", "class", "href"
    }  # fmt: skip
    assert not UNPRINTABLE.search(answer.text)
    for text in HOSTILE:
        shown = UNPRINTABLE.sub("", text)
        assert shown.replace("\r\n", "\n").replace("\r", "\n") in page.text.replace(
            "\r\n", "\n"
        ).replace("\r", "\n")


def test_programs_read_it_as_it_was(api: Api, hostile: str) -> None:
    answer = export(api, hostile, "json")
    assert answer.headers["content-type"] == "application/json"
    found = answer.json()
    assert found["question"] == "\n".join(HOSTILE)
    said = [line["content"] for line in found["transcript"] if line.get("by") == ADA]
    assert said == list(HOSTILE)
    assert [item["text"] for item in found["decision"]["actionItems"]] == [t for t in HOSTILE if t]


def test_minutes_tell_everything(api: Api) -> None:
    ann = key_as(api, "user:ann")
    thread = convened(ann, "ada", "bo", title="Shipping")
    model = {"provider": "mock", "model": "mini"}
    answered(
        tell(api, thread, ADA, "In June", to="bo", agent={"agentId": "acme.x", "model": model})
    )
    answered(steer(ann, thread, {"mute": ["bo"]}))
    found = export(api, thread, "json").json()
    assert (found["threadId"], found["runId"]) == (thread, run_of(thread))
    assert (found["title"], found["question"], "closedAt" in found) == ("Shipping", "June?", False)
    assert "still open" in export(api, thread).text
    decision: dict[str, Any] = {
        "text": "June", "votes": {ADA: "yes"}, "dissent": {"user:ann": "no"}, "citedTurns": [1],
        "actionItems": [{"text": "tell", "owner": "user:ann", "due": "2027-01-10"}],
    }  # fmt: skip
    answered(close(ann, thread, decision=decision))
    found = export(api, thread, "json").json()
    assert [member["agentId"] for member in found["participants"]] == [ADA, BO, "user:ann"]
    assert found["decision"] == {
        **decision, "votes": [{"by": ADA, "vote": "yes"}],
        "dissent": [{"by": "user:ann", "text": "no"}],
    }  # fmt: skip
    first, second, note, last = found["transcript"]
    assert (first["index"], first["by"], first["content"]) == (0, "user:ann", "June?")
    assert (second["index"], second["to"], second["model"]) == (1, BO, "mini")
    assert (note["by"], note["note"], "index" in note) == ("user:ann", "ann muted bo", False)
    assert last["role"] == "system" and found["closedAt"] == last["at"]
    page = export(api, thread).text
    for text in ("# Shipping", "## Decision", "> June [1]", "| ada | yes |", "In June", "mini",
                 "- [ ] tell (ann), due 2027-01-10", "ann muted bo"):  # fmt: skip
        assert text in page, text


def test_an_outcome_that_is_no_decision_is_shown_as_it_is(api: Api) -> None:
    thread = convened(api)
    answered(close(api, thread, outcome={"month": ["June"]}))
    assert export(api, thread, "json").json()["outcome"] == {"month": ["June"]}
    assert "## Outcome" in export(api, thread).text
    assert "<h2>Outcome</h2>" in export(api, thread, "html").text


def test_who_came_and_went_is_told(api: Api) -> None:
    thread = convened(api, "ada", open=True)
    answered(steer(api, thread, {"invite": "bo"}))
    answered(tell(api, thread, BO))
    answered(steer(api, thread, {"uninvite": "bo"}))
    found = export(api, thread, "json").json()
    notes = [line["note"].lower() for line in found["transcript"] if "note" in line]
    assert notes == ["user invited ada", "user invited bo", "user sent bo away"]
    assert join(api, thread, ADA).status_code == 201
    assert [member["agentId"] for member in found["participants"]] == ["user", ADA, BO]
