"""Words as a search sees them."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.core.text.words import LONGEST_WORD, index_text, search_tokens, split_words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Raise prices, by 8 %!", ["raise", "prices", "by", "8"]),
        ("snake_case and foo-bar", ["snake", "case", "and", "foo", "bar"]),
        ("Zürich, ÉTÉ, naïve", ["zurich", "ete", "naive"]),
        ("e\u0301te\u0301", ["ete"]),
        ("Straße", ["strasse"]),
        ("ΣΊΣΥΦΟΣ σίσυφος", ["σισυφοσ", "σισυφοσ"]),
        ("東京へ行く", ["東", "京", "へ", "行", "く"]),
        ("Жизнь2 да", ["жизнь2", "да"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("co\xadoperate", ["cooperate"]),
        ("²½", ["212"]),
        ("\u0e33", ["\u0e4d", "\u0e32"]),
        ("\uff76\u30ab", ["\u30ab", "\u30ab"]),
        ("a\u3220", ["a", "\u4e00"]),
        ("…—“”", []),
        ("", []),
    ],
)
def test_a_text_has_these_words(text: str, found: list[str]) -> None:
    assert search_tokens(text) == found


def test_a_very_long_word_counts_as_far_as_it_is_looked_at() -> None:
    assert search_tokens("a" * 500) == ["a" * LONGEST_WORD]
    assert search_tokens("é" * 500) == ["e" * LONGEST_WORD]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.text())
def test_every_word_is_found_again_by_itself_and_stands_where_it_says(text: str) -> None:
    assert search_tokens(text) == [word.token for word in split_words(text)]
    for word in split_words(text):
        assert 0 <= word.start < word.end <= len(text)
        assert word.token in search_tokens(text[word.start : word.end])
        assert search_tokens(word.token) == [word.token] or len(word.token) == LONGEST_WORD


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.text())
def test_an_index_that_parts_ascii_only_sees_the_same_words(text: str) -> None:
    parted = re.findall("(?:[0-9A-Za-z]|[^\x00-\x7f])+", index_text(text))
    assert [word.lower() if word.isascii() else word for word in parted] == search_tokens(text)
