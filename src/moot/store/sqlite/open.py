"""Open the file: check the driver, lock out a second writer, connect."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw

from moot.store.sqlite.errors import StoreBusy, StoreRefused
from moot.store.sqlite.migrations import SQL, load_migrations, migrate, require_current
from moot.store.sqlite.read.readers import BUSY_MS, Readers, connect_reader

#: the first release that fixes a known corruption of WAL files
OLDEST_SQLITE = (3, 51, 3)


def check_driver(version: str | None = None) -> None:
    """Raise StoreRefused when SQLite is too old to be trusted with a log."""
    version = version or apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise StoreRefused(f"SQLite {version} is too old; install an apsw with {needed} or newer.")


class WriteSide:
    """The connections and the lock of the writing process."""

    def __init__(self, readers: Readers, db: apsw.Connection, lock: "WriteLock") -> None:
        self.readers = readers
        self.db = db
        self._lock = lock

    def close(self) -> None:
        """Close the write connection last, which merges the WAL into the file."""
        self.readers.close()
        self.db.close()
        self._lock.release()


def open_to_write(path: Path) -> WriteSide:
    with _refuse_with_path(path), ExitStack() as undo:
        path = path.resolve()  # one file must have one lock, whatever its name
        lock = WriteLock(path)
        _create_private(path)
        undo.callback(lock.release)
        db = _connect_writer(path)
        undo.callback(db.close)
        migrate(db, load_migrations())
        write_side = WriteSide(Readers(path), db, lock)
        undo.pop_all()
    return write_side


def _create_private(path: Path) -> None:
    """Create a file that only its owner can use; SQLite copies the mode to its other files."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def open_to_read(path: Path) -> Readers:
    with _refuse_with_path(path):
        db = connect_reader(path)
        try:
            require_current(db, load_migrations())
        finally:
            db.close()
        return Readers(path)


@contextmanager
def _refuse_with_path(path: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, OSError) as failure:
        raise StoreRefused(f"{path} cannot be opened: {failure}.") from failure


def _connect_writer(path: Path) -> apsw.Connection:
    # each table has bulk statements for 1, 2, 4 … rows; the cache must hold all of them
    db = apsw.Connection(str(path), statementcachesize=256)
    db.set_busy_timeout(BUSY_MS)
    # each statement runs only after the rows before it
    db.execute(SQL["WRITER_PRAGMAS"]).fetchall()
    return db


class WriteLock:
    """The lock of the one process that may write.

    The lock file stays after the lock is released; it names the last holder.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._handle = os.open(f"{path}.lock", flags, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _read_holder(self._handle)
            os.close(self._handle)
            process = f" (process {pid})" if pid else ""
            advice = "stop that one first, or use another file"
            raise StoreBusy(f"{path} is in use by another Moot{process}; {advice}.", pid) from None
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Safe to call twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _read_holder(handle: int) -> int | None:
    pid = os.pread(handle, 32, 0).strip()
    return int(pid) if pid.isdigit() else None
