"""Tools and MCP servers as moot.toml names them."""

import re
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from moot.core.json.schema import SchemaError, check

Seconds = Annotated[float, Meta(gt=0, le=3600)]
Variable = Annotated[str, Meta(min_length=1, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)")]
Header = Annotated[str, Meta(pattern=r"^[\x20-\x7e]*$(?!\n)", max_length=4096)]

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: headers that are the client's own affair
OWN_HEADERS = frozenset({
    "host", "content-length", "connection", "transfer-encoding", "accept-encoding", "upgrade",
    "idempotency-key", "te", "trailer", "expect",
})  # fmt: skip
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class HttpEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[tools.NAME]``: an address that is called."""

    #: ``{name}`` stands for a parameter, in the path or the query
    url: Annotated[str, Meta(min_length=1, max_length=4096)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    description: Annotated[str, Meta(max_length=1000)] = ""
    #: parameter -> its JSON Schema, or just the name of a type; or one schema of an object
    params: dict[str, Any] = {}
    headers: dict[str, Header] = {}
    #: the environment variable that holds the key; the key itself never stands in a file
    key_env: Variable | None = None
    #: the header the key goes into; by itself ``Authorization: Bearer KEY``
    key_header: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]+$(?!\n)", max_length=100)] | None = None
    dangerous: bool = False
    #: by itself as HTTP has it: all but POST and PATCH may be sent again
    idempotent: bool | None = None
    timeout: Seconds = 30.0

    @property
    def repeatable(self) -> bool:
        by_nature = self.method not in ("POST", "PATCH")
        return by_nature if self.idempotent is None else self.idempotent

    @property
    def schema(self) -> dict[str, Any]:
        """Of an object: what is left out of the address may have a default."""
        if self.params.get("type") == "object" and isinstance(self.params.get("properties"), dict):
            return dict(self.params)
        each = {
            name: {"type": said} if isinstance(said, str) else said
            for name, said in self.params.items()
        }
        needed = [
            name
            for name, said in each.items()
            if not (isinstance(said, dict) and "default" in said)
        ]
        return {
            "type": "object",
            "properties": each,
            "required": needed,
            "additionalProperties": False,
        }

    def problem(self) -> tuple[str, str] | None:
        """(field, what is wrong with it) that its types do not show."""
        schema = self.schema
        properties = schema["properties"]
        try:
            check(schema)
        except SchemaError as error:
            return "params", f"this cannot be checked against: {error}"
        scheme, _, rest = self.url.partition("://")
        if PLACEHOLDER.search(scheme + re.split(r"[/?#]", rest, maxsplit=1)[0]):
            return "url", "a parameter cannot stand in the host; write the host out"
        if "#" in self.url:
            return "url", "what follows a # is never sent; leave it out"
        for name in PLACEHOLDER.findall(self.url):
            if name not in properties:
                return "url", f"{{{name}}} is no parameter; declare it under params"
            if name not in schema.get("required", []) and "default" not in properties[name]:
                return "params", f"'{name}' stands in the address and must be required"
        for name in self.headers:
            if name.lower() in OWN_HEADERS or not HEADER.fullmatch(name):
                return "headers", f"'{name}' cannot be set"
        if self.key_header is not None and self.key_env is None:
            return "key_header", "there is no key for it; write key_env, too"
        return None


class McpEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[mcp.NAME]``: a server whose tools can be used; a program to start, or an address."""

    command: Annotated[list[str], Meta(min_length=1, max_length=256)] | None = None
    url: Annotated[str, Meta(pattern=r"^https?://[^\s/@]+(/\S*)?$(?!\n)")] | None = None
    #: what the program finds in its environment; it is not given the host's own
    env: dict[str, str] = {}
    #: variables of the host's environment that it is given
    pass_env: list[Variable] = []
    #: the folder the program is started in
    cwd: str | None = None
    headers: dict[str, Header] = {}
    key_env: Variable | None = None
    #: tools a person must agree to, by name or pattern; true is all of them
    dangerous: bool | list[str] = []
    #: tools that may be called again when it is not known whether they were
    idempotent: bool | list[str] = []
    timeout: Seconds = 60.0

    def problem(self) -> tuple[str, str] | None:
        if (self.command is None) == (self.url is None):
            return "command", "write either command or url"
        if self.url is None and (self.headers or self.key_env):
            return "headers", "headers and key_env are for url"
        if self.command is None and (self.env or self.pass_env or self.cwd):
            return "env", "env, pass_env and cwd are for command"
        return None
