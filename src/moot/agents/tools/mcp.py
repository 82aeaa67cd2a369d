"""MCP servers as places where tools are. Asked on first use, asked again when they have gone.

What a server says of its tools, and what they give, was written by others: descriptions are made
harmless like any text, and results reach a model as data.
"""

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from fnmatch import fnmatchcase
from typing import Any

from moot.agents.models.redact import Keys
from moot.agents.prompts.fencing import fenced, words
from moot.agents.tools.config import McpEntry
from moot.agents.tools.errors import ToolError
from moot.agents.tools.toolbox import Errand, Usable
from moot.config.extras import install
from moot.core.json.schema import SchemaError, check

log = logging.getLogger("moot.agents")

Secret = Callable[[str], str | None]
Leaving = set["asyncio.Task[None]"]

#: seconds a server has to start and to say what it has
CONNECT_S = 20.0
#: of them, those it has even when its calls have fewer: a program takes a moment to start
START_S = 5.0
#: seconds it has to end when it is not wanted any more
CLOSE_S = 2.0
#: and that the host waits for it in the end
GRACE_S = 10.0
#: seconds after which one that could not be reached is tried again
AGAIN_S = 10.0
MOST_TOOLS = 256
MOST_PAGES = 32
LONGEST_DESCRIPTION = 1000
MISSING = f"the package mcp is not installed: {install('mcp')}"


class McpServer:
    """One server of moot.toml. Its connection lives in a task of its own."""

    def __init__(self, name: str, entry: McpEntry, secret: Secret) -> None:
        self.name, self._entry, self._secret = name, entry, secret
        #: what it has, by name; None until it was asked
        self.known: dict[str, Usable] | None = None
        #: why it could not be asked
        self.problem: str | None = None
        self._link: _Link | None = None
        #: connections that take their time to end
        self._leaving: Leaving = set()
        self._failed_at = 0.0
        self._lock = asyncio.Lock()

    @property
    def place(self) -> str:
        return self._entry.url or " ".join(self._entry.command or [])

    async def tools(self) -> dict[str, Usable]:
        """What it has. Empty while it cannot be reached; ``problem`` says why."""
        try:
            await self._linked()
        except ToolError as error:
            log.warning("MCP server %s: %s", self.name, error.message)
        return self.known or {}

    def unlisted(self, tool: str) -> Usable:
        """A tool that the server would have to be asked about first: what it did before can be
        found on record. It is never called, as nobody knows whether a person must agree."""

        async def call(_: dict[str, Any], __: Errand) -> Any:
            said = self.problem or "it was not asked what it has"
            raise ToolError("tool_unavailable", f"The server cannot be used now: {said}.")

        return Usable(name=f"mcp:{self.name}/{tool}", call=call, transport="mcp")

    async def aclose(self) -> None:
        await self._drop()
        if self._leaving:
            await asyncio.wait([*self._leaving], timeout=GRACE_S)

    async def _drop(self) -> None:
        """The connection is not used any more; nobody waits long for its end."""
        link, self._link = self._link, None
        if link is not None:
            await link.end(self._leaving)

    async def _linked(self) -> "_Link":
        """A living connection. Raises ToolError."""
        async with self._lock:
            if self._link is not None and self._link.alive:
                return self._link
            await self._drop()
            now = asyncio.get_running_loop().time()
            if self.problem is not None and now - self._failed_at < AGAIN_S:
                raise ToolError("tool_unavailable", self.problem)
            try:
                link = await _Link.opened(self._entry, self._secret, self._leaving)
                self.known = {tool.name: tool for tool in self._listed(link.tools)}
            except Exception as error:
                failed_at = asyncio.get_running_loop().time()
                self.problem, self._failed_at = _reason(error), failed_at
                raise ToolError("tool_unavailable", self.problem) from None
            self._link, self.problem = link, None
            return link

    def _listed(self, found: list[Any]) -> list[Usable]:
        tools = []
        for each in found[:MOST_TOOLS]:
            schema = each.input_schema if isinstance(each.input_schema, dict) else {}
            try:
                check(schema)
            except SchemaError as error:
                log.warning("MCP server %s: %s is left out: %s", self.name, each.name, error)
                continue
            marks = each.annotations
            destructive = marks is not None and marks.destructive_hint is True
            tools.append(self._usable(each.name, each.description or "", schema, destructive))
        return tools

    def _usable(
        self, tool: str, description: str, schema: dict[str, Any], destructive: bool
    ) -> Usable:
        async def call(arguments: dict[str, Any], errand: Errand) -> Any:
            return await self._called(tool, arguments, errand, dangerous)

        text, _ = fenced(description)
        dangerous = destructive or _among(tool, self._entry.dangerous)
        return Usable(
            name=f"mcp:{self.name}/{tool}",
            call=call,
            description=text[:LONGEST_DESCRIPTION],
            parameters=schema,
            dangerous=dangerous,
            idempotent=_among(tool, self._entry.idempotent),
            transport="mcp",
        )

    async def _called(
        self, tool: str, arguments: dict[str, Any], errand: Errand, agreed: bool
    ) -> Any:
        """``agreed``: a person was asked. What a server that came back says now counts."""
        seconds = self._entry.timeout
        try:
            async with asyncio.timeout(seconds):
                link = await self._linked()
                listed = (self.known or {}).get(f"mcp:{self.name}/{tool}")
                if listed is None or (listed.dangerous and not agreed):
                    said = "The server says something else of this tool than before; try again."
                    raise ToolError("tool_unavailable", said)
                found = await link.call(tool, arguments, errand)
        except ToolError:
            raise
        except TimeoutError:
            said = f"No answer within {seconds:g} seconds; it may have happened all the same."
            raise ToolError("tool_timeout", said) from None
        except Exception as error:
            await self._drop()  # whatever it was, the next call begins afresh
            said = f"The server broke off: {_reason(error)}. It may have happened all the same."
            raise ToolError("tool_unavailable", self._keys().struck(said)) from None
        value = self._keys().struck_value(_value(found))
        if found.is_error:
            raise ToolError("tool_failed", words(value)[:2000])
        return value

    def _keys(self) -> Keys:
        names = [*self._entry.pass_env, *([self._entry.key_env] if self._entry.key_env else [])]
        return Keys([*map(self._secret, names), *self._entry.env.values()])


class _Link:
    """A connection: the SDK wants it closed by the task that opened it, so it has one."""

    def __init__(self, client: Any, tools: list[Any], task: "asyncio.Task[None]") -> None:
        self._client, self.tools, self._task = client, tools, task

    @classmethod
    async def opened(cls, entry: McpEntry, secret: Secret, leaving: Leaving) -> "_Link":
        """Raises whatever stands in the way."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[tuple[Any, list[Any]]] = loop.create_future()
        task = loop.create_task(_held(entry, secret, ready))  # the link ends it
        try:
            async with asyncio.timeout(min(CONNECT_S, max(entry.timeout, START_S))):
                client, tools = await ready
        except BaseException:
            await _ended(task, leaving)
            raise
        return cls(client, tools, task)

    @property
    def alive(self) -> bool:
        return not self._task.done()

    async def call(self, tool: str, arguments: dict[str, Any], errand: Errand) -> Any:
        """Raises ConnectionError when the connection ends first."""
        meta = {"traceparent": errand.trace.traceparent}
        if errand.trace.state:
            meta["tracestate"] = errand.trace.state
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(_outcome(self._client.call_tool(tool, arguments, meta=meta)))
            await asyncio.wait([asked, self._task], return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
        if asked.cancelled():
            raise ConnectionError("the connection ended")
        found, error = asked.result()
        if error is not None:
            raise error
        return found

    async def end(self, leaving: Leaving) -> None:
        await _ended(self._task, leaving)


async def _outcome(call: Awaitable[Any]) -> tuple[Any, Exception | None]:
    try:
        return await call, None
    except Exception as error:
        return None, error


async def _ended(task: "asyncio.Task[None]", leaving: Leaving) -> None:
    """Cancelled, and waited for as long as a server may keep others waiting by it."""
    task.cancel()
    leaving.add(task)
    task.add_done_callback(leaving.discard)
    await asyncio.wait([task], timeout=CLOSE_S)


async def _held(entry: McpEntry, secret: Secret, ready: "asyncio.Future[Any]") -> None:
    """Opens a connection, says what is there, and keeps it until it is cancelled or breaks."""
    try:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(await _client(entry, secret, stack))
            tools: list[Any] = []
            cursor = None
            for _ in range(MOST_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
            ready.set_result((client, tools))
            await asyncio.get_running_loop().create_future()
    except BaseException as error:
        if not ready.done():
            ready.set_exception(error if isinstance(error, Exception) else ConnectionError("ended"))
        if isinstance(error, asyncio.CancelledError) or not isinstance(error, Exception):
            raise
        log.warning("A connection to an MCP server broke: %s", _reason(error))


async def _client(entry: McpEntry, secret: Secret, stack: AsyncExitStack) -> Any:
    """The SDK's, loaded beside the loop: that takes a second."""
    try:
        mcp = await asyncio.to_thread(importlib.import_module, "mcp")
    except ImportError:
        raise RuntimeError(MISSING) from None
    if entry.command is not None:
        passed = {name: secret(name) or "" for name in entry.pass_env}
        return mcp.Client(
            mcp.StdioServerParameters(
                command=entry.command[0],
                args=entry.command[1:],
                env={**passed, **entry.env},
                cwd=entry.cwd,
            )
        )
    http = importlib.import_module("httpx2")
    transport = importlib.import_module("mcp.client.streamable_http").streamable_http_client
    headers = dict(entry.headers)
    if entry.key_env is not None:
        headers["authorization"] = f"Bearer {secret(entry.key_env) or ''}"
    timeout = http.Timeout(entry.timeout + CONNECT_S, connect=CONNECT_S)
    client = http.AsyncClient(headers=headers, timeout=timeout, follow_redirects=False)
    await stack.enter_async_context(client)
    return mcp.Client(transport(entry.url, http_client=client))


def _among(tool: str, said: bool | list[str]) -> bool:
    if isinstance(said, bool):
        return said
    return any(fnmatchcase(tool, pattern) for pattern in said)


def _reason(error: BaseException) -> str:
    """The innermost of what went wrong together, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return " ".join((str(error) or type(error).__name__).split())[:500]


def _value(found: Any) -> Any:
    """What a tool gave: its structured part where it has one, else its words."""
    if found.structured_content is not None:
        return found.structured_content
    parts = [_part(block) for block in found.content]
    if all(isinstance(part, str) for part in parts):
        return "\n".join(parts)
    return parts


def _part(block: Any) -> Any:
    """Pictures and sounds are named, not shown: a transcript is text."""
    if block.type == "text":
        return block.text
    if block.type == "resource" and hasattr(block.resource, "text"):
        return block.resource.text
    kind = getattr(block, "mime_type", None)
    return {"type": block.type, "mimeType": kind} if kind else {"type": block.type}
