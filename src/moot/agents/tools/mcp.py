"""Tools of MCP servers. The host connects on first use and reconnects later.

Descriptions and results come from others: descriptions are fenced like any text, and results reach
a model as data."""

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from fnmatch import fnmatchcase
from typing import Any

from moot.agents.models.redact import SecretKeys
from moot.agents.tools.toolbox import ToolError, ToolInvocation, UsableTool
from moot.config.extras import install_hint
from moot.config.tools import McpEntry
from moot.core.json.schema import SchemaError, check_schema
from moot.core.text.fencing import content_text, fence_content

log = logging.getLogger("moot.agents")

Secret = Callable[[str], str | None]
ClosingTasks = set["asyncio.Task[None]"]

#: seconds for a server to start and list its tools
CONNECT_S = 20.0
#: the least of these seconds, because a program needs time to start
START_S = 5.0
#: seconds for a connection to end
CLOSE_S = 2.0
#: seconds that the host waits for connections when it stops
GRACE_S = 10.0
#: seconds before another try to reach a server
RETRY_S = 10.0
MOST_TOOLS = 256
MOST_PAGES = 32
LONGEST_DESCRIPTION = 1000
MISSING = f"the package mcp is not installed: {install_hint('mcp')}"


class McpServer:
    """One MCP server of moot.toml. Its connection lives in its own task."""

    def __init__(self, name: str, entry: McpEntry, secret: Secret) -> None:
        self.name, self._entry, self._secret = name, entry, secret
        #: its tools by name; None before the first connection
        self.known: dict[str, UsableTool] | None = None
        #: why the last connection failed
        self.problem: str | None = None
        self._connection: _Connection | None = None
        #: connections that are ending
        self._closing: ClosingTasks = set()
        self._failed_at = 0.0
        self._lock = asyncio.Lock()

    @property
    def place(self) -> str:
        return self._entry.url or " ".join(self._entry.command or [])

    async def tools(self) -> dict[str, UsableTool]:
        """Return its tools, or nothing while it cannot be reached; ``problem`` says why."""
        try:
            await self._connect()
        except ToolError as error:
            log.warning("MCP server %s: %s", self.name, error.message)
        return self.known or {}

    def unlisted(self, tool: str) -> UsableTool:
        """Return a tool that is not listed now, so that recorded calls of it can be found. It is
        never called, because it may need the consent of a person."""

        async def call(_: Mapping[str, object], __: ToolInvocation) -> Any:
            reason = self.problem or "it was not asked what it has"
            raise ToolError("tool_unavailable", f"The server cannot be used now: {reason}.")

        return UsableTool(name=f"mcp:{self.name}/{tool}", call=call, transport="mcp")

    async def aclose(self) -> None:
        await self._disconnect()
        if self._closing:
            await asyncio.wait([*self._closing], timeout=GRACE_S)

    async def _disconnect(self) -> None:
        """Stop using the connection, without waiting long for its end."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.end(self._closing)

    async def _connect(self) -> "_Connection":
        """Return a living connection. Raise ToolError."""
        async with self._lock:
            if self._connection is not None and self._connection.alive:
                return self._connection
            await self._disconnect()
            now = asyncio.get_running_loop().time()
            if self.problem is not None and now - self._failed_at < RETRY_S:
                raise ToolError("tool_unavailable", self.problem)
            try:
                connection = await _Connection.open(self._entry, self._secret, self._closing)
                self.known = {tool.name: tool for tool in self._usable_tools(connection.tools)}
            except Exception as error:
                failed_at = asyncio.get_running_loop().time()
                self.problem, self._failed_at = _reason(error), failed_at
                raise ToolError("tool_unavailable", self.problem) from None
            self._connection, self.problem = connection, None
            return connection

    def _usable_tools(self, sdk_tools: list[Any]) -> list[UsableTool]:
        tools = []
        for tool in sdk_tools[:MOST_TOOLS]:
            schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
            try:
                check_schema(schema)
            except SchemaError as error:
                log.warning("MCP server %s: %s is left out: %s", self.name, tool.name, error)
                continue
            marks = tool.annotations
            destructive = marks is not None and marks.destructive_hint is True
            tools.append(self._usable_tool(tool.name, tool.description or "", schema, destructive))
        return tools

    def _usable_tool(
        self, tool: str, description: str, schema: dict[str, object], destructive: bool
    ) -> UsableTool:
        async def call(arguments: Mapping[str, object], invocation: ToolInvocation) -> Any:
            return await self._call(tool, arguments, invocation, dangerous)

        text, _ = fence_content(description)
        dangerous = destructive or _is_listed(tool, self._entry.dangerous)
        return UsableTool(
            name=f"mcp:{self.name}/{tool}",
            call=call,
            description=text[:LONGEST_DESCRIPTION],
            parameters=schema,
            dangerous=dangerous,
            idempotent=_is_listed(tool, self._entry.idempotent),
            transport="mcp",
        )

    async def _call(
        self, tool: str, arguments: Mapping[str, object], invocation: ToolInvocation, agreed: bool
    ) -> Any:
        """Call a tool. ``agreed``: a person has allowed it. Refuse it when the server describes
        the tool differently by now."""
        seconds = self._entry.timeout
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connect()
                tool_now = (self.known or {}).get(f"mcp:{self.name}/{tool}")
                if tool_now is None or (tool_now.dangerous and not agreed):
                    message = "The server says something else of this tool than before; try again."
                    raise ToolError("tool_unavailable", message)
                result = await connection.call(tool, arguments, invocation)
        except ToolError:
            raise
        except TimeoutError:
            message = f"No answer within {seconds:g} seconds; it may have happened all the same."
            raise ToolError("tool_timeout", message) from None
        except Exception as error:
            await self._disconnect()  # the next call connects again
            message = f"The server broke off: {_reason(error)}. It may have happened all the same."
            raise ToolError("tool_unavailable", self._secret_keys().redact(message)) from None
        value = self._secret_keys().redact_value(_value(result))
        if result.is_error:
            raise ToolError("tool_failed", content_text(value)[:2000])
        return value

    def _secret_keys(self) -> SecretKeys:
        names = [*self._entry.pass_env, *([self._entry.key_env] if self._entry.key_env else [])]
        return SecretKeys([*map(self._secret, names), *self._entry.env.values()])


class _Connection:
    """A connection in its own task, because the SDK requires the same task to open and close it."""

    def __init__(self, client: Any, tools: list[Any], task: "asyncio.Task[None]") -> None:
        self._client, self.tools, self._task = client, tools, task

    @classmethod
    async def open(cls, entry: McpEntry, secret: Secret, closing: ClosingTasks) -> "_Connection":
        """Raise whatever prevents the connection."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[tuple[Any, list[Any]]] = loop.create_future()
        task = loop.create_task(_run_connection(entry, secret, ready))  # the connection ends it
        try:
            async with asyncio.timeout(min(CONNECT_S, max(entry.timeout, START_S))):
                client, tools = await ready
        except BaseException:
            await _cancel(task, closing)
            raise
        return cls(client, tools, task)

    @property
    def alive(self) -> bool:
        return not self._task.done()

    async def call(
        self, tool: str, arguments: Mapping[str, object], invocation: ToolInvocation
    ) -> Any:
        """Raise ConnectionError when the connection ends first."""
        meta = {"traceparent": invocation.trace.traceparent}
        if invocation.trace.state:
            meta["tracestate"] = invocation.trace.state
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_outcome(self._client.call_tool(tool, arguments, meta=meta)))
            await asyncio.wait([task, self._task], return_when=asyncio.FIRST_COMPLETED)
            task.cancel()
        if task.cancelled():
            raise ConnectionError("the connection ended")
        result, error = task.result()
        if error is not None:
            raise error
        return result

    async def end(self, closing: ClosingTasks) -> None:
        await _cancel(self._task, closing)


async def _outcome(call: Awaitable[Any]) -> tuple[Any, Exception | None]:
    try:
        return await call, None
    except Exception as error:
        return None, error


async def _cancel(task: "asyncio.Task[None]", closing: ClosingTasks) -> None:
    task.cancel()
    closing.add(task)
    task.add_done_callback(closing.discard)
    await asyncio.wait([task], timeout=CLOSE_S)


async def _run_connection(entry: McpEntry, secret: Secret, ready: "asyncio.Future[Any]") -> None:
    """Open a connection, publish its tools, and hold it until it is cancelled or breaks."""
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
    """Return a client of the SDK, which is imported in a thread because that takes a second."""
    try:
        mcp = await asyncio.to_thread(importlib.import_module, "mcp")
    except ImportError:
        raise RuntimeError(MISSING) from None
    if entry.command is not None:
        passed = {name: secret(name) or "" for name in entry.pass_env}
        command, *arguments = entry.command
        env = {**passed, **entry.env}
        return mcp.Client(
            mcp.StdioServerParameters(command=command, args=arguments, env=env, cwd=entry.cwd)
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


def _is_listed(tool: str, setting: bool | list[str]) -> bool:
    if isinstance(setting, bool):
        return setting
    return any(fnmatchcase(tool, pattern) for pattern in setting)


def _reason(error: BaseException) -> str:
    """Return the innermost error in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return " ".join((str(error) or type(error).__name__).split())[:500]


def _value(result: Any) -> Any:
    """Return the structured result, or else its text."""
    if result.structured_content is not None:
        return result.structured_content
    parts = [_part(block) for block in result.content]
    if all(isinstance(part, str) for part in parts):
        return "\n".join(parts)
    return parts


def _part(block: Any) -> Any:
    """Return the text of a block. Images and sounds are only named."""
    if block.type == "text":
        return block.text
    if block.type == "resource" and hasattr(block.resource, "text"):
        return block.resource.text
    mime_type = getattr(block, "mime_type", None)
    return {"type": block.type, "mimeType": mime_type} if mime_type else {"type": block.type}
