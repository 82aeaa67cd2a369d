"""Turn placeholders such as ``"Hello {customer}"`` into port values."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from moot.core.workflows import expressions
from moot.core.workflows.yaml.source import YamlItem, spelling_hint

NAME = re.compile(r"[A-Za-z_][\w-]*")
_PATH = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_PIECES = re.compile(r"(\{\{|\}\}|\{[^{}]*\})")
_USED = re.compile(r"\bvariables\.([A-Za-z_]\w*)")
#: reserved words of CEL; as field names they must be quoted
_KEYWORDS = frozenset({"in", "as", "null", "true", "false"})


#: type word -> the protocol's type, or "any", which the protocol does not have
TYPES = {
    "str": "string", "string": "string",
    "number": "number", "int": "number", "float": "number",
    "bool": "boolean", "boolean": "boolean",
    "object": "object", "dict": "object",
    "array": "array", "list": "array",
    "any": "any",
}  # fmt: skip


class Scope(Struct):
    """The names that are defined at one place of the file."""

    #: variable -> its type word, or "any"
    variables: dict[str, str]
    #: channel -> its reducer
    channels: dict[str, str]
    steps: dict[str, None]
    sensitive: frozenset[str] = frozenset()

    def fork(self) -> "Scope":
        """Return a copy for a branch, which does not see the other branches."""
        return Scope(dict(self.variables), self.channels, dict(self.steps), self.sensitive)

    def absorb(self, branch: "Scope") -> None:
        self.variables.update(branch.variables)
        self.steps.update(branch.steps)

    def check_variable(self, item: YamlItem, name: str) -> str:
        if name not in self.variables:
            hint = spelling_hint(name, self.variables)
            raise item.error(f"there is no variable '{name}' here{hint}")
        return name


def port_value(item: YamlItem, scope: Scope) -> dict[str, object]:
    """Return the port value of any value in the file."""
    names = placeholder_paths(item)
    if not names:
        return {"type": "static", "value": _unescape(item.plain())}
    for name in names:
        _check_known(item, name, scope)
    if _is_single_placeholder(item):
        return _referenced_value(names[0], scope)
    source = _cel(item, scope)
    check_expression(item, source)
    return {"type": "expression", "expression": source}


def placeholder_paths(item: YamlItem) -> list[str]:
    """Return the paths of all placeholders inside the value."""
    if isinstance(item.value, dict):
        return [name for each in item.value.values() for name in placeholder_paths(each)]
    if isinstance(item.value, list):
        return [name for each in item.value for name in placeholder_paths(each)]
    if not isinstance(item.value, str):
        return []
    return [_path(item, piece) for piece in _PIECES.split(item.value) if _is_placeholder(piece)]


def is_sensitive(item: YamlItem, scope: Scope) -> bool:
    """Return whether a sensitive variable flows into the value."""
    return any(path.split(".", 1)[0] in scope.sensitive for path in placeholder_paths(item))


def check_expression(item: YamlItem, source: str) -> None:
    try:
        expressions.check_expression(source)
    except expressions.ExpressionError as error:
        braces = _PIECES.search(item.raw)
        advice = " — in an expression write variables.name, without braces" if braces else ""
        raise item.error(f"the expression cannot be read: {_short(str(error))}{advice}") from None


def check_condition(item: YamlItem, scope: Scope) -> str:
    """Return the expression after checking it and the variables in it."""
    source = item.text("the condition")
    check_expression(item, source)
    for name in _USED.findall(source):
        scope.check_variable(item, name)
    return source


def variable_name(item: YamlItem, scope: Scope) -> str:
    """Return the name of a known variable, written bare or in braces."""
    text = item.text("the name of a variable")
    bare = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    return scope.check_variable(item, bare)


def _is_single_placeholder(item: YamlItem) -> bool:
    """Return whether the text is one placeholder and nothing else."""
    if not isinstance(item.value, str):
        return False
    pieces = [piece for piece in _PIECES.split(item.value) if piece]
    return len(pieces) == 1 and _is_placeholder(pieces[0])


def _is_placeholder(piece: str) -> bool:
    return piece.startswith("{") and piece not in ("{{", "}}") and piece.endswith("}")


def _path(item: YamlItem, piece: str) -> str:
    path = piece[1:-1].strip()
    if not _PATH.fullmatch(path):
        raise item.error(f"'{piece}' is not a name in braces; write '{{{{' and '}}}}' for braces")
    return path


def _check_known(item: YamlItem, path: str, scope: Scope) -> None:
    root = path.split(".", 1)[0]
    names = [*scope.variables, *scope.channels, *scope.steps]
    if root not in names:
        raise item.error(f"'{{{path}}}' names nothing known here{spelling_hint(root, names)}")


def _referenced_value(path: str, scope: Scope) -> dict[str, object]:
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
    """Return a JSON text, which is also a CEL literal."""
    return msgspec.json.encode(value).decode()


def _cel(item: YamlItem, scope: Scope) -> str:
    if isinstance(item.value, dict):
        pairs = (f"{_literal(key)}: {_cel(each, scope)}" for key, each in item.value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(item.value, list):
        return "[" + ", ".join(_cel(each, scope) for each in item.value) + "]"
    if not isinstance(item.value, str):
        return _literal(item.value)
    if _is_single_placeholder(item):
        return _reference(placeholder_paths(item)[0], scope)
    pieces = [piece for piece in _PIECES.split(item.value) if piece]
    return " + ".join(_piece(item, piece, scope) for piece in pieces) or '""'


def _piece(item: YamlItem, piece: str, scope: Scope) -> str:
    if not _is_placeholder(piece):
        return _literal(_unescape(piece))
    path = _path(item, piece)
    type_ = scope.variables.get(path, "any")
    if type_ in ("object", "array"):
        raise item.error(f"'{piece}' is an {type_} and cannot stand inside a text")
    return _as_text(_reference(path, scope), type_)


def _as_text(value: str, type_: str) -> str:
    """Convert to text; CEL's string() accepts neither null nor booleans."""
    if type_ in ("string", "number"):
        return f"string({value})"
    boolean = f"type({value}) == bool ? ({value} ? 'true' : 'false')"
    return f"({value} == null ? '' : {boolean} : string({value}))"


def _unescape(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("{{", "{").replace("}}", "}")
    if isinstance(value, dict):
        return {key: _unescape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_unescape(each) for each in value]
    return value


def _short(message: str) -> str:
    return message if len(message) <= 200 else message[:199] + "…"
