"""Find the topic of a question, in words that fit into a sentence."""

import re
from functools import lru_cache

from msgspec import Struct

from moot.agents.models.demo.sentences import SENTENCES

LONGEST = 80

HELPERS = r"(?:should|shall|do|does|did|can|could|would|will|must|may|might|ought)"
PRONOUN = r"(?:we|i|you|they|one|it|he|she)"
DETERMINERS, STOPS = SENTENCES.determiners, SENTENCES.stops


class Topic(Struct, frozen=True):
    """``do``: rewrite the billing service; ``doing``: rewriting it; ``thing``: the service."""

    do: str
    doing: str
    thing: str
    theme: str


UNKNOWN = Topic("go ahead with this", "going ahead with this", "the question", "general")


@lru_cache(maxsize=256)
def topic_from_question(question: str) -> Topic:
    """Find the topic by simple rules, or return words that always fit."""
    line = _first_question(question)
    theme = _theme(line)
    action = _action(line)
    if not action:
        thing = _subject(line)
        if thing is None:
            return Topic(UNKNOWN.do, UNKNOWN.doing, UNKNOWN.thing, theme)
        return Topic(f"decide about {thing}", f"deciding about {thing}", thing, theme)
    verb, *rest = action
    return Topic(" ".join(action), " ".join([gerund(verb), *rest]), _thing(rest) or "this", theme)


def _first_question(text: str) -> str:
    sentences = re.split(r"(?<=[.?!])\s+|\n", text.strip())
    questions = [sentence for sentence in sentences if sentence.endswith("?")]
    chosen = questions[0] if questions else (sentences[0] if sentences else "")
    return " ".join(re.sub(r"[^\w\s'%&/+.-]", " ", chosen).split())[:200].strip(" .")


def _theme(line: str) -> str:
    words = set(line.lower().split())
    counts = {theme: len(words & theme_words) for theme, theme_words in SENTENCES.themes.items()}
    best = max(counts, key=lambda theme: counts[theme])
    return best if counts[best] else "general"


def _action(line: str) -> list[str]:
    """Return the words from the verb on: ``rewrite the billing service``."""
    match = re.match(rf"(?:\w+\s+)?{HELPERS}\s+(.*)", line, re.I)
    if match is None:
        return []
    words = match[1].split()
    if words and re.fullmatch(PRONOUN, words[0], re.I):
        words = words[1:]
        if not words or words[0].lower() not in SENTENCES.verbs:
            return []
    start = next((at for at, word in enumerate(words) if word.lower() in SENTENCES.verbs), None)
    if start is None:
        return []
    action = [word if at else word.lower() for at, word in enumerate(words[start:])]
    return _shortened([_without_possessive(word) for word in action])


def _without_possessive(word: str) -> str:
    """Replace a possessive by ``the``."""
    return "the" if word.lower() in ("its", "their", "our", "his", "her", "my", "your") else word


def _shortened(words: list[str]) -> list[str]:
    while len(" ".join(words)) > LONGEST:
        words = words[:-1]
    while len(words) > 1 and words[-1].lower() in (*STOPS, *DETERMINERS):
        words = words[:-1]
    return words


def _thing(words: list[str]) -> str:
    """Return the object of the verb, up to the next preposition."""
    object_words: list[str] = []
    for word in words:
        if word.lower() in STOPS:
            break
        object_words.append(word)
    if len(object_words) > 1 and object_words[0].lower() in ("a", "an"):
        object_words[0] = "the"
    return " ".join(object_words[:6])


def _subject(line: str) -> str | None:
    """Return the subject of a question without a verb: ``Which tea for us`` is about tea."""
    about = re.search(r"\babout\s+(.*)", line, re.I)
    if about and (thing := _thing([_without_possessive(word) for word in about[1].split()])):
        return thing
    match = re.match(r"(?:which|what|whose|how many|how much)\s+(.*)", line, re.I)
    words = match[1].split() if match else line.split()
    thing_text = _thing([_without_possessive(word) for word in words])
    helpers = {"is", "are", "do", "does", "would", "should", "can", *HELPERS.split("|")}
    nouns = [word for word in thing_text.split() if word.lower() not in helpers]
    if not nouns or nouns[0].lower() in ("you", "we", "i", "they", "it"):
        return None
    if nouns[0].lower() in DETERMINERS:
        return " ".join(nouns[:5]) if len(nouns) > 1 else None
    return "the " + " ".join(nouns[:4]) if match else None


def gerund(verb: str) -> str:
    """Return ``rewriting`` for ``rewrite``, ``shipping`` for ``ship``."""
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe")):
        return verb[:-1] + "ing"
    if len(verb) <= 4 and re.fullmatch(r"[^aeiou]*[aeiou][bdgklmnprt]", verb):
        return verb + verb[-1] + "ing"
    return verb + "ing"
