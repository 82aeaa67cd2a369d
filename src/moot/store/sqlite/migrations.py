"""Forward-only migrations from ``schema/*.sql``, each recorded with its checksum."""

import hashlib
from importlib.resources import files
from typing import NamedTuple

import apsw

from moot.store.sqlite.errors import SchemaRefused
from moot.store.sqlite.statements import load_statements, transaction

SQL = load_statements("file")


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
    if not db.execute(SQL["HAS_LEDGER"]).get:
        if db.execute(SQL["HAS_TABLES"]).get:
            raise SchemaRefused("The file is a SQLite database, but not one of Moot's.")
        return 0
    applied = db.execute(SQL["APPLIED"]).fetchall()
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
            db.execute(SQL["CREATE_LEDGER"])
        for migration in migrations[applied:]:
            db.execute(migration.sql).fetchall()
            row = migration.version, migration.name, migration.checksum
            db.execute(SQL["REMEMBER"], row)


def require_current(db: apsw.Connection, migrations: list[Migration]) -> None:
    """Raise SchemaRefused when the file needs a migration, which a reader must not do."""
    if schema_version(db, migrations) < len(migrations):
        raise SchemaRefused("The file has an older schema; start the server once to migrate it.")
