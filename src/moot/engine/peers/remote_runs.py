"""Create, follow and stop child runs on other hosts.

The owed steps come from the parent's log, so that after a crash on either side the host only asks
again.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from moot.core.children.decide import ChildWaits
from moot.core.commands import Command
from moot.core.errors import MootError, Unavailable
from moot.core.events import event_id
from moot.core.payloads.base import RecordedError
from moot.core.payloads.runs import PeerOrigin
from moot.core.runs.child_outputs import ChildEnded
from moot.core.state import remote_children
from moot.core.state.remote_children import CREATE, FOLLOW, RemoteChild
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.supervisors.peer_answers import PeerFound, PeerRefused, PeerStopped
from moot.core.trace import Trace, call_trace, run_trace
from moot.core.workflows.node_types import NodeError
from moot.core.workflows.peer_ids import SLASH, WELL_KNOWN
from moot.engine.head import Head
from moot.engine.peers import calls
from moot.engine.peers.calls import Peer, PeerError, PeerInfo, RemoteRun
from moot.engine.peers.watch import RemoteRunWatch
from moot.store.protocol import Append, Batch

if TYPE_CHECKING:
    from moot.engine.host import Host

log = logging.getLogger("moot.engine")

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0
#: how long the host tries to stop an unwanted child, in ms
STOP_PATIENCE_MS = 86_400_000
#: the share of another host's retention that this host relies on
SAFE_SHARE = 0.95
PEER_INFO_MS = 300_000
MOST_CALLS = 64
MOST_STREAMS = 512


def retry_pauses() -> Iterator[float]:
    """Yield the seconds between two tries: doubling, with an upper bound."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 2, LONGEST_PAUSE)


class RemoteRunJob(Struct, frozen=True):
    """One child on another host, and the run that wants it."""

    tenant: str
    run_id: str
    name: str
    entry: RemoteChild
    trace: Trace
    #: the sequence after the last folded event; for an ended run, the length of its log
    next_sequence: int = 0

    @property
    def worker(self) -> str:
        return f"{self.entry.peer}{SLASH}{self.entry.workflow_id}"


class RemoteRuns:
    """The known hosts, and the tasks for child runs there."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._since = host.clock.millis()
        self._peers: dict[str, Peer] = {}
        self.host_id = ""
        #: the address at which other hosts reach this one, if known
        self.address = ""
        self.patience_ms = 600_000
        self._known: dict[str, tuple[int, PeerInfo]] = {}
        self._running: dict[str, dict[tuple[str, str], asyncio.Task[None]]] = {}
        #: names of requests that another host may have received without an answer
        self._sent: set[str] = set()
        #: ended run -> names of requests whose remote children are stopped
        self._done: dict[str, set[str]] = {}
        self._calls = asyncio.Semaphore(MOST_CALLS)
        self._streams = asyncio.Semaphore(MOST_STREAMS)

    def __len__(self) -> int:
        return sum(len(mine) for mine in self._running.values())

    def know(self, peers: list[Peer]) -> None:
        self._peers = {peer.name: peer for peer in peers}
        self._host.flows.peers = frozenset(self._peers)

    async def aclose(self) -> None:
        for peer in self._peers.values():
            await peer.aclose()

    def tend(self, head: Head, owed: list[tuple[str, str]]) -> None:
        """Start steps that are owed and not under way, and cancel those that are no longer owed.

        ``owed`` is on disk. A later decision may have made a step needless.
        """
        run = head.run
        if not owed and run.run_id not in self._running:
            return
        mine = self._running.get(run.run_id, {})
        for key in [key for key in mine if key not in owed]:
            mine.pop(key).cancel()
            if run.terminal and not owed:
                self._sent.discard(key[0])
        now = set(remote_children.pending_remote_children(run))
        for name, what in owed:
            if what == FOLLOW:  # the child's id is known now
                self._sent.discard(name)
            if (name, what) not in mine and (name, what) in now:
                job = self._job(run, name)
                mine[name, what] = self._host.tasks.start(self._work(job, what))
        if mine:
            self._running[run.run_id] = mine
        else:
            self._running.pop(run.run_id, None)

    def _job(self, run: Run, name: str) -> RemoteRunJob:
        trace = call_trace(run_trace(run.run_id, run.trace), name)
        entry = replace(run.abroad[name])
        return RemoteRunJob(run.tenant, run.run_id, name, entry, trace, run.next_sequence)

    async def _work(self, job: RemoteRunJob, what: str) -> None:
        try:
            if what == CREATE:
                await self._create(job)
            elif what == FOLLOW:
                await self._follow(job)
            else:
                await self._stop(job)
        except Unavailable:
            self._host.look_again(job.tenant, job.run_id)
        except MootError as refusal:
            log.exception("A run cannot go on", extra={"run_id": job.run_id, "code": refusal.code})
        finally:
            mine = self._running.get(job.run_id, {})
            if mine.get((job.name, what)) is asyncio.current_task():
                del mine[job.name, what]
            if not mine:
                self._running.pop(job.run_id, None)

    async def _send_command(self, job: RemoteRunJob, command: Command) -> None:
        """Send the command from its own task, because its consequences may cancel this one."""
        handled = self._host.handle(job.tenant, job.run_id, command)
        await asyncio.shield(self._host.tasks.start(handled))

    # -- create -------------------------------------------------------------------------------

    async def _create(self, job: RemoteRunJob) -> None:
        until = job.entry.asked_at + self.patience_ms
        for pause in retry_pauses():
            try:
                child, info = await self._request_run(job)
            except PeerError as trouble:
                if not trouble.passing or self._host.clock.millis() >= until:
                    await self._report_refusal(job, trouble)
                    return
            else:
                await self._send_command(
                    job,
                    PeerFound(
                        ask_id=job.name,
                        child_run=child,
                        host_id=info.host_id,
                        at=self._host.clock.millis(),
                    ),
                )
                return
            await asyncio.sleep(pause)

    async def _report_refusal(self, job: RemoteRunJob, trouble: PeerError) -> None:
        command = PeerRefused(
            ask_id=job.name,
            error=trouble.error,
            unsure=self._may_exist(job),
            at=self._host.clock.millis(),
        )
        await self._send_command(job, command)

    def _may_exist(self, job: RemoteRunJob) -> bool:
        """Return whether the other host may have started a run that this host does not know."""
        return job.name in self._sent or job.entry.asked_at < self._since

    async def _request_run(self, job: RemoteRunJob) -> tuple[str, PeerInfo]:
        """Create the run under the same name each time, while the host remembers it."""
        peer = self._peer(job)
        info = await self._discover(peer, job.trace)
        age = self._host.clock.millis() - job.entry.asked_at
        if self._may_exist(job) and age > SAFE_SHARE * info.remembers_ms:
            message = f"Whether host '{peer.name}' has begun the run is not known; look there."
            raise PeerError(peer.error("peer_outcome_unknown", message, askId=job.name))
        was_sent = job.name in self._sent
        self._sent.add(job.name)  # it stays there when this task is cancelled
        try:
            async with self._calls:
                origin = self._origin(job)
                child = await calls.create_remote_run(peer, job.entry, job.name, origin, job.trace)
        except PeerError as trouble:
            if not trouble.sent and not was_sent:
                self._sent.discard(job.name)
            raise
        return child, info

    def _peer(self, job: RemoteRunJob) -> Peer:
        peer = self._peers.get(job.entry.peer)
        if peer is None:
            name = job.entry.peer
            message = f"Host '{name}' is not configured here any more; name it with --peer."
            error = NodeError(code="peer_unknown", message=message, details={"peer": name})
            raise PeerError(error, passing=True)
        return peer

    async def _discover(self, peer: Peer, trace: Trace) -> PeerInfo:
        now = self._host.clock.millis()
        at, info = self._known.get(peer.name, (0, PeerInfo()))
        if not at or now - at > PEER_INFO_MS:
            async with self._calls:
                info = await calls.discover_peer(peer, trace)
            self._known[peer.name] = now, info
        return info

    def _origin(self, job: RemoteRunJob) -> PeerOrigin:
        return PeerOrigin(
            run_id=job.run_id,
            host_id=self.host_id,
            well_known_url=self.address.rstrip("/") + WELL_KNOWN,
            cause=job.entry.cause,
            event_id=event_id(job.run_id, job.entry.asked_seq),
            depth=job.entry.depth,
            tree=job.entry.tree,
        )

    # -- follow ------------------------------------------------------------------------------

    async def _follow(self, job: RemoteRunJob) -> None:
        """Follow the child as long as the run lives and the other host is only unreachable.

        A wrong answer must be followed by a good one within ``patience_ms``. Unreachable time does
        not count as an answer.
        """
        watch: RemoteRunWatch | None = None
        wrong_since: int | None = None
        waits = retry_pauses()
        while True:
            try:
                watch = watch or self._watch(job)
                watch.moved = False
                remote_run = await watch.once(self._streams)
                wrong_since = None
                if remote_run is not None:
                    await self._report_end(job, remote_run, watch.ended_by)
                    return
            except PeerError as trouble:
                now = self._host.clock.millis()
                wrong_since = wrong_since if trouble.passing else wrong_since or now
                late = wrong_since is not None and now - wrong_since >= self.patience_ms
                if trouble.gone or (late and not trouble.passing):
                    await self._report_lost(job, trouble)
                    return
                _log_trouble(job, trouble, "A child on another host is waited for: %s")
            if watch is not None and watch.moved:
                waits = retry_pauses()
            await asyncio.sleep(next(waits))

    def _watch(self, job: RemoteRunJob) -> RemoteRunWatch:
        assert job.entry.child is not None
        child = job.entry.child

        async def changed(status: Status) -> None:
            command = ChildWaits(
                node_id=job.entry.node_id,
                child_run=child,
                workflow_id=job.worker,
                status=status.value,
            )
            await self._send_command(job, command)

        return RemoteRunWatch(self._peer(job), child, job.trace, changed)

    async def _report_end(
        self, job: RemoteRunJob, remote_run: RemoteRun, ended_by: str | None
    ) -> None:
        has_cause = ended_by is not None and bool(job.entry.host_id)
        is_elsewhere = job.entry.host_id != self.host_id
        await self._send_end(
            job,
            ChildEnded(
                node_id=job.entry.node_id,
                child_run=str(job.entry.child),
                status=remote_run.status.value,
                at=self._host.clock.millis(),
                variables=remote_run.variables,
                outputs=remote_run.outputs or {},
                error=remote_run.failure(),
                runs=remote_run.used(job.entry.tree),
                cause=ended_by if has_cause and is_elsewhere else None,
                cause_host=job.entry.host_id,
            ),
        )

    async def _report_lost(self, job: RemoteRunJob, trouble: PeerError) -> None:
        """Report the child as failed to its parent, although it may still exist."""
        error: NodeError = trouble.error
        await self._send_end(
            job,
            ChildEnded(
                node_id=job.entry.node_id,
                child_run=str(job.entry.child),
                status="failed",
                at=self._host.clock.millis(),
                error=RecordedError(code=error.code, message=error.message),
                runs=max(1, job.entry.tree),
                stop=not trouble.gone,
            ),
        )

    async def _send_end(self, job: RemoteRunJob, command: ChildEnded) -> None:
        parent = await self._host.runs.head(job.tenant, job.run_id)
        await self._send_command(job, replace(command, sealed=parent.sealed))

    # -- stop --------------------------------------------------------------------------------

    async def _stop(self, job: RemoteRunJob) -> None:
        outcome = "stopped"
        if job.name not in self._done.get(job.run_id, ()):
            outcome = await self._stop_child(job)
        self._sent.discard(job.name)
        head = await self._host.runs.head(job.tenant, job.run_id)
        if not head.run.terminal:
            await self._send_command(job, PeerStopped(ask_id=job.name, outcome=outcome))
            return
        done = self._done.setdefault(job.run_id, set())
        done.add(job.name)
        if done >= {name for name, _ in remote_children.pending_remote_children(head.run)}:
            await self._forget(job)

    async def _stop_child(self, job: RemoteRunJob) -> str:
        """Stop the child and return ``stopped``, ``never-begun`` or ``given-up``."""
        until = job.entry.stop_at + STOP_PATIENCE_MS
        child = job.entry.child
        waits = retry_pauses()
        while True:
            if child is None and not self._may_exist(job):
                return "never-begun"
            try:
                if child is None:  # the answer was lost; the name leads to the same run
                    child, _ = await self._request_run(job)
                await self._cancel_child(job, child)
                return "stopped"
            except PeerError as trouble:
                if child is not None and trouble.gone:
                    return "stopped"
                if child is None and trouble.error.code == "peer_refused":
                    return "never-begun"
                hopeless = child is None and not trouble.passing
                if hopeless or self._host.clock.millis() >= until:
                    _log_trouble(job, trouble, "A child on another host could not be stopped: %s")
                    return "given-up"
                _log_trouble(job, trouble, "A child on another host is to be stopped: %s")
            await asyncio.sleep(next(waits))

    async def _cancel_child(self, job: RemoteRunJob, child: str) -> None:
        peer = self._peer(job)
        async with self._calls:
            await calls.cancel_remote_run(peer, child, job.name, str(job.entry.stop), job.trace)

    async def _forget(self, job: RemoteRunJob) -> None:
        """Delete the work row of an ended run that is owed nothing more. Its log is closed."""
        settled = Append(
            tenant=job.tenant, run_id=job.run_id, first=job.next_sequence, events=[], work=None
        )
        await self._host.store.commit(Batch(appends=[settled]))
        self._done.pop(job.run_id, None)


def _log_trouble(job: RemoteRunJob, trouble: PeerError, sentence: str) -> None:
    about = {"action": "peer.trouble", "run_id": job.run_id, "code": trouble.error.code}
    log.warning(sentence, trouble, extra=about)
