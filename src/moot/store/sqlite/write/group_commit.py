"""The writer thread. All batches that arrive during a commit share the next one.

The thread updates the search index when it is idle, so that a burst of turns does not pay for it.
Only when very many texts wait does it index a chunk after each commit.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import apsw
import msgspec

from moot.core.errors import StorageFailed, Unavailable
from moot.store.protocol import Batch
from moot.store.sqlite.statements import transaction
from moot.store.sqlite.write.group_rows import BatchGroup, ReceiptKey, receipt_key
from moot.store.sqlite.write.heads import LogHeads
from moot.store.sqlite.write.records import RecordChanges
from moot.store.sqlite.write.search_index import CHUNK, SearchIndexer
from moot.store.sqlite.write.statements import SQL

T = TypeVar("T")

#: a larger transaction would only make its first callers wait
GROUP_LIMIT = 2000
CACHED_HEADS = 10_000
#: how many loop iterations the writer waits for a caller that announced another batch
MOST_ROUNDS = 2
#: seconds without a job after which waiting texts are indexed
IDLE_S = 0.5
#: texts that may wait while the writer is busy; a search that comes then indexes them in 0.3 s
MOST_WAITING = 20_000
#: chunks that are indexed before the file is closed; the rest stays queued in the file
MOST_AT_CLOSE = 16

_encode = msgspec.json.Encoder().encode


class QueuedBatch:
    """A batch and the future of the caller that waits for it."""

    __slots__ = ("batch", "done", "failure")

    def __init__(self, batch: Batch, done: asyncio.Future[None]) -> None:
        self.batch = batch
        self.done = done
        self.failure: Exception | None = None


class QueuedCall:
    """A function that the writer thread runs between two groups."""

    __slots__ = ("done", "failure", "result", "work")

    def __init__(
        self, work: Callable[[apsw.Connection, LogHeads], Any], done: asyncio.Future[Any]
    ) -> None:
        self.work = work
        self.done = done
        self.result: Any = None
        self.failure: Exception | None = None


class Writer:
    """The owner of the only write connection.

    A failed commit fails its callers, never the thread.
    """

    def __init__(
        self, db: apsw.Connection, *, queue_limit: int, cached_heads: int = CACHED_HEADS
    ) -> None:
        self._db = db
        self._heads = LogHeads(db, cached_heads)
        self._indexer = SearchIndexer(db)
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[list[QueuedBatch] | QueuedCall | None] = queue.SimpleQueue()
        self._queue_limit = queue_limit
        self._gathered: list[QueuedBatch] = []
        #: batches whose callers still wait; only the loop changes the number
        self._waiting = 0
        self._put_back: list[list[QueuedBatch] | QueuedCall | None] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="moot-writer", daemon=True)
        self._thread.start()

    async def commit(self, batch: Batch) -> None:
        if self._waiting >= self._queue_limit:
            raise Unavailable("The disk cannot keep up; try again shortly.", retry_after=1)
        self._refuse_closed()
        done = self._loop.create_future()
        if not self._gathered:
            self._loop.call_soon(self._gather)
        self._gathered.append(QueuedBatch(batch, done))
        self._waiting += 1
        await done

    def _gather(self, left: int = MOST_ROUNDS, before: int | None = None) -> None:
        """Hand over the gathered batches after one loop iteration.

        If a caller announced another batch, wait for it for up to ``left`` more iterations.
        """
        count = len(self._gathered)
        grew = before is not None and count > before
        if left and not grew and any(queued.batch.more for queued in self._gathered):
            self._loop.call_soon(self._gather, left - 1, count)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        """Put all gathered batches in the queue at once.

        If each batch woke the thread, the thread would compete with the loop for the interpreter
        and commit smaller groups.
        """
        for start in range(0, len(self._gathered), GROUP_LIMIT):
            self._queue.put(self._gathered[start : start + GROUP_LIMIT])
        self._gathered.clear()

    async def catch_up(self) -> None:
        """Return when all texts committed so far are indexed, or when the disk refuses."""
        for _ in range(-(-self._indexer.waiting // CHUNK)):
            if not await self.call(lambda db, heads: self._index()):
                return

    async def reindex(self) -> None:
        """Index all queued texts. For use after the index was emptied and the queue refilled."""
        await self.call(lambda db, heads: self._indexer.reload())
        await self.catch_up()

    async def call(self, work: Callable[[apsw.Connection, LogHeads], T]) -> T:
        """Run ``work`` on the writer thread, after all jobs that are queued before it."""
        self._refuse_closed()
        self._hand_over()
        done: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(QueuedCall(work, done))
        return await done

    def _refuse_closed(self) -> None:
        if self._closed:
            raise Unavailable("The store is closed.")

    async def aclose(self) -> None:
        """Write everything that is queued, then stop the thread. Safe to call twice."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def _settle(self, jobs: list[QueuedBatch] | list[QueuedCall]) -> None:
        """Pass results to the callers. Runs on the loop."""
        for job in jobs:
            self._waiting -= isinstance(job, QueuedBatch)
            if job.done.done():  # the caller gave up waiting
                continue
            if job.failure is not None:
                job.done.set_exception(job.failure)
            else:
                job.done.set_result(job.result if isinstance(job, QueuedCall) else None)

    # the writer thread

    def _run(self) -> None:
        while (job := self._next_job()) is not None:
            if isinstance(job, QueuedCall):
                self._run_call(job)
                done: list[QueuedBatch] | list[QueuedCall] = [job]
            else:
                self._commit(job)
                done = job
            with suppress(RuntimeError):  # the loop is closed, so no caller waits
                self._loop.call_soon_threadsafe(self._settle, done)
            if self._indexer.waiting >= MOST_WAITING:
                self._index()
        for _ in range(MOST_AT_CLOSE):
            if not self._indexer.waiting or not self._index():
                break

    def _next_job(self) -> list[QueuedBatch] | QueuedCall | None:
        job = self._put_back.pop() if self._put_back else self._wait_for_job()
        while isinstance(job, list):
            try:
                more = self._queue.get_nowait()
            except queue.Empty:
                break
            if not isinstance(more, list) or len(job) + len(more) > GROUP_LIMIT:
                self._put_back.append(more)
                break
            job += more
        return job

    def _wait_for_job(self) -> list[QueuedBatch] | QueuedCall | None:
        """Return the next job; once the thread is idle, update the index until one arrives."""
        patience = IDLE_S
        while self._indexer.waiting:
            with suppress(queue.Empty):
                return self._queue.get(timeout=patience)
            if not self._index():
                break
            patience = 0
        return self._queue.get()

    def _index(self) -> bool:
        """Index one chunk. Return False when the disk refuses; the next job triggers a retry."""
        try:
            self._indexer.index_chunk()
        except apsw.Error:
            return False
        return True

    def _run_call(self, call: QueuedCall) -> None:
        try:
            call.result = call.work(self._db, self._heads)
        except apsw.Error as failure:
            call.failure = _disk_refusal(failure)
        except Exception as failure:
            call.failure = failure

    def _commit(self, batches: list[QueuedBatch]) -> None:
        last_number = self._heads.last_number
        group = BatchGroup(self._heads, RecordChanges(self._db))
        try:
            self._fill(group, batches)
        except Exception as failure:
            self._heads.forget(group.touched)
            self._heads.last_number = last_number
            self._fail(batches, failure)
        self._heads.trim()

    def _fill(self, group: BatchGroup, batches: list[QueuedBatch]) -> None:
        self._heads.load(append.run_id for queued in batches for append in queued.batch.appends)
        group.taken |= self._taken_receipts(batches)
        for queued in batches:
            queued.failure = group.add(queued.batch)
        if any(queued.failure is None for queued in batches):
            with transaction(self._db):
                group.write(self._db)
            self._indexer.waiting += group.texts

    def _fail(self, batches: list[QueuedBatch], failure: Exception) -> None:
        if _is_disk_failure(failure):
            for queued in batches:
                queued.failure = _disk_refusal(failure)
        elif len(batches) == 1:
            batches[0].failure = failure
        else:  # one batch cannot be stored; queued each alone, so that the others succeed
            for queued in batches:
                self._commit([queued])

    def _taken_receipts(self, batches: list[QueuedBatch]) -> set[ReceiptKey]:
        receipts = [queued.batch.receipt for queued in batches if queued.batch.receipt is not None]
        if not receipts:
            return set()
        keys_json = _encode([receipt_key(receipt) for receipt in receipts]).decode()
        taken = self._db.execute(SQL["TAKEN_RECEIPTS"], (keys_json,))
        return {(tenant, operation, key) for tenant, operation, key in taken}


def _is_disk_failure(failure: Exception) -> bool:
    bad_values = (apsw.ConstraintError, apsw.TooBigError, apsw.MismatchError)
    return isinstance(failure, apsw.Error) and not isinstance(failure, bad_values)


def _disk_refusal(failure: Exception) -> StorageFailed:
    refusal = StorageFailed(f"The disk refused the write ({failure}); nothing of it was kept.")
    refusal.__cause__ = failure
    return refusal
