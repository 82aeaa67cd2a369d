"""Placeholders: ``"Hello {customer}"`` becomes a port value of the protocol."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from moot.core.workflows import expressions
from moot.core.workflows.yaml.source import Item, hint

NAME = re.compile(r"[A-Za-z_][\w-]*")
_PATH = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_PIECES = re.compile(r"(\{\{|\}\}|\{[^{}]*\})")
_USED = re.compile(r"\bvariables\.([A-Za-z_]\w*)")
#: CEL keeps these words to itself; as field names they must be quoted
_KEYWORDS = frozenset({"in", "as", "null", "true", "false"})


#: the words for a type -> the protocol's, and "any" for what the protocol has no word for
TYPES = {
    "str": "string", "string": "string",
    "number": "number", "int": "number", "float": "number",
    "bool": "boolean", "boolean": "boolean",
    "object": "object", "dict": "object",
    "array": "array", "list": "array",
    "any": "any",
}  # fmt: skip


class Scope(Struct):
    """What may be named at one place of the file."""

    #: variable -> its type word, or "any"
    variables: dict[str, str]
    #: channel -> its reducer
    channels: dict[str, str]
    steps: dict[str, None]
    sensitive: frozenset[str] = frozenset()

    def fork(self) -> "Scope":
        """For a branch: it sees what came before it, not what happens beside it."""
        return Scope(dict(self.variables), self.channels, dict(self.steps), self.sensitive)

    def absorb(self, branch: "Scope") -> None:
        self.variables.update(branch.variables)
        self.steps.update(branch.steps)

    def check_variable(self, item: Item, name: str) -> str:
        if name not in self.variables:
            raise item.error(f"there is no variable '{name}' here{hint(name, self.variables)}")
        return name


def port(item: Item, scope: Scope) -> dict[str, Any]:
    """The port value for anything written in the file."""
    names = mentions(item)
    if not names:
        return {"type": "static", "value": _unescaped(item.plain())}
    for name in names:
        _check_known(item, name, scope)
    if _stands_alone(item):
        return _itself(names[0], scope)
    source = _cel(item, scope)
    check_expression(item, source)
    return {"type": "expression", "expression": source}


def mentions(item: Item) -> list[str]:
    """The paths named in placeholders, anywhere inside the value."""
    if isinstance(item.value, dict):
        return [name for each in item.value.values() for name in mentions(each)]
    if isinstance(item.value, list):
        return [name for each in item.value for name in mentions(each)]
    if not isinstance(item.value, str):
        return []
    return [_path(item, piece) for piece in _PIECES.split(item.value) if _is_placeholder(piece)]


def reveals(item: Item, scope: Scope) -> bool:
    """Whether a sensitive variable flows into the value."""
    return any(path.split(".", 1)[0] in scope.sensitive for path in mentions(item))


def check_expression(item: Item, source: str) -> None:
    try:
        expressions.check(source)
    except expressions.ExpressionError as error:
        braces = _PIECES.search(item.raw)
        say = " — in an expression write variables.name, without braces" if braces else ""
        raise item.error(f"the expression cannot be read: {_short(str(error))}{say}") from None


def check_condition(item: Item, scope: Scope) -> str:
    """An expression that stands for itself, with the variables it names known."""
    source = item.text("the condition")
    check_expression(item, source)
    for name in _USED.findall(source):
        scope.check_variable(item, name)
    return source


def name_in(item: Item, scope: Scope) -> str:
    """The variable that is named, bare or in braces."""
    text = item.text("the name of a variable")
    bare = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    return scope.check_variable(item, bare)


def _stands_alone(item: Item) -> bool:
    """The text is one placeholder and nothing else: the value itself is meant."""
    if not isinstance(item.value, str):
        return False
    pieces = [piece for piece in _PIECES.split(item.value) if piece]
    return len(pieces) == 1 and _is_placeholder(pieces[0])


def _is_placeholder(piece: str) -> bool:
    return piece.startswith("{") and piece not in ("{{", "}}") and piece.endswith("}")


def _path(item: Item, piece: str) -> str:
    path = piece[1:-1].strip()
    if not _PATH.fullmatch(path):
        raise item.error(f"'{piece}' is not a name in braces; write '{{{{' and '}}}}' for braces")
    return path


def _check_known(item: Item, path: str, scope: Scope) -> None:
    root = path.split(".", 1)[0]
    known = [*scope.variables, *scope.channels, *scope.steps]
    if root not in known:
        raise item.error(f"'{{{path}}}' names nothing known here{hint(root, known)}")


def _itself(path: str, scope: Scope) -> dict[str, Any]:
    root, *rest = path.split(".")
    if root in scope.variables and not rest:
        return {"type": "variable", "variableName": root}
    if root not in scope.variables and root not in scope.channels and len(rest) == 1:
        return {"type": "connection", "nodeId": root, "outputKey": rest[0]}
    return {"type": "expression", "expression": _reference(path, scope)}


def _reference(path: str, scope: Scope) -> str:
    root = path.split(".", 1)[0]
    base = "nodes"
    if root in scope.variables:
        base = "variables"
    elif root in scope.channels:
        base = "channels"
    return base + "".join(_field(word) for word in path.split("."))


def _field(word: str) -> str:
    if word.isdigit():
        return f"[{word}]"
    if _IDENTIFIER.fullmatch(word) and word not in _KEYWORDS:
        return f".{word}"
    return f"[{_literal(word)}]"


def _literal(value: Any) -> str:
    """A JSON text is a CEL literal."""
    return msgspec.json.encode(value).decode()


def _cel(item: Item, scope: Scope) -> str:
    if isinstance(item.value, dict):
        pairs = (f"{_literal(key)}: {_cel(each, scope)}" for key, each in item.value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(item.value, list):
        return "[" + ", ".join(_cel(each, scope) for each in item.value) + "]"
    if not isinstance(item.value, str):
        return _literal(item.value)
    if _stands_alone(item):
        return _reference(mentions(item)[0], scope)
    pieces = [piece for piece in _PIECES.split(item.value) if piece]
    return " + ".join(_piece(item, piece, scope) for piece in pieces) or '""'


def _piece(item: Item, piece: str, scope: Scope) -> str:
    if not _is_placeholder(piece):
        return _literal(_unescaped(piece))
    path = _path(item, piece)
    type_ = scope.variables.get(path, "any")
    if type_ in ("object", "array"):
        raise item.error(f"'{piece}' is an {type_} and cannot stand inside a text")
    return _as_text(_reference(path, scope), type_)


def _as_text(value: str, type_: str) -> str:
    """CEL's string() knows neither null nor booleans."""
    if type_ in ("string", "number"):
        return f"string({value})"
    boolean = f"type({value}) == bool ? ({value} ? 'true' : 'false')"
    return f"({value} == null ? '' : {boolean} : string({value}))"


def _unescaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("{{", "{").replace("}}", "}")
    if isinstance(value, dict):
        return {key: _unescaped(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_unescaped(each) for each in value]
    return value


def _short(message: str) -> str:
    return message if len(message) <= 200 else message[:199] + "…"
