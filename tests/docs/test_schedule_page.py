"""What the page on schedules says is so."""

import re

import msgspec
import pytest

from moot.core.schedules.calendar import ALIASES
from moot.core.schedules.model import ScheduleDraft
from moot.core.schedules.parse import CHOICES, parse_schedule
from moot.core.schedules.words import timing_from_words
from moot.core.workflows.schema import TriggerDef
from moot.triggers.schedules.declarations import schedule_body_from_trigger
from tests.docs.test_pages import DOCS, blocks, rows

PAGE = DOCS / "schedules.md"
TABLE = rows(PAGE)
COMES_TO = re.compile(r"`\S+( \S+){4}`|\d+ s")
WORDS = [row for row in TABLE if len(row) == 2 and COMES_TO.fullmatch(row[1])]


@pytest.mark.parametrize("row", WORDS, ids=lambda row: row[0])
def test_words_come_to_what_the_page_says(row: list[str]) -> None:
    timing = timing_from_words(row[0].strip("`"), "UTC")
    said = f"`{timing.cron}`" if timing.cron else f"{(timing.every or 0) // 1000} s"
    assert said == row[1]


def test_every_field_is_on_the_page_with_its_default() -> None:
    fields = {field.encode_name: field for field in msgspec.structs.fields(ScheduleDraft)}
    listed = {row[0].strip("`"): row[1].strip("`") for row in TABLE if len(row) == 3}
    listed.pop("field")
    assert listed.keys() == fields.keys()
    for name, default in listed.items():
        if default not in ("", "none"):
            assert str(fields[name].default) in (default, default.capitalize()), name


def test_every_policy_and_short_name_is_on_the_page() -> None:
    named = {row[0].strip("`") for row in TABLE}
    assert {*CHOICES["overlap"], *CHOICES["catchUp"]} <= named
    assert all(f"`{alias}`" in PAGE.read_text() for alias in ALIASES)


def test_the_schedule_of_the_page_is_taken() -> None:
    body, trigger = blocks(PAGE, "json")
    assert parse_schedule(body.encode(), "sch_1", 0).words == "weekday 08:30 Europe/Berlin"
    declared = msgspec.json.decode(trigger, type=TriggerDef)
    parse_schedule(schedule_body_from_trigger("weekly-pipeline", declared), "sch_trigger", 0)
