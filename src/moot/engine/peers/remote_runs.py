"""Child runs on other hosts: asked for, followed, stopped. What is owed comes from the log of the
parent, so that a crash on either side only means to ask again."""

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
from moot.core.runs.child_outputs import ChildEnded
from moot.core.state import remote_children
from moot.core.state.remote_children import CREATE, FOLLOW, Abroad
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.supervisors.peer_answers import PeerFound, PeerRefused, PeerStopped
from moot.core.trace import Trace, of_run, within
from moot.core.workflows.node_types import NodeError
from moot.core.workflows.peer_ids import SLASH, WELL_KNOWN, Origin
from moot.engine.head import Head
from moot.engine.peers import calls
from moot.engine.peers.calls import Known, Peer, Shown, Trouble
from moot.engine.peers.watch import Watch
from moot.store.protocol import Append, Batch

if TYPE_CHECKING:
    from moot.engine.host import Host

log = logging.getLogger("moot.engine")

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0
#: how long a child that is not wanted is looked for, in ms
STOP_PATIENCE_MS = 86_400_000
#: of the time another host remembers answers, so much is relied on
SAFE_SHARE = 0.95
KNOWN_MS = 300_000
MOST_CALLS = 64
MOST_STREAMS = 512


def pauses() -> Iterator[float]:
    """Seconds between two tries: doubling, bounded."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 2, LONGEST_PAUSE)


class Job(Struct, frozen=True):
    """One child on another host, and the run that wants it."""

    tenant: str
    run_id: str
    name: str
    entry: Abroad
    trace: Trace
    #: the state's place after its last event: for a run that has ended, that of its whole log
    next_sequence: int = 0

    @property
    def worker(self) -> str:
        return f"{self.entry.peer}{SLASH}{self.entry.workflow_id}"


class Peers:
    """The hosts that are known, and the tasks that see to children there."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._since = host.clock.millis()
        self._peers: dict[str, Peer] = {}
        self.host_id = ""
        #: where this host can be reached, as far as it knows
        self.address = ""
        self.patience_ms = 600_000
        self._known: dict[str, tuple[int, Known]] = {}
        self._running: dict[str, dict[tuple[str, str], asyncio.Task[None]]] = {}
        #: names that another host may have been asked for in vain
        self._sent: set[str] = set()
        #: names of runs that have ended, whose children elsewhere know it
        self._done: dict[str, set[str]] = {}
        self._calls = asyncio.Semaphore(MOST_CALLS)
        self._streams = asyncio.Semaphore(MOST_STREAMS)

    def __len__(self) -> int:
        return sum(len(mine) for mine in self._running.values())

    def know(self, peers: list[Peer]) -> None:
        self._peers = {peer.name: peer for peer in peers}
        self._host.flows.peers = frozenset(self._peers)

    def tend(self, head: Head, owed: list[tuple[str, str]]) -> None:
        """Begin what is owed and not under way, end what is not owed any more.

        ``owed`` is on disk; what has been decided since then may have made it needless.
        """
        run = head.run
        if not owed and run.run_id not in self._running:
            return
        mine = self._running.get(run.run_id, {})
        for key in [key for key in mine if key not in owed]:
            mine.pop(key).cancel()
            if run.terminal and not owed:
                self._sent.discard(key[0])
        now = set(remote_children.owed(run))
        for name, what in owed:
            if what == FOLLOW:  # its child is known
                self._sent.discard(name)
            if (name, what) not in mine and (name, what) in now:
                job = self._job(run, name)
                mine[name, what] = self._host.tasks.start(self._work(job, what))
        if mine:
            self._running[run.run_id] = mine
        else:
            self._running.pop(run.run_id, None)

    def _job(self, run: Run, name: str) -> Job:
        trace = within(of_run(run.run_id, run.trace), name)
        entry = replace(run.abroad[name])
        return Job(run.tenant, run.run_id, name, entry, trace, run.next_sequence)

    async def _work(self, job: Job, what: str) -> None:
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

    async def _say(self, job: Job, command: Command) -> None:
        """In a task of its own: what follows from it may end the one that says it."""
        handled = self._host.handle(job.tenant, job.run_id, command)
        await asyncio.shield(self._host.tasks.start(handled))

    # -- begin -------------------------------------------------------------------------------

    async def _create(self, job: Job) -> None:
        until = job.entry.asked_at + self.patience_ms
        for pause in pauses():
            try:
                child, known = await self._created(job)
            except Trouble as trouble:
                if not trouble.passing or self._host.clock.millis() >= until:
                    await self._refused(job, trouble)
                    return
            else:
                await self._say(
                    job,
                    PeerFound(
                        ask_id=job.name,
                        child_run=child,
                        host_id=known.host_id,
                        at=self._host.clock.millis(),
                    ),
                )
                return
            await asyncio.sleep(pause)

    async def _refused(self, job: Job, trouble: Trouble) -> None:
        command = PeerRefused(
            ask_id=job.name,
            error=trouble.error,
            unsure=self._maybe_there(job),
            at=self._host.clock.millis(),
        )
        await self._say(job, command)

    def _maybe_there(self, job: Job) -> bool:
        """Whether the other host may have begun a run that nobody here has heard of."""
        return job.name in self._sent or job.entry.asked_at < self._since

    async def _created(self, job: Job) -> tuple[str, Known]:
        """Asks under the same name each time, for as long as the other host remembers names."""
        peer = self._peer(job)
        known = await self._discovered(peer, job.trace)
        age = self._host.clock.millis() - job.entry.asked_at
        if self._maybe_there(job) and age > SAFE_SHARE * known.remembers_ms:
            said = f"Whether host '{peer.name}' has begun the run is not known; look there."
            raise Trouble(peer.error("peer_outcome_unknown", said, askId=job.name))
        before = job.name in self._sent
        self._sent.add(job.name)  # and it stays there when this task is cancelled in the middle
        try:
            async with self._calls:
                origin = self._origin(job)
                child = await calls.create(peer, job.entry, job.name, origin, job.trace)
        except Trouble as trouble:
            if not trouble.sent and not before:
                self._sent.discard(job.name)
            raise
        return child, known

    def _peer(self, job: Job) -> Peer:
        peer = self._peers.get(job.entry.peer)
        if peer is None:
            name = job.entry.peer
            message = f"Host '{name}' is not configured here any more; name it with --peer."
            error = NodeError(code="peer_unknown", message=message, details={"peer": name})
            raise Trouble(error, passing=True)
        return peer

    async def _discovered(self, peer: Peer, trace: Trace) -> Known:
        now = self._host.clock.millis()
        at, known = self._known.get(peer.name, (0, Known()))
        if not at or now - at > KNOWN_MS:
            async with self._calls:
                known = await calls.discovered(peer, trace)
            self._known[peer.name] = now, known
        return known

    def _origin(self, job: Job) -> Origin:
        return Origin(
            run_id=job.run_id,
            host_id=self.host_id,
            well_known_url=self.address.rstrip("/") + WELL_KNOWN,
            cause=job.entry.cause,
            event_id=event_id(job.run_id, job.entry.asked_seq),
            depth=job.entry.depth,
            tree=job.entry.tree,
        )

    # -- follow ------------------------------------------------------------------------------

    async def _follow(self, job: Job) -> None:
        """As long as the run lives and the other host is only away. What is wrong with it must
        be followed by a good answer within its time; that it was away meanwhile is none."""
        watch: Watch | None = None
        wrong: int | None = None
        waits = pauses()
        while True:
            try:
                watch = watch or self._watch(job)
                watch.moved = False
                shown = await watch.once(self._streams)
                wrong = None
                if shown is not None:
                    await self._ended(job, shown, watch.ended_by)
                    return
            except Trouble as trouble:
                now = self._host.clock.millis()
                wrong = wrong if trouble.passing else wrong or now
                late = wrong is not None and now - wrong >= self.patience_ms
                if trouble.gone or (late and not trouble.passing):
                    await self._lost(job, trouble)
                    return
                _note(job, trouble, "A child on another host is waited for: %s")
            if watch is not None and watch.moved:
                waits = pauses()
            await asyncio.sleep(next(waits))

    def _watch(self, job: Job) -> Watch:
        assert job.entry.child is not None
        child = job.entry.child

        async def changed(status: Status) -> None:
            command = ChildWaits(
                node_id=job.entry.node_id,
                child_run=child,
                workflow_id=job.worker,
                status=status.value,
            )
            await self._say(job, command)

        return Watch(self._peer(job), child, job.trace, changed)

    async def _ended(self, job: Job, shown: Shown, ended_by: str | None) -> None:
        known = ended_by is not None and bool(job.entry.host_id)
        away = job.entry.host_id != self.host_id
        await self._over(
            job,
            ChildEnded(
                node_id=job.entry.node_id,
                child_run=str(job.entry.child),
                status=shown.status.value,
                at=self._host.clock.millis(),
                variables=shown.variables,
                outputs=shown.outputs or {},
                error=shown.failure(),
                runs=shown.used(job.entry.tree),
                cause=ended_by if known and away else None,
                cause_host=job.entry.host_id,
            ),
        )

    async def _lost(self, job: Job, trouble: Trouble) -> None:
        """For its parent the child has failed; it may be there still."""
        error: NodeError = trouble.error
        await self._over(
            job,
            ChildEnded(
                node_id=job.entry.node_id,
                child_run=str(job.entry.child),
                status="failed",
                at=self._host.clock.millis(),
                error={"code": error.code, "message": error.message},
                runs=max(1, job.entry.tree),
                stop=not trouble.gone,
            ),
        )

    async def _over(self, job: Job, command: ChildEnded) -> None:
        parent = await self._host.runs.head(job.tenant, job.run_id)
        await self._say(job, replace(command, sealed=parent.sealed))

    # -- stop --------------------------------------------------------------------------------

    async def _stop(self, job: Job) -> None:
        outcome = "stopped"
        if job.name not in self._done.get(job.run_id, ()):
            outcome = await self._told(job)
        self._sent.discard(job.name)
        head = await self._host.runs.head(job.tenant, job.run_id)
        if not head.run.terminal:
            await self._say(job, PeerStopped(ask_id=job.name, outcome=outcome))
            return
        done = self._done.setdefault(job.run_id, set())
        done.add(job.name)
        if done >= {name for name, _ in remote_children.owed(head.run)}:
            await self._forget(job)

    async def _told(self, job: Job) -> str:
        """What came of it: ``stopped``, ``never-begun`` or ``given-up``."""
        until = job.entry.stop_at + STOP_PATIENCE_MS
        child = job.entry.child
        waits = pauses()
        while True:
            if child is None and not self._maybe_there(job):
                return "never-begun"
            try:
                if child is None:  # the answer was never heard: the name leads to the same run
                    child, _ = await self._created(job)
                await self._cancelled(job, child)
                return "stopped"
            except Trouble as trouble:
                if child is not None and trouble.gone:
                    return "stopped"
                if child is None and trouble.error.code == "peer_refused":
                    return "never-begun"
                hopeless = child is None and not trouble.passing
                if hopeless or self._host.clock.millis() >= until:
                    _note(job, trouble, "A child on another host could not be stopped: %s")
                    return "given-up"
                _note(job, trouble, "A child on another host is to be stopped: %s")
            await asyncio.sleep(next(waits))

    async def _cancelled(self, job: Job, child: str) -> None:
        peer = self._peer(job)
        async with self._calls:
            await calls.cancel(peer, child, job.name, str(job.entry.stop), job.trace)

    async def _forget(self, job: Job) -> None:
        """A run that has ended is owed nothing more; its log is closed, its row of work is not."""
        settled = Append(
            tenant=job.tenant, run_id=job.run_id, first=job.next_sequence, events=[], work=None
        )
        await self._host.store.commit(Batch(appends=[settled]))
        self._done.pop(job.run_id, None)


def _note(job: Job, trouble: Trouble, sentence: str) -> None:
    about = {"action": "peer.trouble", "run_id": job.run_id, "code": trouble.error.code}
    log.warning(sentence, trouble, extra=about)
