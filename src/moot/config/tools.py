"""The tools and MCP servers in moot.toml."""

import re
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from moot.core.json.schema import SchemaError, check_schema

Seconds = Annotated[float, Meta(gt=0, le=3600)]
Variable = Annotated[str, Meta(min_length=1, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)")]
Header = Annotated[str, Meta(pattern=r"^[\x20-\x7e]*$(?!\n)", max_length=4096)]

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: headers that only the HTTP client sets
OWN_HEADERS = frozenset({
    "host", "content-length", "connection", "transfer-encoding", "accept-encoding", "upgrade",
    "idempotency-key", "te", "trailer", "expect",
})  # fmt: skip
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class HttpEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[tools.NAME]``: an HTTP address that is a tool."""

    #: ``{name}`` is a parameter, in the path or the query
    url: Annotated[str, Meta(min_length=1, max_length=4096)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    description: Annotated[str, Meta(max_length=1000)] = ""
    #: parameter -> its JSON Schema, or just the name of a type; or one schema of an object
    params: dict[str, object] = {}
    headers: dict[str, Header] = {}
    #: the environment variable with the key; the key itself is never in a file
    key_env: Variable | None = None
    #: the header with the key; by default ``Authorization: Bearer KEY``
    key_header: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]+$(?!\n)", max_length=100)] | None = None
    dangerous: bool = False
    #: by default as in HTTP: all methods but POST and PATCH may be repeated
    idempotent: bool | None = None
    timeout: Seconds = 30.0

    @property
    def repeatable(self) -> bool:
        by_nature = self.method not in ("POST", "PATCH")
        return by_nature if self.idempotent is None else self.idempotent

    @property
    def schema(self) -> dict[str, Any]:
        """Return the schema of the parameters. A parameter with a default is optional."""
        if self.params.get("type") == "object" and isinstance(self.params.get("properties"), dict):
            return dict(self.params)
        properties, needed = {}, []
        for name, schema in self.params.items():
            properties[name] = {"type": schema} if isinstance(schema, str) else schema
            if not (isinstance(schema, dict) and "default" in schema):
                needed.append(name)
        schema = {"type": "object", "properties": properties, "required": needed}
        return {**schema, "additionalProperties": False}

    def problem(self) -> tuple[str, str] | None:
        """Return a field and what is wrong with it, beyond its type."""
        schema = self.schema
        properties = schema["properties"]
        try:
            check_schema(schema)
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
    """``[mcp.NAME]``: an MCP server, either a program to start or an address."""

    command: Annotated[list[str], Meta(min_length=1, max_length=256)] | None = None
    url: Annotated[str, Meta(pattern=r"^https?://[^\s/@]+(/\S*)?$(?!\n)")] | None = None
    #: the environment of the program, which does not get the one of the host
    env: dict[str, str] = {}
    #: variables of the host that are passed to it
    pass_env: list[Variable] = []
    #: the folder the program is started in
    cwd: str | None = None
    headers: dict[str, Header] = {}
    key_env: Variable | None = None
    #: tools that need the consent of a person, by name or pattern; true means all
    dangerous: bool | list[str] = []
    #: tools that may be called again after an unknown outcome
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
