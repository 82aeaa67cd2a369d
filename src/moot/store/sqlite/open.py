"""Opening the file: the driver check, the lock against a second writer, the connections."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw

from moot.store.sqlite.errors import StoreBusy, StoreRefused
from moot.store.sqlite.migrations import migrate, require_current, shipped
from moot.store.sqlite.read.readers import BUSY_MS, Readers, connect_reader

#: the first release in which a known corruption of WAL files is repaired
OLDEST_SQLITE = (3, 51, 3)

WRITER_PRAGMAS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -32000;
PRAGMA secure_delete = ON;
"""


def check_driver(version: str | None = None) -> None:
    """Refuses a SQLite that is too old to be trusted with a log."""
    version = version or apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise StoreRefused(f"SQLite {version} is too old; install an apsw with {needed} or newer.")


class WriteFiles:
    """What the writing process holds open."""

    def __init__(self, readers: Readers, db: apsw.Connection, lock: "WriteLock") -> None:
        self.readers = readers
        self.db = db
        self._lock = lock

    def close(self) -> None:
        """The write connection last: closing it folds the WAL into the file."""
        self.readers.close()
        self.db.close()
        self._lock.release()


def open_to_write(path: Path) -> WriteFiles:
    with _explained(path), ExitStack() as undo:
        path = path.resolve()  # the same file by another name is the same file
        lock = WriteLock(path)
        _keep_private(path)
        undo.callback(lock.release)
        db = _connect_writer(path)
        undo.callback(db.close)
        migrate(db, shipped())
        files = WriteFiles(Readers(path), db, lock)
        undo.pop_all()
    return files


def _keep_private(path: Path) -> None:
    """A new file is its owner's alone; SQLite gives the files beside it the same rights."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def open_to_read(path: Path) -> Readers:
    with _explained(path):
        db = connect_reader(path)
        try:
            require_current(db, shipped())
        finally:
            db.close()
        return Readers(path)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, OSError) as failure:
        raise StoreRefused(f"{path} cannot be opened: {failure}.") from failure


def _connect_writer(path: Path) -> apsw.Connection:
    # a group's statements come in powers of two of rows, for each table
    db = apsw.Connection(str(path), statementcachesize=256)
    db.set_busy_timeout(BUSY_MS)
    db.execute(WRITER_PRAGMAS).fetchall()  # a statement runs once the rows before it are read
    return db


class WriteLock:
    """Held by the one process that may write. The file stays and names the last one that had it;
    only the lock comes and goes."""

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._handle = os.open(f"{path}.lock", flags, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _holder(self._handle)
            os.close(self._handle)
            who = f" (process {pid})" if pid else ""
            raise StoreBusy(
                f"{path} is in use by another Moot{who}; stop that one first, or use another file.",
                pid,
            ) from None
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Safe to call twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _holder(handle: int) -> int | None:
    """Who has the lock, as it wrote into the file."""
    said = os.pread(handle, 32, 0).strip()
    return int(said) if said.isdigit() else None
