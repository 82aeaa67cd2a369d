"""What a council's events say to a person; and that no log, however odd, stops the telling."""

from typing import Any, cast

import click
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec import convert
from msgspec.structs import replace

from moot.api.threads.minutes import MinutesHead
from moot.api.threads.minutes_format import HtmlMinutes, MarkdownMinutes
from moot.cli.councils.live_rows import LiveRows
from moot.cli.councils.members import CouncilRoster
from moot.cli.councils.prompt_actions import decision_with_votes
from moot.cli.councils.screen import PipeScreen, lay_out_line
from moot.cli.councils.session import CouncilSession, waiting_reason
from moot.cli.councils.transcript_lines import (
    RENDERERS,
    TranscriptLine,
    TranscriptRenderer,
    label_decision,
)
from moot.cli.runs.find import format_cost
from moot.cli.shared.client import Api
from moot.cli.threads.show import _last_text
from moot.core.conversations.closing_decision import read_decision
from moot.core.events import Event
from moot.wire.runs import ModelCost, RunMetrics, TokenCount
from moot.wire.threads import ThreadSummary, ThreadView
from tests.support.event_payloads import example_event

PROFILES = {"host:ada": {"name": "Ada"}, "host:bo": {"name": "Bob", "role": "legal"}}


def room() -> CouncilRoster:
    found = CouncilRoster()
    for name, profile in PROFILES.items():
        found.learn(name, profile)
    return found


def event(kind: str, **payload: Any) -> Event:
    return example_event(kind, **payload)


def turn(**said: Any) -> dict[str, Any]:
    return {"turnIndex": 4, "from": "host:ada", "role": "agent", "content": "Hm.", **said}


def said(*found: Event) -> list[str]:
    teller = TranscriptRenderer(room(), "th_1")
    told = [one for each in found for one in teller.tell(each)]
    parts = [filter(None, (one.head, one.text, one.tail)) for one in told]
    return [click.unstyle(" ".join(each)).strip() for each in parts]


VOTED = event("moot.participation.answered", task="vote", outcome="answered", agentId="host:ada",
              answer={"vote": "yes", "reason": "Why not."})  # fmt: skip
OVER = event("moot.participation.decided", phase="over", wakes=[])


@pytest.mark.parametrize(
    ("happened", "reads"),
    [
        ([event("conversation.exchanged", turn=turn())], ["4 Ada Hm."]),
        (
            [event("conversation.exchanged", turn=turn(
                to="host:bo", meta={"model": "demo", "inputTokens": 200, "outputTokens": 12,
                                    "milliseconds": 18_000, "truncated": True}))],
            ["4 Ada → Bob Hm. [18 s · demo · 212 tok · cut off]"],
        ),
        (
            [event("conversation.exchanged", turn=turn(role="system", **{"from": "system"}))],
            ["4 moot Hm."],
        ),
        (
            [event("moot.thread.control", **{"from": "user:eve"},
                   content={"mute": {"targets": ["bo"], "seconds": 600}, "unmute": ["host:ada"]})],
            ["— eve muted Bob for 10 minutes", "— eve unmuted Ada"],
        ),
        (
            [event("moot.thread.control", **{"from": "user"}, content={"pause": {"on": False}})],
            ["— you let it go on"],
        ),
        ([event("moot.participant.joined", participantId="host:dee", by="user", fromTurn=10)],
         ["— you invited Dee (sees turns 0 to 9)"]),
        ([event("moot.participant.joined", participantId="host:dee", fromTurn=1)], []),
        ([event("moot.participant.left", participantId="host:bo", by="user")],
         ["— you sent Bob away"]),
        ([event("moot.participation.set", by="user", policy={"mode": "addressed"}, members=[])],
         ["— you set the order: addressed"]),
        ([event("moot.participation.decided", skipped=[{"agentId": "host:bo", "reason": "muted"}])],
         ["— Bob is passed by: muted"]),
        ([event("moot.participation.answered", task="speak", outcome="passed", agentId="host:bo")],
         ["— Bob has nothing to add"]),
        ([event("moot.participation.stopped", reason="rounds", limit=2)], ["— 2 rounds done"]),
        ([event("moot.participation.stopped", reason="consensus")],
         ["— Nobody has anything to add."]),
        ([event("moot.participation.stopped", reason="tokens", limit=9)], []),
        ([event("moot.participation.continued", by="user", rounds=1)],
         ["— you let it go on, 1 more round"]),
        ([event("moot.vote.called", by="user", decision="Pilot.")],
         ["— you put to the vote: Pilot."]),
        ([VOTED, OVER], ["— vote: Ada yes (Why not.)"]),
        ([event("moot.tool.asked", agentId="host:ada", toolName="mail", inputs={"to": "x"})],
         ['— Ada wants to use mail({"to": "x"}) · /allow or /deny']),
        ([event("moot.tool.answered", by="user", allowed=False)], ["— you did not allow it"]),
        ([event("moot.turn.held", turn=turn(speakerId="host:ada"), reason="participant_muted")],
         ["— Ada tried to speak while muted (1 turn held) · /admit 31 lets it in, /drop 31 does"
          " not"]),
        ([event("moot.turn.admitted", by="user", held="31")], ["— you let a held turn in"]),
        ([event("moot.turn.dropped", by="user", held="31")], ["— you dropped a held turn"]),
        ([event("run.cancelled", reason="enough")], ["— run cancelled (enough)"]),
        ([event("node.completed")], []),
    ],
)  # fmt: skip
def test_events_are_sentences(happened: list[Event], reads: list[str]) -> None:
    assert said(*happened) == reads


def test_a_close_tells_votes_once_and_the_decision_unless_it_was_just_said() -> None:
    outcome = {
        "text": "Pilot.", "votes": [{"by": "host:ada", "vote": "no", "reason": "Too early."}],
        "dissent": [{"by": "host:ada", "text": "Too early."}],
    }  # fmt: skip
    end = "Closed. Decision recorded (turn 5). Minutes: moot thread export th_1 -f md"
    final = turn(role="system", **{"from": "system"})
    closed = event("conversation.closed", turnIndex=5, finalTurn=final, outcome=outcome)
    votes, rest = "— vote: Ada no (Too early.)", "— dissent: Ada: Too early."
    assert said(closed) == [votes, "— decision: Pilot.", rest, end]
    no = event("moot.participation.answered", task="vote", outcome="answered", agentId="host:ada",
               answer={"vote": "no", "reason": "Too early."})  # fmt: skip
    final = turn(content="Decided: Pilot.")
    closed = event("conversation.closed", turnIndex=5, finalTurn=final, outcome=outcome)
    assert said(no, OVER, closed) == [votes, "4 Ada Decided: Pilot.", rest, end]


LIMITS = {
    "consecutive": 1, "pair": 1, "calls": 1, "tokens": 1, "minutes": 1, "money": None,
    "agentCalls": 1, "agentTokens": 1, "silence": 1,
}  # fmt: skip
FLOOR = {
    "mode": "round-robin", "now": "round-robin", "phase": "over", "round": 1, "rounds": 1,
    "moderator": None, "members": {}, "outside": [], "speaking": [], "stopped": None, "spent": {},
    "limits": LIMITS, "proposal": "Pilot.", "votes": {}, "held": [], "asks": [], "atRest": True,
}  # fmt: skip
STATE = {
    "paused": False, "muted": [], "mutedUntil": {}, "prodded": [], "done": [], "ttl_until": None,
    "discussion": True, "allow_agent_mentions": True, "invited_auto": False,
    "participants": {"invited": []},
}  # fmt: skip
ROW = {
    "threadId": "th_1", "runId": "th_1", "title": "Prices", "open": True, "turns": 0,
    "lastSequence": 0, "createdAt": "", "updatedAt": "",
}  # fmt: skip


def view(paused: bool = False, **floor: Any) -> ThreadView:
    state, more = {**STATE, "paused": paused}, {"nodeId": "talk", "turnCount": 0, "createdBy": ""}
    thread = {**ROW, **more, "state": state, "floor": {**FLOOR, **floor}}
    return convert(thread, ThreadView)


def waits(paused: bool = False, **floor: Any) -> str:
    return waiting_reason(view(paused, **floor))


def test_a_turn_counts_though_ctrl_c_comes_while_it_is_printed() -> None:
    class Interrupted:
        def tell(self, lines: list[TranscriptLine], rows: list[str] | None = None) -> None:
            raise KeyboardInterrupt

    session = CouncilSession(cast(Api, None), view(), prompted=False)
    session._screen = cast(PipeScreen, Interrupted())
    with pytest.raises(KeyboardInterrupt):
        session._take_event(event("conversation.exchanged", turn=turn()))
    assert session.turns == 1


def test_what_a_council_at_rest_waits_for() -> None:
    assert "/close ends it" in waits()
    assert "--decision TEXT" in waits(proposal=None)
    assert "/continue" in waits(stopped="tokens")
    assert "/resume" in waits(paused=True)
    assert "say something" in waits(phase="talk")


def test_a_decision_carries_votes_and_who_was_against_it() -> None:
    votes = {"host:ada": {"vote": "no"}, "host:bo": {"vote": "yes", "reason": "Now."}}
    assert decision_with_votes("Pilot.", votes) == {
        "text": "Pilot.",
        "votes": [{"by": "host:ada", "vote": "no"},
                  {"by": "host:bo", "vote": "yes", "reason": "Now."}],
        "dissent": [{"by": "host:ada", "text": "votes no"}],
    }  # fmt: skip


def test_who_is_next_and_what_is_being_said_is_below_what_is_settled() -> None:
    live = LiveRows(room())
    wakes = [{"wakeId": "6.0", "agentId": "host:ada", "task": "speak"}]
    live.follow(event("moot.participation.decided", wakes=wakes), 0.0)
    assert [click.unstyle(row) for row in live.rows(80, 0.5)] == ["   Ada is next"]
    assert click.unstyle(live.rows(80, 3.2)[0]) == "   Ada is next · thinking 3 s"
    live.heard("speech.started", {"speechId": "s", "speakerId": "host:ada"})
    live.heard("speech.delta", {"speechId": "s", "delta": "Not bef"})
    live.heard("speech.ended", {"speechId": "s"})
    assert [click.unstyle(row) for row in live.rows(80, 4.0)] == [" · Ada  Not bef"]
    live.follow(event("moot.participation.answered", wakeId="6.0", agentId="host:ada"), 5.0)
    assert live.rows(80, 5.0) == []
    assert live.quiet


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
KEYS = st.sampled_from([
    "turn", "initialTurn", "finalTurn", "outcome", "content", "from", "to", "members", "policy",
    "skipped", "wakes", "answer", "agentId", "wakeId", "task", "limit", "rounds", "reason",
    "participantId", "profile", "fromTurn", "by", "votes", "text", "meta", "role", "turnIndex",
])  # fmt: skip
ODD = st.recursive(VALUES, lambda inner: st.dictionaries(KEYS, inner, max_size=5), max_leaves=8)


@settings(deadline=None)
@given(
    st.sampled_from(sorted(payload.event_type for payload in RENDERERS)),
    st.dictionaries(KEYS, ODD, max_size=6),
)
def test_no_event_stops_the_telling(kind: str, payload: dict[str, Any]) -> None:
    TranscriptRenderer(room(), "th_1").tell(event(kind, **payload))
    live = LiveRows(room())
    live.follow(event(kind, **payload), 0.0)
    live.rows(40, 1.0)


def test_what_models_have_used_up_is_one_line_of_a_run() -> None:
    tokens = ModelCost(tokens=TokenCount(input=1200, output=300))
    used = RunMetrics(event_count=3, node_executions=1, model_calls=3, openwop_cost=tokens)
    assert format_cost(used) == "3 calls · 1 200 tokens in, 300 out"
    assert format_cost(replace(used, cost=0.0123, currency="USD")).endswith(" · 0.0123 USD")
    assert format_cost(RunMetrics(event_count=3, node_executions=1)) == ""


@pytest.mark.parametrize("name", ["eve", "Eve", "you", "moot", "user", "ADA", "\u0415v\u0435"])
def test_nobody_is_shown_under_a_name_that_is_anothers(name: str) -> None:
    found = CouncilRoster("user:eve")
    found.learn("host:ada", {"name": "Ada"})
    found.learn("host:rex", {"name": name})
    assert found.called("host:rex") == "host:rex"
    found.learn("host:rex", {"name": "Rexy"})
    assert (found.called("host:rex"), found.called("user:eve")) == ("Rexy", "you")


def test_a_command_to_be_copied_is_never_broken() -> None:
    command = "moot fork th_1@0 --set " + "x" * 90
    lines = lay_out_line(TranscriptLine("The roster is closed.", "   !", command=command), 40)
    assert lines == ["   !  The roster is closed.", command]


def test_that_a_proposal_was_not_adopted_is_said_once() -> None:
    rejected = {"text": "Not adopted: We ship.", "adopted": False}
    assert label_decision("Not adopted: We ship.", False) == ("Not adopted:", "We ship.")
    plan = "Not adopted: the plan."
    assert label_decision(plan, True) == ("Decision:", plan)
    fields = {**ROW, "archived": False, "unread": 0, "decision": rejected["text"]}
    row = convert({**fields, "adopted": False}, ThreadSummary)
    assert _last_text(row, room()) == "Not adopted: We ship."
    minutes = MinutesHead(thread_id="th_1", run_id="th_1", decision=read_decision(rejected))
    assert "## Proposal, not adopted\n\n> We ship.\n" in MarkdownMinutes(minutes).head()
    assert "<h2>Proposal, not adopted</h2><blockquote>We ship.<" in HtmlMinutes(minutes).head()
