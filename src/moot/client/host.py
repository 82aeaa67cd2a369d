"""The other parts of the API: what waits, workflows, agents, memory, keys, the host itself."""

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from moot.client.http.methods import AsyncOf, Of, awaits, waits
from moot.client.operations import host, runs
from moot.wire.host import Registered
from moot.wire.runs import Inbox


class InboxPart(Of):
    """Everything that waits for a person. A row of it can be answered."""

    list = waits(runs.inbox)
    questions = waits(runs.questions)
    resolve = waits(runs.resolve_only)
    approve = waits(runs.approve)
    reject = waits(runs.reject)
    answer = waits(runs.answer)
    by_link = waits(runs.question_by_link)
    answer_link = waits(runs.answer_by_link)

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

    list = awaits(runs.inbox)
    questions = awaits(runs.questions)
    resolve = awaits(runs.resolve_only)
    approve = awaits(runs.approve)
    reject = awaits(runs.reject)
    answer = awaits(runs.answer)
    by_link = awaits(runs.question_by_link)
    answer_link = awaits(runs.answer_by_link)

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
    left = min(until - time.monotonic(), runs.LONGEST_INBOX_WAIT_S)
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
    list = waits(host.workflows)
    get = waits(host.workflow)
    register = waits(host.register)
    check = waits(host.check)

    def add(self, file: str | Path) -> Registered:
        """Register the workflow in a file."""
        return self.register(definition_in(file))


class AsyncWorkflows(AsyncOf):
    list = awaits(host.workflows)
    get = awaits(host.workflow)
    register = awaits(host.register)
    check = awaits(host.check)

    async def add(self, file: str | Path) -> Registered:
        """Register the workflow in a file."""
        return await self.register(definition_in(file))


class Agents(Of):
    list = waits(host.agents)
    get = waits(host.agent)
    put = waits(host.put_agent)
    remove = waits(host.remove_agent)
    inventory = waits(host.inventory)
    inventory_entry = waits(host.inventory_entry)
    deployments = waits(host.deployments)
    deploy = waits(host.deploy)
    tools = waits(host.tools)


class AsyncAgents(AsyncOf):
    list = awaits(host.agents)
    get = awaits(host.agent)
    put = awaits(host.put_agent)
    remove = awaits(host.remove_agent)
    inventory = awaits(host.inventory)
    inventory_entry = awaits(host.inventory_entry)
    deployments = awaits(host.deployments)
    deploy = awaits(host.deploy)
    tools = awaits(host.tools)


class Memory(Of):
    list = waits(host.memories)
    entries = waits(host.entries)
    forget = waits(host.forget)


class AsyncMemory(AsyncOf):
    list = awaits(host.memories)
    entries = awaits(host.entries)
    forget = awaits(host.forget)


class Keys(Of):
    list = waits(host.keys)
    create = waits(host.create_key)
    revoke = waits(host.revoke_key)


class AsyncKeys(AsyncOf):
    list = awaits(host.keys)
    create = awaits(host.create_key)
    revoke = awaits(host.revoke_key)
