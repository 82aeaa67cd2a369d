"""Workflow definitions as the host runs them: parsed, compiled, cached by tenant and digest."""

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
from moot.core.text.nearest import nearest
from moot.core.workflows import definition
from moot.core.workflows.definition import RESERVED
from moot.core.workflows.graph import Flow, compile_flow, digest, tied
from moot.core.workflows.node_types import NodeType
from moot.core.workflows.peer_ids import is_away, parted
from moot.engine.nodes.unknown import AnyType
from moot.engine.workflows.ask import ask_flow
from moot.engine.workflows.built_in import BUILT_IN, HOST_ONLY
from moot.store.protocol import IMPORTED, Definition, RecordStore

#: tenant, a name -> the id of the agent that is called so here, or None
Known = Callable[[str, str], Awaitable[str | None]]


async def _none(tenant: str, name: str) -> str | None:
    return None


class Flows:
    """The workflows of every tenant. A run pins its definition by digest."""

    def __init__(
        self,
        store: RecordStore,
        types: Mapping[str, NodeType],
        clock: Clock,
        limit: int = 4096,
        agents: Known | None = None,
    ) -> None:
        self._store, self.types, self._clock, self._limit = store, types, clock, limit
        self._agents = agents or _none
        self._newest: OrderedDict[tuple[str, str], Flow] = OrderedDict()
        #: flows that others hand work to: decisions look for them and cannot wait, so all are kept
        self._called: dict[tuple[str, str], Flow] = {}
        self._by_digest: OrderedDict[tuple[str, str], Flow] = OrderedDict()
        #: ids that were looked for in vain
        self._missing: set[tuple[str, str]] = set()
        #: hosts that work may be handed to, by name
        self.peers: frozenset[str] = frozenset()

    def compile(self, body: bytes) -> Flow:
        """Raises a BadRequest that names the mistake."""
        return compile_flow(definition.parse(body), self.types, digest(body))

    async def register(self, tenant: str, body: bytes, source: str = "api") -> Flow:
        """Keep a definition; the newest of an id is what new runs use."""
        flow = self.compile(body)
        if flow.definition.id.startswith(RESERVED) and source != "built-in":
            raise BadRequest(f"Ids that begin with '{RESERVED}' belong to the host.", field="id")
        known = await self._store.definition(tenant, flow.definition.id)
        if known is None or known.digest != flow.digest:
            await self._store.put_definition(
                Definition(
                    tenant=tenant,
                    workflow_id=flow.definition.id,
                    version=flow.definition.version,
                    digest=flow.digest,
                    body=body,
                    created_at=self._clock.millis(),
                    source=source,
                )
            )
        self._renew(tenant, flow)
        return flow

    async def keep(self, tenant: str, body: bytes) -> None:
        """For a run that is taken in: its definition can be read, and new runs do not use it."""
        flow = self.readable(body)
        if await self._store.definition_by_digest(tenant, flow.digest) is None:
            kept = Definition(
                tenant=tenant,
                workflow_id=flow.definition.id,
                version=flow.definition.version,
                digest=flow.digest,
                body=body,
                created_at=self._clock.millis(),
                source=IMPORTED,
            )
            await self._store.put_definition(kept)
        self._remember(tenant, flow)

    def known(self, tenant: str, workflow_id: str) -> Flow | None:
        """Only what is in memory: for decisions, which do not wait."""
        if workflow_id in HOST_ONLY:
            return None
        place = (tenant, workflow_id)
        flow = self._newest.get(place)
        if flow is None:
            return self._called.get(place)
        self._newest.move_to_end(place)
        return flow

    def at_hand(self, tenant: str, workflow_id: str) -> bool:
        """Whether work can be handed to it now: it is in memory, or on a host that is known."""
        if is_away(workflow_id):
            return self._on_peer(workflow_id)
        return self.known(tenant, workflow_id) is not None

    def _on_peer(self, workflow_id: str) -> bool:
        away = parted(workflow_id)
        return away is not None and away[0] in self.peers

    def is_missing(self, tenant: str, workflow_id: str) -> bool:
        """Whether it was looked for in vain; the answer holds for one decision."""
        place = (tenant, workflow_id)
        found = place in self._missing or is_away(workflow_id)
        self._missing.discard(place)
        return found

    async def look_for(self, tenant: str, workflow_id: str) -> None:
        """Into memory with it, and with what it calls, for a decision that names it."""
        try:
            self._called[tenant, workflow_id] = await self._worker(tenant, workflow_id)
        except Unavailable:
            raise
        except MootError:  # not there, or not to be run here any more
            self._missing.add((tenant, workflow_id))

    async def _worker(self, tenant: str, name: str) -> Flow:
        """A workflow, or else a question to the agent of this name."""
        try:
            return await self.newest(tenant, name)
        except WorkflowNotFound:
            agent_id = await self._agents(tenant, name)
            if agent_id is None:
                raise
            return await self.asking(tenant, agent_id)

    async def asking(self, tenant: str, agent_id: str) -> Flow:
        """The workflow of one question to this agent. Kept for its runs; none begins by its id."""
        body = ask_flow(agent_id)
        flow = self._by_digest.get((tenant, digest(body)))
        if flow is None:
            await self.keep(tenant, body)
            flow = self.compile(body)
            self._remember(tenant, flow)
        return flow

    async def newest(self, tenant: str, workflow_id: str) -> Flow:
        """The flow new runs use, with every flow it refers to in memory too."""
        flow = self.known(tenant, workflow_id)
        if flow is None:
            flow = await self._load(tenant, workflow_id)
        if flow.references:
            await self.prepare(tenant, flow)
        return flow

    async def own(self, tenant: str, workflow_id: str) -> Flow:
        """A workflow that only the host itself begins."""
        return await self.register(tenant, BUILT_IN[workflow_id], "built-in")

    async def prepare(self, tenant: str, flow: Flow) -> None:
        """Raises UnknownChildWorkflow when the flow, or one it calls, refers to nothing."""
        seen: set[str] = set()
        waiting = list(flow.references)
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if is_away(name):
                if not self._on_peer(name):
                    raise PeerUnknown(name)
                continue
            try:
                child = self.known(tenant, name) or await self._load(tenant, name)
            except WorkflowNotFound:
                raise UnknownChildWorkflow(
                    f"The workflow hands work to '{name}', which is not registered.",
                    workflowId=name,
                ) from None
            self._called.setdefault((tenant, name), child)
            waiting += child.references

    async def by_digest(self, tenant: str, name: str) -> Flow:
        flow = self._by_digest.get((tenant, name))
        if flow is None:
            found = await self._store.definition_by_digest(tenant, name)
            if found is None:
                raise WorkflowNotFound(name)
            flow = self._kept(found.body)
        self._remember(tenant, flow)
        if flow.references:
            await self._try_prepare(tenant, flow)
        return flow

    def readable(self, body: bytes) -> Flow:
        """A run whose node types are gone can be read; its nodes wait until they are back."""
        return compile_flow(definition.parse(body), AnyType(self.types), digest(body))

    def _kept(self, body: bytes) -> Flow:
        return tied(definition.parse(body), AnyType(self.types), digest(body))

    async def _try_prepare(self, tenant: str, flow: Flow) -> None:
        """A run that is already there goes on even if a workflow it calls cannot be read."""
        try:
            await self.prepare(tenant, flow)
        except MootError:
            return

    async def _load(self, tenant: str, workflow_id: str) -> Flow:
        """One registered while the store was asked is newer than what the store said."""
        if workflow_id in HOST_ONLY:
            raise self.unknown(tenant, workflow_id)
        if workflow_id in BUILT_IN:
            return await self.register(tenant, BUILT_IN[workflow_id], "built-in")
        found = await self._store.definition(tenant, workflow_id)
        if found is None:
            raise self.unknown(tenant, workflow_id)
        flow = self.known(tenant, workflow_id)
        if flow is None:
            flow = self.compile(found.body)
            self._renew(tenant, flow)
        return flow

    def unknown(self, tenant: str, workflow_id: str) -> WorkflowNotFound:
        """The refusal, with the id that was likely meant, out of those in memory."""
        known = [name for owner, name in self._newest if owner == tenant]
        return WorkflowNotFound(workflow_id, nearest(workflow_id, known))

    def _renew(self, tenant: str, flow: Flow) -> None:
        """From now on this is what new runs use."""
        place = (tenant, flow.definition.id)
        self._missing.discard(place)
        if place in self._called:
            self._called[place] = flow
        self._keep(self._newest, place, flow)
        self._remember(tenant, flow)

    def _remember(self, tenant: str, flow: Flow) -> None:
        self._keep(self._by_digest, (tenant, flow.digest), flow)

    def _keep(
        self, flows: OrderedDict[tuple[str, str], Flow], place: tuple[str, str], flow: Flow
    ) -> None:
        """The one nobody has used for longest makes room."""
        flows[place] = flow
        flows.move_to_end(place)
        if len(flows) > self._limit:
            flows.popitem(last=False)
