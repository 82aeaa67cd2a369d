"""Forward-only migrations from ``schema/*.sql``, each recorded with its checksum."""

import hashlib
from importlib.resources import files
from typing import NamedTuple

import apsw

from moot.store.sqlite.errors import SchemaRefused
from moot.store.sqlite.statements import transaction

CREATE_LEDGER = """
CREATE TABLE schema_migrations (
  version  INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,
  checksum TEXT NOT NULL
) STRICT
"""
HAS_TABLES = "SELECT EXISTS (SELECT 1 FROM sqlite_schema)"
HAS_LEDGER = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations')"
APPLIED = "SELECT version, checksum FROM schema_migrations ORDER BY version"
REMEMBER = "INSERT INTO schema_migrations VALUES (?, ?, ?)"


class Migration(NamedTuple):
    """One numbered SQL file of the schema."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load_migrations() -> list[Migration]:
    """Return the migrations of this version, in order."""
    folder = files("moot.store.sqlite").joinpath("schema")
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    texts = (folder.joinpath(name).read_text("utf-8") for name in names)
    return [Migration(int(name[:4]), name, text) for name, text in zip(names, texts, strict=True)]


def schema_version(db: apsw.Connection, migrations: list[Migration]) -> int:
    """Return the number of applied migrations.

    Raise SchemaRefused when this version cannot have written the file.
    """
    if not db.execute(HAS_LEDGER).get:
        if db.execute(HAS_TABLES).get:
            raise SchemaRefused("The file is a SQLite database, but not one of Moot's.")
        return 0
    applied = db.execute(APPLIED).fetchall()
    if len(applied) > len(migrations):
        raise SchemaRefused(
            f"The file has schema {applied[-1][0]}, this version knows {migrations[-1].version}:"
            " it was written by a newer Moot; use that one."
        )
    for (version, checksum), migration in zip(applied, migrations, strict=False):
        if (version, checksum) != (migration.version, migration.checksum):
            raise SchemaRefused(
                f"Migration {version} of the file is not the {migration.name} of this version;"
                " restore a backup or use the version that wrote it."
            )
    return len(applied)


def migrate(db: apsw.Connection, migrations: list[Migration]) -> None:
    """Bring the file to the newest schema, in one transaction."""
    with transaction(db):
        applied = schema_version(db, migrations)
        if applied == 0:
            db.execute(CREATE_LEDGER)
        for migration in migrations[applied:]:
            db.execute(migration.sql).fetchall()
            db.execute(REMEMBER, (migration.version, migration.name, migration.checksum))


def require_current(db: apsw.Connection, migrations: list[Migration]) -> None:
    """Raise SchemaRefused when the file needs a migration, which a reader must not do."""
    if schema_version(db, migrations) < len(migrations):
        raise SchemaRefused("The file has an older schema; start the server once to migrate it.")
