"""moot db: looked at while a server runs, found out when tampered with, rebuilt from the log."""

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support.cli.commands import SERVER_ARGUMENTS, Cli, write_flows
from tests.support.servers import ServerProcess, server_environment

DERIVED = ("runs", "work", "effects")


def rows_of(database: Path) -> dict[str, list[Any]]:
    db = apsw.Connection(str(database))
    found = {table: sorted(db.execute(f"SELECT * FROM {table}")) for table in DERIVED}
    db.close()
    return found


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a server that was killed with runs in every state."""
    folder = tmp_path_factory.mktemp("db")
    write_flows(folder)
    server = ServerProcess(folder, SERVER_ARGUMENTS, server_environment())
    moot = Cli(folder)
    for flow in ("hello", "breaks", "mails", "parent", "flaky"):
        moot("run", flow)
    for _ in range(2):
        moot("run", "slow", "-d")
    moot("run", "cancel", "@last")
    moot("run", "slow", "-d")
    moot("run", "pause", "@last", "--now")
    server.kill()
    return server.database


@pytest.fixture
def copy(lived_in: Path, tmp_path: Path) -> Cli:
    moot = Cli(tmp_path)
    assert moot("db", "backup", "moot.db", lived_in).code == 0
    return moot


def test_derived_rows_are_the_same_after_a_rebuild(copy: Cli) -> None:
    database = copy.folder / "moot.db"
    before = rows_of(database)
    statuses = {row[4] for row in before["runs"]}
    assert statuses >= {"completed", "failed", "cancelled", "paused", "running"}
    assert before["work"]
    assert before["effects"]
    db = apsw.Connection(str(database))
    for table in (*DERIVED, "snapshots"):
        db.execute(f"DELETE FROM {table}")
    db.close()
    done = copy("db", "rebuild")
    assert done.code == 0
    assert f"{len(before['runs'])} runs" in done.out
    assert rows_of(database) == before
    assert copy("db", "verify").code == 0


def test_stats_count_what_is_there(copy: Cli) -> None:
    found = json.loads(copy("db", "stats", "--json").out)
    assert found["runs"] == sum(found["statuses"].values())
    assert "runs" in copy("db", "stats").out


def test_a_whole_file_is_called_whole(copy: Cli) -> None:
    done = copy("db", "verify")
    assert (done.code, done.out) == (0, "moot.db is whole\n")


def test_a_changed_event_is_found_and_exits_1(copy: Cli) -> None:
    db = apsw.Connection(str(copy.folder / "moot.db"))
    changed = "CAST(replace(CAST(body AS TEXT), 'no milk', 'no silk') AS BLOB)"
    db.execute(f"UPDATE events SET body = {changed}")
    db.close()
    done = copy("db", "verify")
    assert done.code == 1
    assert "does not match its hash" in done.out
    assert done.err.startswith("error: ")
    assert len(json.loads(copy("db", "verify", "--json").out)) == 1


def test_looking_is_possible_while_a_server_runs_and_rebuilding_is_not(moot: Cli) -> None:
    assert moot("db", "stats").code == 0
    assert moot("db", "verify").code == 0
    refused = moot("db", "rebuild")
    assert refused.code == 1
    assert "in use" in refused.err


def test_a_backup_never_replaces_a_file(copy: Cli) -> None:
    assert copy("db", "backup", "again.db").code == 0
    done = copy("db", "backup", "again.db")
    assert done.code == 1
    assert "never replaces" in done.err


def test_a_missing_file_exits_5_and_is_not_made(alone: Cli) -> None:
    assert alone("db", "stats").code == 5
    assert alone("db", "rebuild", "x.db").code == 5
    assert not list(alone.folder.iterdir())
