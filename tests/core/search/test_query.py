"""Any text is a query; what it finds can be shown with its words in their places."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.core.search.indexed_text import IndexedText
from moot.core.search.query import (
    SNIPPET,
    Phrase,
    Query,
    SearchPlace,
    is_match,
    make_snippet,
    parse_query,
    score_text,
)
from moot.core.text.words import split_words

WORDS = st.text(alphabet='ab é東"*:-_. \n', max_size=60)


def said(text: str, by: str = "host:ada", kind: str = "turn") -> IndexedText:
    return IndexedText(kind=kind, text=text, by=by)  # type: ignore[arg-type]


def test_words_phrases_beginnings_and_filters_are_told_apart() -> None:
    query = parse_query('Raise "the  Price" chur* from:@Ada kind:turn,decision thread:th_9f3a')
    assert query == Query(
        phrases=(Phrase(("raise",)), Phrase(("the", "price")), Phrase(("chur",), prefix=True)),
        kinds=("turn", "decision"),
        senders=("ada",),
        places=(SearchPlace("th_9f3a"),),
    )


def test_a_thread_may_be_one_conversation_of_a_run() -> None:
    assert parse_query("thread:run_1~talk~2").places == (SearchPlace("run_1", "talk~2"),)
    assert parse_query("thread:run_1:talk:2").places == (SearchPlace("run_1", "talk~2"),)


def test_what_is_no_filter_is_a_word() -> None:
    assert parse_query("kind:nonsense").phrases == (Phrase(("kind", "nonsense")),)
    assert parse_query("from: http://example").phrases == (
        Phrase(("from",)),
        Phrase(("http", "example")),
    )
    assert parse_query('say "half a').phrases == (Phrase(("say",)), Phrase(("half", "a")))
    assert parse_query('  ***  () " ').empty


def test_only_so_many_words_go_on() -> None:
    found = parse_query("a* b* c* d* e* f*").phrases
    assert [phrase.prefix for phrase in found] == [True] * 4 + [False] * 2


def test_a_text_fits_when_all_of_it_is_there() -> None:
    text = said("We raise the price in March, unless churn grows.")
    for fitting in ("price raise", '"the price"', "PRIC*", "from:ada march", "from:host:ada"):
        assert is_match(parse_query(fitting), text), fitting
    for other in ("price june", '"price the"', "pric", "from:bo march", "kind:decision price"):
        assert not is_match(parse_query(other), text), other


def test_a_person_is_found_by_the_last_part_of_the_name_too() -> None:
    assert is_match(parse_query("from:eve"), said("x", by="user:eve"))
    assert is_match(parse_query("from:user"), said("x", by="user"))
    assert not is_match(parse_query("from:user"), said("x", by="user:eve"))


def test_the_snippet_is_where_most_of_the_words_are() -> None:
    text = "pilot once. " + "other things " * 60 + "the pilot and the price of the pilot"
    found = make_snippet(parse_query("pilot price"), text)
    assert len(found.text) <= SNIPPET
    assert [found.text[first:last] for first, last in found.matches] == ["pilot", "price", "pilot"]
    assert text[found.start : found.start + len(found.text)] == found.text


def test_short_texts_titles_and_more_of_it_are_better_matches() -> None:
    query = parse_query("pilot")
    short, long = said("the pilot"), said("the pilot " + "and so on " * 50)
    assert score_text(query, short) > score_text(query, long)
    assert score_text(query, said("pilot pilot pilot and on")) > score_text(
        query, said("pilot and so on now")
    )
    assert score_text(query, said("the pilot", kind="decision")) > score_text(query, short)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(WORDS)
def test_no_text_is_too_odd_to_be_asked_for(text: str) -> None:
    query = parse_query(text)
    for phrase in query.phrases:
        assert phrase.tokens and all(token for token in phrase.tokens)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.text(max_size=80))
def test_a_text_is_found_by_itself_as_a_phrase(text: str) -> None:
    tokens = [word.token for word in split_words(text)]
    asked = text.replace('"', " ")
    if [word.token for word in split_words(asked)] == tokens and tokens:
        assert is_match(parse_query(f'"{asked}"'), said(text))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(WORDS, WORDS)
def test_what_is_shown_of_a_text_is_in_it_and_has_the_words(text: str, asked: str) -> None:
    query = parse_query(asked)
    found = make_snippet(query, text)
    assert text[found.start :].startswith(found.text)
    for first, last in found.matches:
        assert (
            is_match(Query(phrases=query.phrases[:1]), said(found.text[first:last]))
            or len(query.phrases) > 1
        )
