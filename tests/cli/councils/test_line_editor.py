"""What people type at a council: budgets, times, commands, names; and any keys in any order."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from moot.cli.councils.line_editor import KEY_ACTIONS, KeyDecoder, LineEditor
from moot.cli.councils.prompt import (
    COMMANDS,
    PromptMember,
    PromptMistake,
    TypedChoice,
    TypedClose,
    TypedCommand,
    TypedControl,
    TypedTask,
    TypedTurn,
    complete_word,
    help_lines,
    parse_line,
)
from moot.cli.councils.screen import cursor_window, cut_row, lay_out_line, wrap_text
from moot.cli.councils.transcript_lines import TranscriptLine
from moot.cli.shared import quantities
from moot.core.text.quantities import format_duration

SEATS = [PromptMember("host:ada", "Ada", "skeptic"), PromptMember("host:bo", "Bob", "legal")]
TEXT = st.text(max_size=60)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("20k-tokens", {"tokens": 20_000}),
        ("1.5k-tokens", {"tokens": 1500}),
        ("2m-tokens", {"tokens": 2_000_000}),
        ("5-minutes", {"minutes": 5}),
        ("2-hours", {"minutes": 120}),
        ("2-usd", {"money": 2.0}),
        ("0.50-usd", {"money": 0.5}),
        ("30-turns", {"turns": 30}),
        ("30 turns", {"turns": 30}),
        ("20k-tokens, 5-minutes", {"tokens": 20_000, "minutes": 5}),
    ],
)
def test_budgets_as_people_write_them(given: str, found: dict[str, float]) -> None:
    assert quantities.parse_budget(given) == found


@pytest.mark.parametrize("given", ["", "many", "20k", "-5-turns", "0-turns", "1.5-turns", "5-cows"])
def test_what_is_no_budget_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        quantities.parse_budget(given)


@settings(deadline=None)
@given(st.integers(1, 10**9), st.sampled_from(["turns", "tokens", "minutes"]))
def test_every_number_of_something_is_a_budget(number: int, kind: str) -> None:
    assert quantities.parse_budget(f"{number}-{kind}") == {kind: number}


@settings(deadline=None)
@given(TEXT)
def test_any_text_is_a_budget_of_known_bounds_or_a_sentence(text: str) -> None:
    try:
        found = quantities.parse_budget(text)
    except ValueError as error:
        assert str(error)
    else:
        assert set(found) <= {"turns", "tokens", "minutes", "money"}
        assert all(amount > 0 for amount in found.values())


@settings(deadline=None)
@given(st.integers(1, 10**6), st.sampled_from(["s", "m", "h", "d", ""]))
def test_times_come_back_in_words_that_mean_the_same(number: int, unit: str) -> None:
    seconds = quantities.parse_seconds(f"{number}{unit}")
    amount, word = format_duration(seconds).split()
    sizes = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
    assert int(amount) * sizes[word.rstrip("s")] == seconds


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("", None),
        ("  What now? ", TypedTurn("What now?")),
        ("@ada why?", TypedTurn("why?", "host:ada")),
        ("@Bob, why?", TypedTurn("why?", "host:bo")),
        ("@legal: why?", TypedTurn("why?", "host:bo")),
        ("why, @ada?", TypedTurn("why, @ada?")),
        ("@ada", TypedTurn("@ada")),
        ("/mute bo 10m", TypedControl({"mute": {"targets": ["host:bo"], "seconds": 600}})),
        ("/mute @Ada", TypedControl({"mute": ["host:ada"]})),
        ("/unmute skeptic", TypedControl({"unmute": ["host:ada"]})),
        ("/pause", TypedControl({"pause": {"on": True}})),
        ("/resume", TypedControl({"pause": {"on": False}})),
        ("/prod host:ada", TypedControl({"prod": ["host:ada"]})),
        ("/invite dee", TypedControl({"invite": {"participant_id": "dee"}})),
        (
            "/invite @dee --role legal counsel",
            TypedControl(
                {"invite": {"participant_id": "dee", "profile": {"role": "legal counsel"}}}
            ),
        ),
        ("/rename Tea, or not", TypedControl({"rename": "Tea, or not"})),
        ("/ttl 10m", TypedControl({"ttl_seconds": 600})),
        ("/ttl off", TypedControl({"ttl_seconds": None})),
        ("/discussion on", TypedControl({"discussion": {"on": True}})),
        ("/auto off", TypedControl({"invited_auto": {"on": False}})),
        ("/done", TypedControl({"done": True})),
        ("/task bob count the cups", TypedTask("host:bo", "count the cups")),
        ("/undo", TypedCommand("undo")),
        ("/catchup", TypedCommand("catchup")),
        ("/continue", TypedControl({"continue": True})),
        ("/CONTINUE 3", TypedControl({"continue": {"rounds": 3}})),
        ("/admit", TypedChoice("admit")),
        ("/drop 31", TypedChoice("drop", "31")),
        ("/allow 31.0.1", TypedChoice("allow", "31.0.1")),
        ("/close", TypedClose()),
        ("/close --vote", TypedClose(None, True)),
        ('/close --decision "Pilot +8 %, review 1 March" --vote',
         TypedClose("Pilot +8 %, review 1 March", True)),
        ("/close --decision we don't", TypedClose("we don't")),
        ("/help", TypedCommand("help")),
        ("/quit", TypedCommand("quit")),
    ],
)  # fmt: skip
def test_lines_and_what_they_mean(line: str, meant: object) -> None:
    assert parse_line(line, SEATS) == meant


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/", "There is no command /"),
        ("/muet bo", "Did you mean /mute?"),
        ("/mute", "Say whom"),
        ("/mute eve", "There are Ada, Bob."),
        ("/mute adda", "Did you mean ada?"),
        ("/mute bo soon", "10m, 90s or 2h"),
        ("/invite", "Say whom"),
        ("/invite dee legal", "--role"),
        ("/rename", "Say what: /rename TITLE"),
        ("/ttl soon", "/ttl 10m"),
        ("/discussion maybe", "/discussion on"),
        ("/task bo", "/task NAME TEXT"),
        ("/task eve count", "There are Ada, Bob."),
        ("/continue x", "1 to 100"),
        ("/continue ²", "1 to 100"),
        ("/close now", "--decision"),
        ("/close --decision", "--decision"),
    ],
)
def test_mistakes_name_the_way_out(line: str, says: str) -> None:
    with pytest.raises(PromptMistake) as mistake:
        parse_line(line, SEATS)
    assert says in str(mistake.value)


@settings(deadline=None)
@given(TEXT)
def test_any_line_is_something_or_a_mistake(line: str) -> None:
    try:
        parse_line(line, SEATS)
        parse_line(f"/{line}", SEATS)
    except PromptMistake as mistake:
        assert str(mistake)


@settings(deadline=None)
@given(TEXT)
def test_what_tab_offers_begins_as_what_is_there(before: str) -> None:
    word = before.rpartition(" ")[2]
    for found in complete_word(before, SEATS):
        assert found.casefold().startswith(word.casefold())


def test_every_command_is_in_the_help() -> None:
    assert all(any(f"/{name}" in line for line in help_lines()) for name in COMMANDS)


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(st.sampled_from([*KEY_ACTIONS, "enter", "eof"]), st.characters()), max_size=60
    )
)
def test_whatever_keys_are_pressed_the_cursor_is_in_the_line(keys: list[str]) -> None:
    editor = LineEditor(lambda before: complete_word(before, SEATS))
    for key in keys:
        editor.take(key)
        assert 0 <= editor.at <= len(editor.text)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["C"]), max_size=40))
def test_what_is_typed_in_pieces_is_what_is_read(text: str) -> None:
    keys, editor = KeyDecoder(), LineEditor(lambda _: [])
    line = None
    for byte in text.encode() + b"\r":
        for key in keys.read(bytes([byte])):
            line = editor.take(key)
    assert line == "".join(mark for mark in text if mark.isprintable())


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_keys_or_nothing(data: bytes) -> None:
    whole, pieces = KeyDecoder().read(data), KeyDecoder()
    assert [key for byte in data for key in pieces.read(bytes([byte]))] == whole


PRINTED = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=200)


@settings(deadline=None)
@given(PRINTED, st.integers(20, 120))
def test_no_row_is_wider_than_the_screen_and_no_word_is_lost(text: str, columns: int) -> None:
    from rich.cells import cell_len

    rows = lay_out_line(TranscriptLine(text, " 1 Ada", "[1 s · demo · 5 tok]"), columns)
    assert all(cell_len(row) <= columns for row in rows)
    together = "".join(rows).replace(" ", "")
    assert text.replace(" ", "") in together
    assert cell_len(cut_row(text, columns - 1)) <= columns - 1
    assert "".join(wrap_text(text, 10)).replace(" ", "") == text.replace(" ", "")


@settings(deadline=None)
@given(PRINTED, st.integers(0, 200), st.integers(15, 100))
def test_the_cursor_of_a_long_line_is_always_on_the_screen(text: str, at: int, room: int) -> None:
    from rich.cells import cell_len

    shown, column = cursor_window(text, min(at, len(text)), room)
    assert shown in text
    assert cell_len(shown) <= room
    assert 0 <= column <= room
