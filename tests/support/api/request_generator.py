"""Requests made from the OpenAPI document, then damaged at random. The seed decides everything."""

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

STRINGS = [
    "", " ", "a", "0", "-1", "null", "true", "nobody", "ü", "雪", "\u0000", "a\u0000b", "\u202e",
    "\ufeff", "'; DROP TABLE runs; --", "../../etc/passwd", "${7*7}", "{{7*7}}", "%s%n",
    "\r\nX-Injected: 1",
    "a" * 300, "x" * 5000, "\U0001f600" * 50, "__proto__", "constructor", ":", "a:pause", "*",
]  # fmt: skip
NUMBERS: list[Any] = [
    0, -1, 1, 2**31, -(2**31), 2**53, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400, 0.5, -0.0, 1e308,
    5e-324,
]  # fmt: skip
#: written as they are: JSON has no such values
LITERALS = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "01",
    "+1",
    "0x1",
    ".5",
    "1.",
    "\\",
    "'a'",
    "tru",
]
SEGMENTS = [
    "", ".", "..", "%2e%2e", "%00", "a%00b", "%2F", "%252F", "%ff", "%c3%28", "%", "%zz", "%u0041",
    "nobody", "x" * 4000, "%F0%9F%98%80", "a b", "~", ":", "a:b:c", ":pause", "a;b=c", "a?b", "*",
    "'",
]  # fmt: skip
METHODS = [
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "PROPFIND",
    "BREW",
    "get",
]
MEDIA = [
    "application/json", "text/plain", "application/xml", "multipart/form-data; boundary=x", "",
    "x/y; z", "application/json; charset=utf-16",
]  # fmt: skip


#: larger bodies are cut: they are refused unread, and have tests of their own
LARGEST = 500_000


class Call(NamedTuple):
    """One request, as bytes: any HTTP client would tidy it up."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    #: whether the key belongs to another tenant than the ids
    foreign: bool

    def encoded(self) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/1.1", "Host: fuzz"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        chunked = ("Transfer-Encoding", "chunked") in self.headers
        if not chunked and (self.body or self.method in ("POST", "PUT", "PATCH", "DELETE")):
            lines.append(f"Content-Length: {len(self.body)}")
        head = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"
        if not chunked:
            return head + self.body
        piece = b"%x;ext=1\r\n%b\r\n" % (len(self.body), self.body) if self.body else b""
        return head + piece + b"0\r\n\r\n"


class Schemas:
    """Values that fit a schema of the document, more or less."""

    def __init__(self, document: dict[str, Any], dice: random.Random) -> None:
        self._named = document["components"]["schemas"]
        self._dice = dice

    def value(self, schema: dict[str, Any], depth: int = 0) -> Any:
        schema = self._resolved(schema)
        dice = self._dice
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return dice.choice(schema["enum"])
        if "anyOf" in schema:
            return self.value(dice.choice(schema["anyOf"]), depth)
        kinds: dict[Any, Callable[[], Any]] = {
            "object": lambda: self._object(schema, depth),
            "array": lambda: self._array(schema, depth),
            "string": lambda: dice.choice(["a", "conformance-noop", *STRINGS]),
            "integer": lambda: dice.randint(0, 100),
            "number": lambda: dice.choice([dice.random(), dice.randint(-5, 5)]),
            "boolean": lambda: dice.random() < 0.5,
            "null": lambda: None,
        }
        return kinds.get(schema.get("type"), lambda: anything(dice, depth))()

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            schema = self._named[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", [])
        found = {}
        for name, inner in schema.get("properties", {}).items():
            if name in required or (depth < 4 and self._dice.random() < 0.4):
                found[name] = self.value(inner, depth + 1)
        if not schema.get("properties"):
            found["k"] = anything(self._dice, depth + 1)
        return found

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        inner = schema.get("items")
        inner = inner if isinstance(inner, dict) else {}
        most = 0 if depth > 4 else 3
        return [self.value(inner, depth + 1) for _ in range(self._dice.randint(0, most))]


def anything(dice: random.Random, depth: int = 0) -> Any:
    kind = dice.randrange(6 if depth < 4 else 4)
    if kind == 0:
        return dice.choice(NUMBERS)
    if kind == 1:
        return dice.choice(STRINGS)
    if kind in (2, 3):
        return dice.choice([None, True, False])
    if kind == 4:
        return [anything(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    return {dice.choice(STRINGS)[:40]: anything(dice, depth + 1) for _ in range(dice.randint(0, 3))}


class Generator:
    """``samples`` are good bodies by path, ``ids`` values for path parameters that exist."""

    def __init__(
        self,
        document: dict[str, Any],
        keys: dict[str, str],
        ids: dict[str, list[str]],
        samples: dict[str, list[Any]],
        seed: int,
    ) -> None:
        self._dice = random.Random(seed)
        self._schemas = Schemas(document, self._dice)
        self._keys, self._ids, self._samples = keys, ids, samples
        self._operations = [
            (path, method.upper(), operation)
            for path, verbs in document["paths"].items()
            for method, operation in verbs.items()
        ]

    def calls(self, number: int) -> Iterator[Call]:
        for _ in range(number):
            yield self._call()

    def _chance(self, one_in: int) -> bool:
        return self._dice.randrange(one_in) == 0

    def _call(self) -> Call:
        path, method, operation = self._dice.choice(self._operations)
        if self._chance(25):
            method = self._dice.choice(METHODS)
        target = self._target(path, operation)
        body = (
            self._body(path, operation)
            if method not in ("GET", "HEAD") or self._chance(20)
            else b""
        )
        headers, foreign = self._headers(body)
        return Call(method, target, headers, body, foreign)

    # -- where -------------------------------------------------------------------------------

    def _target(self, path: str, operation: dict[str, Any]) -> str:
        found = re.sub(r"\{(\w+)\}", lambda name: self._segment(name[1]), path)
        if self._chance(30):
            found = self._dice.choice(
                [found + "/", "/" + found, found.upper(), found.replace("/", "//", 2),
                 found + "%20", found + "#x", found[:-1], "*", "http://x" + found,
                 "/v1/" + self._dice.choice(SEGMENTS).replace(" ", "%20")]
            )  # fmt: skip
        query = self._query(operation)
        return f"{found}?{query}" if query else found

    def _segment(self, name: str) -> str:
        if self._chance(3):
            return self._dice.choice(SEGMENTS).replace(" ", "%20")
        return quote(self._dice.choice(self._ids.get(name, ["nobody"])), safe="")

    def _query(self, operation: dict[str, Any]) -> str:
        known = [entry for entry in operation["parameters"] if entry["in"] == "query"]
        asked = [entry for entry in known if self._chance(2)]
        pairs = [(entry["name"], self._argument(entry["schema"])) for entry in asked]
        if self._chance(10):
            pairs.append((self._dice.choice(STRINGS)[:50], self._dice.choice(STRINGS)[:200]))
        if pairs and self._chance(10):
            pairs.append(pairs[0])
        shown = "&".join(f"{quote(name)}={value}" for name, value in pairs)
        return (
            shown + self._dice.choice(["&", "&&=", "%", "&a", "&=&", "%00"])
            if self._chance(15)
            else shown
        )

    def _argument(self, schema: dict[str, Any]) -> str:
        dice = self._dice
        if self._chance(2):
            wild = [
                *STRINGS,
                *map(str, NUMBERS[:9]),
                "9" * 5000,
                "1.5",
                "1e3",
                "²",
                "٣",
                "--1",
                "+1",
            ]
            return quote(dice.choice(wild))
        if schema.get("type") == "integer":
            low, high = schema.get("minimum", 0), schema.get("maximum", 100)
            return str(
                dice.choice([low, high, low - 1, high + 1, dice.randint(low, max(low, high))])
            )
        return quote(
            dice.choice(["updates", "debug", "values,debug", "completed", "run_", "a,b", "x"])
        )

    # -- who, and how ------------------------------------------------------------------------

    def _headers(self, body: bytes) -> tuple[list[tuple[str, str]], bool]:
        dice = self._dice
        foreign = self._chance(6)
        key = self._keys["foreign" if foreign else "own"]
        found = [("Authorization", f"Bearer {key}")]
        if self._chance(12):
            odd = [
                "Bearer",
                "Bearer x",
                f"Basic {key}",
                key,
                "",
                "Bearer " + "x" * 5000,
                "bearer \xff",
            ]
            found = [("Authorization", dice.choice(odd))] if self._chance(2) else []
        if body and not self._chance(8):
            found.append(("Content-Type", dice.choice(MEDIA)))
        if self._chance(6):
            found.append(
                ("Idempotency-Key", dice.choice(["k1", "k2", "k3", "x" * 300, "", "ü", "a\tb"]))
            )
        if body and self._chance(25):
            found.append(("Transfer-Encoding", "chunked"))
        for name, values in ODD_HEADERS.items():
            if self._chance(20):
                found.append((name, dice.choice(values)))
        return found, foreign

    # -- what --------------------------------------------------------------------------------

    def _body(self, path: str, operation: dict[str, Any]) -> bytes:
        dice = self._dice
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        if path in self._samples and not self._chance(3):
            value = json.loads(json.dumps(dice.choice(self._samples[path])))
        else:
            value = self._schemas.value(content.get("schema", {}))
        for _ in range(dice.choice([0, 1, 1, 2, 3])):
            value = self._damaged(value)
        encoded = json.dumps(value, ensure_ascii=self._chance(2)).encode("utf-8", "surrogatepass")
        return (self._broken(encoded) if self._chance(4) else encoded)[:LARGEST]

    def _damaged(self, value: Any) -> Any:
        """One change somewhere inside."""
        dice = self._dice
        if isinstance(value, dict) and value and not self._chance(6):
            name = dice.choice(list(value))
            act = dice.randrange(5)
            if act == 0:
                del value[name]
            elif act == 1:
                value[dice.choice([*STRINGS, "unknown"])[:60]] = anything(dice)
            elif act == 2:
                value[name.upper() if self._chance(2) else name + "x"] = value.pop(name)
            else:
                value[name] = self._damaged(value[name])
            return value
        if isinstance(value, list) and value and not self._chance(4):
            place = dice.randrange(len(value))
            value[place] = self._damaged(value[place])
            return value * dice.choice([1, 1, 2, 60]) if len(value) < 5 else value
        return anything(dice)

    def _broken(self, body: bytes) -> bytes:
        """No longer JSON, or only just."""
        dice = self._dice
        place = dice.randint(0, len(body))
        match dice.randrange(9):
            case 0:
                return body[:place]
            case 1:
                return body[:place] + dice.randbytes(dice.randint(1, 4)) + body[place:]
            case 2:
                return b"\xef\xbb\xbf" + body
            case 3:
                return body + dice.choice([b"}", b"{}", b"\0", b"//x", b" " * 1000])
            case 4:
                deep = dice.choice([60, 64, 65, 1000, 100_000])
                return b'{"inputs":' + b'{"a":' * deep + b"1" + b"}" * deep + b"}"
            case 5:
                return dice.choice(
                    [b"", b"[]", b"null", b'""', b"0", b"[" * 5000, b'"' + b"a" * 9000 + b'"']
                )
            case 6:
                return body.replace(b'"', b'"\\ud800', 1)
            case 7:
                return body.replace(b":", b":" + dice.choice(LITERALS).encode(), 1)
            case _:
                return body.decode("utf-8", "replace").encode("utf-16")


ODD_HEADERS = {
    "Accept": ["application/json", "text/html", "*/*;q=0", "", ",,,", "x" * 3000],
    "X-Dedup": ["enforce", "ENFORCE", "x"],
    "X-Force-Engine-Version": ["0", "1", "2", "3", "-1", "²", "9" * 5000, "x"],
    "If-None-Match": ["*", '"x"', "W/", ",", '"' * 500],
    "Last-Event-ID": ["0", "3", "-1", "x", "9" * 50, "²"],
    "Content-Encoding": ["gzip", "identity"],
    "Range": ["bytes=0-1"],
    "Cookie": ["a=b; " * 200],
    "X-Odd": ["\x80\xff", "a" * 20_000],
    "traceparent": ["00-" + "0" * 32 + "-" + "0" * 16 + "-01", "x"],
    "Connection": ["close"],
}
