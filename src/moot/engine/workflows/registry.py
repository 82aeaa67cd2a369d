"""Register, compile and cache the workflows of every tenant."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping

from moot.clock import Clock
from moot.core.errors import (
    BadRequest,
    MootError,
    PeerUnknown,
    Unavailable,
    UnknownChildWorkflow,
    WorkflowNotFound,
)
from moot.core.text.nearest import nearest_word
from moot.core.workflows import definition
from moot.core.workflows.definition import RESERVED
from moot.core.workflows.flow import Flow, build_flow, compile_flow, definition_digest
from moot.core.workflows.node_types import NodeType
from moot.core.workflows.peer_ids import is_peer_id, split_peer_id
from moot.engine.nodes.registry import AnyNodeType
from moot.engine.workflows.built_in import BUILT_IN, HOST_ONLY, ask_definition
from moot.store.protocol import IMPORTED, Definition, RegistryStore

#: (tenant, name) -> the id of the agent of that name, or None
AgentLookup = Callable[[str, str], Awaitable[str | None]]


async def _no_agent(tenant: str, name: str) -> str | None:
    return None


class WorkflowRegistry:
    """The workflows of every tenant. A run pins its definition by digest."""

    def __init__(
        self,
        store: RegistryStore,
        types: Mapping[str, NodeType],
        clock: Clock,
        limit: int = 4096,
        agents: AgentLookup | None = None,
    ) -> None:
        self._store, self.types, self._clock, self._limit = store, types, clock, limit
        self._agents = agents or _no_agent
        self._newest: OrderedDict[tuple[str, str], Flow] = OrderedDict()
        #: flows that others call; decisions need them and cannot wait, so all stay in memory
        self._called: dict[tuple[str, str], Flow] = {}
        self._by_digest: OrderedDict[tuple[str, str], Flow] = OrderedDict()
        #: ids that the store does not have
        self._missing: set[tuple[str, str]] = set()
        #: names of the hosts that may get work
        self.peers: frozenset[str] = frozenset()

    def compile(self, body: bytes) -> Flow:
        """Compile a definition. Raise a BadRequest that names the mistake."""
        return compile_flow(definition.parse_definition(body), self.types, definition_digest(body))

    async def register(self, tenant: str, body: bytes, source: str = "api") -> Flow:
        """Store a definition. New runs use the newest one of an id."""
        flow = self.compile(body)
        if flow.definition.id.startswith(RESERVED) and source != "built-in":
            raise BadRequest(f"Ids that begin with '{RESERVED}' belong to the host.", field="id")
        stored = await self._store.definition(tenant, flow.definition.id)
        if stored is None or stored.digest != flow.digest:
            await self._put(tenant, flow, body, source)
        self._set_newest(tenant, flow)
        return flow

    async def _put(self, tenant: str, flow: Flow, body: bytes, source: str) -> None:
        record = Definition(
            tenant=tenant,
            workflow_id=flow.definition.id,
            version=flow.definition.version,
            digest=flow.digest,
            body=body,
            created_at=self._clock.millis(),
            source=source,
        )
        await self._store.put_definition(record)

    async def keep(self, tenant: str, body: bytes) -> None:
        """Store the definition of an imported run. New runs do not use it."""
        flow = self.readable(body)
        if await self._store.definition_by_digest(tenant, flow.digest) is None:
            await self._put(tenant, flow, body, IMPORTED)
        self._remember(tenant, flow)

    def known(self, tenant: str, workflow_id: str) -> Flow | None:
        """Return the flow if it is in memory, for decisions, which do not wait."""
        if workflow_id in HOST_ONLY:
            return None
        key = (tenant, workflow_id)
        flow = self._newest.get(key)
        if flow is None:
            return self._called.get(key)
        self._newest.move_to_end(key)
        return flow

    def is_available(self, tenant: str, workflow_id: str) -> bool:
        """Return whether the workflow can get work now: it is in memory, or on a known peer."""
        if is_peer_id(workflow_id):
            return self._on_peer(workflow_id)
        return self.known(tenant, workflow_id) is not None

    def _on_peer(self, workflow_id: str) -> bool:
        away = split_peer_id(workflow_id)
        return away is not None and away[0] in self.peers

    def is_missing(self, tenant: str, workflow_id: str) -> bool:
        """Return whether the last lookup failed. The answer holds for one decision."""
        key = (tenant, workflow_id)
        missing = key in self._missing or is_peer_id(workflow_id)
        self._missing.discard(key)
        return missing

    async def load_worker(self, tenant: str, workflow_id: str) -> None:
        """Load a workflow that a decision names, and the workflows it calls."""
        try:
            self._called[tenant, workflow_id] = await self._worker(tenant, workflow_id)
        except Unavailable:
            raise
        except MootError:  # unknown, or no longer runnable here
            self._missing.add((tenant, workflow_id))

    async def _worker(self, tenant: str, name: str) -> Flow:
        """Return the workflow, or else the question workflow of the agent with this name."""
        try:
            return await self.newest(tenant, name)
        except WorkflowNotFound:
            agent_id = await self._agents(tenant, name)
            if agent_id is None:
                raise
            return await self.asking(tenant, agent_id)

    async def asking(self, tenant: str, agent_id: str) -> Flow:
        """Return the workflow of one question to this agent. No run starts by its id."""
        body = ask_definition(agent_id)
        flow = self._by_digest.get((tenant, definition_digest(body)))
        if flow is None:
            await self.keep(tenant, body)
            flow = self.compile(body)
            self._remember(tenant, flow)
        return flow

    async def newest(self, tenant: str, workflow_id: str) -> Flow:
        """Return the flow that new runs use, with every flow it calls in memory, too."""
        flow = self.known(tenant, workflow_id)
        if flow is None:
            flow = await self._load(tenant, workflow_id)
        if flow.references:
            await self.prepare(tenant, flow)
        return flow

    async def own(self, tenant: str, workflow_id: str) -> Flow:
        """Return a workflow that only the host starts."""
        return await self.register(tenant, BUILT_IN[workflow_id], "built-in")

    async def prepare(self, tenant: str, flow: Flow) -> None:
        """Load every flow that the flow calls. Raise UnknownChildWorkflow when one is missing."""
        visited: set[str] = set()
        waiting = list(flow.references)
        while waiting:
            name = waiting.pop()
            if name in visited:
                continue
            visited.add(name)
            if is_peer_id(name):
                if not self._on_peer(name):
                    raise PeerUnknown(name)
                continue
            try:
                child = self.known(tenant, name) or await self._load(tenant, name)
            except WorkflowNotFound:
                message = f"The workflow hands work to '{name}', which is not registered."
                raise UnknownChildWorkflow(message, workflowId=name) from None
            self._called.setdefault((tenant, name), child)
            waiting += child.references

    async def by_digest(self, tenant: str, name: str) -> Flow:
        flow = self._by_digest.get((tenant, name))
        if flow is None:
            stored = await self._store.definition_by_digest(tenant, name)
            if stored is None:
                raise WorkflowNotFound(name)
            flow = self._compile_stored(stored.body)
        self._remember(tenant, flow)
        if flow.references:
            await self._try_prepare(tenant, flow)
        return flow

    def readable(self, body: bytes) -> Flow:
        """Compile a definition; nodes of missing types wait until these are back."""
        parsed, types = definition.parse_definition(body), AnyNodeType(self.types)
        return compile_flow(parsed, types, definition_digest(body))

    def _compile_stored(self, body: bytes) -> Flow:
        parsed, types = definition.parse_definition(body), AnyNodeType(self.types)
        return build_flow(parsed, types, definition_digest(body))

    async def _try_prepare(self, tenant: str, flow: Flow) -> None:
        """Prepare an existing run, which continues even if a workflow it calls cannot be read."""
        try:
            await self.prepare(tenant, flow)
        except MootError:
            return

    async def _load(self, tenant: str, workflow_id: str) -> Flow:
        """Load the newest flow. One registered during the read is newer than the stored one."""
        if workflow_id in HOST_ONLY:
            raise self.unknown(tenant, workflow_id)
        if workflow_id in BUILT_IN:
            return await self.register(tenant, BUILT_IN[workflow_id], "built-in")
        stored = await self._store.definition(tenant, workflow_id)
        if stored is None:
            raise self.unknown(tenant, workflow_id)
        flow = self.known(tenant, workflow_id)
        if flow is None:
            flow = self.compile(stored.body)
            self._set_newest(tenant, flow)
        return flow

    def unknown(self, tenant: str, workflow_id: str) -> WorkflowNotFound:
        """Return the refusal, with the most similar id in memory."""
        workflow_ids = [name for owner, name in self._newest if owner == tenant]
        return WorkflowNotFound(workflow_id, nearest_word(workflow_id, workflow_ids))

    def _set_newest(self, tenant: str, flow: Flow) -> None:
        key = (tenant, flow.definition.id)
        self._missing.discard(key)
        if key in self._called:
            self._called[key] = flow
        self._cache(self._newest, key, flow)
        self._remember(tenant, flow)

    def _remember(self, tenant: str, flow: Flow) -> None:
        self._cache(self._by_digest, (tenant, flow.digest), flow)

    def _cache(
        self, flows: OrderedDict[tuple[str, str], Flow], key: tuple[str, str], flow: Flow
    ) -> None:
        """Put the flow into the cache. The least recently used one makes room."""
        flows[key] = flow
        flows.move_to_end(key)
        if len(flows) > self._limit:
            flows.popitem(last=False)
