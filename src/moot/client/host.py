"""Resources of the client for the inbox, workflows, agents, memory and keys."""

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from moot.client.http.async_sender import AsyncSender
from moot.client.http.methods import Resource, S, client_method
from moot.client.http.sender import Sender
from moot.client.operations import host, runs
from moot.wire.interrupts import Inbox
from moot.wire.workflows import WorkflowRegistration


class InboxOperations(Resource[S]):
    """The operations of the inbox."""

    list = client_method(runs.get_inbox)
    questions = client_method(runs.list_questions)
    resolve = client_method(runs.resolve_question)
    approve = client_method(runs.approve_question)
    reject = client_method(runs.reject_question)
    answer = client_method(runs.answer_question)
    by_link = client_method(runs.get_question_by_link)
    answer_link = client_method(runs.answer_question_by_link)


class InboxResource(InboxOperations[Sender]):
    """All interrupts that wait for a person. Each item can be answered."""

    def watch(self, timeout: float | None = None) -> Iterator[Inbox]:
        """Yield the inbox now and after every change, for ``timeout`` seconds or forever."""
        until, revision = _deadline(timeout), None
        while revision is None or time.monotonic() < until:
            inbox = self.list(limit=1000, revision=revision, wait=_poll_seconds(revision, until))
            if inbox.revision != revision:
                revision = inbox.revision
                yield inbox


class AsyncInboxResource(InboxOperations[AsyncSender]):
    """All interrupts that wait for a person, for asyncio."""

    async def watch(self, timeout: float | None = None) -> AsyncIterator[Inbox]:
        """Yield the inbox now and after every change, for ``timeout`` seconds or forever."""
        until, revision = _deadline(timeout), None
        while revision is None or time.monotonic() < until:
            wait = _poll_seconds(revision, until)
            inbox = await self.list(limit=1000, revision=revision, wait=wait)
            if inbox.revision != revision:
                revision = inbox.revision
                yield inbox


def _deadline(timeout: float | None) -> float:
    return float("inf") if timeout is None else time.monotonic() + timeout


def _poll_seconds(revision: int | None, until: float) -> int:
    left = min(until - time.monotonic(), runs.LONGEST_INBOX_WAIT_S)
    return 0 if revision is None else max(1, int(left))


def read_definition(file: str | Path) -> bytes:
    """Return the workflow of a YAML or JSON file as protocol JSON. Errors name the line."""
    path = Path(file)
    if path.suffix == ".json":
        return path.read_bytes()
    import msgspec

    from moot.core.workflows.yaml import compile_yaml

    return msgspec.json.encode(compile_yaml(path.read_text(encoding="utf-8"), str(path)))


class WorkflowsOperations(Resource[S]):
    """The operations on workflows."""

    list = client_method(host.list_workflows)
    get = client_method(host.get_workflow)
    register = client_method(host.register_workflow)
    check = client_method(host.check_workflow)


class WorkflowsResource(WorkflowsOperations[Sender]):
    """All workflows."""

    def add(self, file: str | Path) -> WorkflowRegistration:
        """Register the workflow in a file."""
        return self.register(read_definition(file))


class AsyncWorkflowsResource(WorkflowsOperations[AsyncSender]):
    """All workflows, for asyncio."""

    async def add(self, file: str | Path) -> WorkflowRegistration:
        """Register the workflow in a file."""
        return await self.register(read_definition(file))


class AgentsResource(Resource[S]):
    """All agents, their deployments and tools."""

    list = client_method(host.list_agents)
    get = client_method(host.get_agent)
    put = client_method(host.put_agent)
    register = client_method(host.register_agent)
    remove = client_method(host.remove_agent)
    inventory = client_method(host.get_inventory)
    inventory_entry = client_method(host.get_inventory_entry)
    deployments = client_method(host.list_deployments)
    deploy = client_method(host.deploy_agent)
    tools = client_method(host.list_tools)


class MemoryResource(Resource[S]):
    """The memories of agents."""

    list = client_method(host.list_memories)
    entries = client_method(host.list_memory_entries)
    forget = client_method(host.forget_memory)


class KeysResource(Resource[S]):
    """API keys."""

    list = client_method(host.list_keys)
    create = client_method(host.create_key)
    revoke = client_method(host.revoke_key)
