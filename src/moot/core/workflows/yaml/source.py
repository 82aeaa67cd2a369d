"""Read YAML as plain data with line numbers. Tags and large aliases are refused."""

import math
import re
from collections.abc import Iterable
from typing import Any

import yaml
from msgspec import Struct

from moot.core.text.nearest import nearest_word

MAX_BYTES = 1 << 20
MAX_ALIASES = 100
MAX_DEPTH = 40
#: values after all aliases are followed
MAX_VALUES = 100_000

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WHOLE = re.compile(r"[-+]?\d{1,18}")
_NUMBER = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d{1,3})?")
#: YAML 1.2: a plain ``no`` or ``on`` is a text, not a boolean
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


class FlowFileError(ValueError):
    """A mistake in a workflow file, with its place."""

    def __init__(self, filename: str, line: int, message: str) -> None:
        super().__init__(f"{filename}:{line}: {message}")
        self.filename = filename
        self.line = line
        self.message = message


class YamlItem(Struct, frozen=True, kw_only=True):
    """A value of the file: a scalar, a list of items, or items by key."""

    value: Any
    file: str
    line: int
    #: the source text of a scalar
    raw: str = ""
    #: the line of each key of a mapping
    lines: dict[str, int] = {}
    size: int = 1

    def error(self, message: str) -> FlowFileError:
        return FlowFileError(self.file, self.line, message)

    def error_at(self, key: str, message: str) -> FlowFileError:
        """Return an error about one key of this mapping."""
        return FlowFileError(self.file, self.lines.get(key, self.line), message)

    def text(self, place: str) -> str:
        if not isinstance(self.value, str) or not self.value:
            raise self.error(f"{place} must be a text")
        return self.value

    def flag(self, place: str) -> bool:
        if not isinstance(self.value, bool):
            raise self.error(f"{place} must be true or false")
        return self.value

    def whole(self, place: str, least: int = 0) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < least:
            raise self.error(f"{place} must be a whole number from {least}")
        return self.value

    def sequence(self, place: str) -> list["YamlItem"]:
        if not isinstance(self.value, list):
            raise self.error(f"{place} must be a list")
        return self.value

    def mapping(self, place: str, known: Iterable[str] | None = None) -> dict[str, "YamlItem"]:
        """Return the entries. With ``known``, any other key is an error."""
        if not isinstance(self.value, dict):
            raise self.error(f"{place} must be a mapping of names to values")
        words = self.value if known is None else tuple(known)
        for key in self.value:
            if key not in words:
                hint = spelling_hint(key, words)
                raise self.error_at(key, f"unknown word '{key}' in {place}{hint}")
        return self.value

    def one_of(self, place: str, words: Iterable[str]) -> str:
        known = tuple(words)
        if self.value not in known:
            raise self.error(f"'{self.raw}' is not {place}{spelling_hint(self.raw, known)}")
        return str(self.value)

    def plain(self) -> Any:
        """Return the bare JSON value."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value


def spelling_hint(word: str, known: Iterable[str]) -> str:
    """Return the word that the author most likely meant, or else the choices."""
    words = list(known)
    suggestion = nearest_word(word, words)
    if suggestion:
        return f" — did you mean '{suggestion}'?"
    return f" — use one of {', '.join(words)}" if 0 < len(words) <= 20 else ""


def read_yaml(text: str, filename: str) -> YamlItem:
    """Return the one document of the file. Raise FlowFileError."""
    if len(text.encode()) > MAX_BYTES:
        raise FlowFileError(filename, 1, f"the file is larger than {MAX_BYTES} bytes")
    builder = _ItemBuilder(filename)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, filename) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise FlowFileError(filename, line, f"this is not YAML: {error.reason}") from None
    if builder.root is None:
        raise FlowFileError(filename, 1, "the file is empty — begin with 'workflow: my-flow'")
    return builder.root


def _syntax_error(error: yaml.MarkedYAMLError, filename: str) -> FlowFileError:
    """Report an unclosed value at the line where it opens."""
    unclosed = "end of stream" in str(error.problem)
    mark = (error.context_mark if unclosed else None) or error.problem_mark
    reason = ", ".join(filter(None, (error.context, error.problem)))
    return FlowFileError(filename, mark.line + 1 if mark else 1, f"this is not YAML: {reason}")


class _OpenCollection:
    """A list or mapping whose end has not been read."""

    def __init__(self, event: yaml.CollectionStartEvent) -> None:
        self.event = event
        self.items: list[YamlItem] = []


class _ItemBuilder:
    """Builds items from the parser's events, iteratively: nesting cannot exhaust the stack."""

    def __init__(self, filename: str) -> None:
        self.file = filename
        self.root: YamlItem | None = None
        self.open: list[_OpenCollection] = []
        self.anchors: dict[str, YamlItem] = {}
        self.aliases = 0
        self.values = 0

    def take(self, event: yaml.Event) -> None:
        if getattr(event, "tag", None) is not None:
            raise self._error(event, "tags (words that begin with '!') are not allowed")
        if isinstance(event, yaml.AliasEvent):
            self._place(self._alias(event), event)
        elif isinstance(event, yaml.ScalarEvent):
            self._anchor(event, self._scalar(event))
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(self.open) >= MAX_DEPTH:
                raise self._error(event, f"values are nested more than {MAX_DEPTH} deep")
            self.open.append(_OpenCollection(event))
        elif isinstance(event, yaml.CollectionEndEvent):
            collection = self.open.pop()
            self._anchor(collection.event, self._collection(collection))
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise self._error(event, "a file holds one workflow; '---' begins another")

    def _error(self, event: yaml.Event, message: str) -> FlowFileError:
        return FlowFileError(self.file, _line(event), message)

    def _alias(self, event: yaml.AliasEvent) -> YamlItem:
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            raise self._error(event, f"more than {MAX_ALIASES} aliases ('*name') are not allowed")
        item = self.anchors.get(event.anchor or "")
        if item is None:
            raise self._error(event, f"'*{event.anchor}' stands for nothing defined before it")
        return item

    def _anchor(self, event: Any, item: YamlItem) -> None:
        if event.anchor is not None:
            self.anchors[event.anchor] = item
        self._place(item, event)

    def _place(self, item: YamlItem, event: yaml.Event) -> None:
        self.values += item.size if isinstance(event, yaml.AliasEvent) else 1
        if self.values > MAX_VALUES or item.size > MAX_VALUES:
            raise self._error(event, f"the file has more than {MAX_VALUES} values")
        if self.open:
            self.open[-1].items.append(item)
        else:
            self.root = item

    def _scalar(self, event: yaml.ScalarEvent) -> YamlItem:
        quoted = not event.implicit[0]
        value = event.value if quoted else _plain_scalar(event.value)
        return YamlItem(value=value, raw=event.value, file=self.file, line=_line(event))

    def _collection(self, collection: _OpenCollection) -> YamlItem:
        line = _line(collection.event)
        size = 1 + sum(item.size for item in collection.items)
        if isinstance(collection.event, yaml.SequenceStartEvent):
            return YamlItem(value=collection.items, file=self.file, line=line, size=size)
        pairs: dict[str, YamlItem] = {}
        lines: dict[str, int] = {}
        for key, value in zip(collection.items[::2], collection.items[1::2], strict=True):
            if isinstance(key.value, (dict, list)):
                raise key.error("a key must be a word")
            if key.raw in pairs:
                raise key.error(f"'{key.raw}' stands here twice")
            pairs[key.raw], lines[key.raw] = value, key.line
        return YamlItem(value=pairs, file=self.file, line=line, lines=lines, size=size)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _plain_scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text
