"""The other parts of the API: what waits, workflows, agents, memory, keys, the host itself."""

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from moot.client.http.methods import AsyncOf, Of, awaits, waits
from moot.client.operations import host as calls
from moot.client.operations import runs as calls_runs
from moot.wire.host import Registered
from moot.wire.runs import Inbox


class InboxPart(Of):
    """Everything that waits for a person. A row of it can be answered."""

    list = waits(calls_runs.inbox)
    questions = waits(calls_runs.questions)
    resolve = waits(calls_runs.resolve_only)
    approve = waits(calls_runs.approve)
    reject = waits(calls_runs.reject)
    answer = waits(calls_runs.answer)
    by_link = waits(calls_runs.question_by_link)
    answer_link = waits(calls_runs.answer_by_link)

    def watch(self, timeout: float | None = None) -> Iterator[Inbox]:
        """The inbox now, and again whenever it has changed; for so many seconds, or for ever."""
        until, known = _until(timeout), None
        while known is None or time.monotonic() < until:
            found = self.list(limit=1000, revision=known, wait=_wait(known, until))
            if found.revision != known:
                known = found.revision
                yield found


class AsyncInboxPart(AsyncOf):
    """Everything that waits for a person, for asyncio."""

    list = awaits(calls_runs.inbox)
    questions = awaits(calls_runs.questions)
    resolve = awaits(calls_runs.resolve_only)
    approve = awaits(calls_runs.approve)
    reject = awaits(calls_runs.reject)
    answer = awaits(calls_runs.answer)
    by_link = awaits(calls_runs.question_by_link)
    answer_link = awaits(calls_runs.answer_by_link)

    async def watch(self, timeout: float | None = None) -> AsyncIterator[Inbox]:
        """The inbox now, and again whenever it has changed; for so many seconds, or for ever."""
        until, known = _until(timeout), None
        while known is None or time.monotonic() < until:
            found = await self.list(limit=1000, revision=known, wait=_wait(known, until))
            if found.revision != known:
                known = found.revision
                yield found


def _until(timeout: float | None) -> float:
    return float("inf") if timeout is None else time.monotonic() + timeout


def _wait(known: int | None, until: float) -> int:
    left = min(until - time.monotonic(), calls_runs.LONGEST_INBOX_WAIT_S)
    return 0 if known is None else max(1, int(left))


def definition_in(file: str | Path) -> bytes:
    """The workflow in a YAML or JSON file, as the protocol has it. Mistakes name their line."""
    path = Path(file)
    if path.suffix == ".json":
        return path.read_bytes()
    import msgspec

    from moot.core.workflows.yaml import compile_yaml

    return msgspec.json.encode(compile_yaml(path.read_text(encoding="utf-8"), str(path)))


class Workflows(Of):
    list = waits(calls.workflows)
    get = waits(calls.workflow)
    register = waits(calls.register)
    check = waits(calls.check)

    def add(self, file: str | Path) -> Registered:
        """Register the workflow in a file."""
        return self.register(definition_in(file))


class AsyncWorkflows(AsyncOf):
    list = awaits(calls.workflows)
    get = awaits(calls.workflow)
    register = awaits(calls.register)
    check = awaits(calls.check)

    async def add(self, file: str | Path) -> Registered:
        """Register the workflow in a file."""
        return await self.register(definition_in(file))


class Agents(Of):
    list = waits(calls.agents)
    get = waits(calls.agent)
    put = waits(calls.put_agent)
    remove = waits(calls.remove_agent)
    inventory = waits(calls.inventory)
    inventory_entry = waits(calls.inventory_entry)
    deployments = waits(calls.deployments)
    deploy = waits(calls.deploy)
    tools = waits(calls.tools)


class AsyncAgents(AsyncOf):
    list = awaits(calls.agents)
    get = awaits(calls.agent)
    put = awaits(calls.put_agent)
    remove = awaits(calls.remove_agent)
    inventory = awaits(calls.inventory)
    inventory_entry = awaits(calls.inventory_entry)
    deployments = awaits(calls.deployments)
    deploy = awaits(calls.deploy)
    tools = awaits(calls.tools)


class Memory(Of):
    list = waits(calls.memories)
    entries = waits(calls.entries)
    forget = waits(calls.forget)


class AsyncMemory(AsyncOf):
    list = awaits(calls.memories)
    entries = awaits(calls.entries)
    forget = awaits(calls.forget)


class Keys(Of):
    list = waits(calls.keys)
    create = waits(calls.create_key)
    revoke = waits(calls.revoke_key)


class AsyncKeys(AsyncOf):
    list = awaits(calls.keys)
    create = awaits(calls.create_key)
    revoke = awaits(calls.revoke_key)
