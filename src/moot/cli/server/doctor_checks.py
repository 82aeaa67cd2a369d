"""The checks of ``moot doctor``, one function each: (ok | warning | problem, a sentence)."""

import os
import platform
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from moot.cli.shared.client import Client, Unreachable
from moot.config.place import Place, key_file

if TYPE_CHECKING:
    from moot.agents.models.config import ModelEntry
    from moot.config.settings import Settings

Finding = tuple[str, str]

OLDEST_PYTHON = (3, 11)
SYNCS = 20
#: seconds a provider has to open its door
KNOCK_S = 3.0
#: milliseconds: a disk that syncs faster than this may only say that it does
TOO_QUICK, TOO_SLOW = 0.03, 50.0
#: 2025-01-01 in ms: before that, Moot did not exist
EARLIEST = 1_735_689_600_000
#: what the protocol asks of a discovery document
CAPABILITIES = "/capabilities.schema.json"
DISCOVERY = ("protocolVersion", "supportedEnvelopes", "schemaVersions", "limits")


def python(where: Place, settings: "Settings") -> Finding:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        return "problem", f"{version} is too old; install 3.11 or newer"
    return "ok", version


def sqlite(where: Place, settings: "Settings") -> Finding:
    import apsw

    from moot.store.sqlite.errors import StoreRefused
    from moot.store.sqlite.open import check_driver

    try:
        check_driver()
    except StoreRefused as refusal:
        return "problem", str(refusal)
    return "ok", apsw.sqlite_lib_version()


def store(where: Place, settings: "Settings") -> Finding:
    """A quick look; ``moot db verify`` reads every byte."""
    import apsw

    from moot.store.sqlite.errors import StoreRefused
    from moot.store.sqlite.open import open_to_read
    from moot.store.sqlite.read.readers import connect_reader

    file = where.database
    if not file.exists():
        return "ok", f"{file} does not exist yet; moot serve makes it"
    try:
        open_to_read(file).close()
        db = connect_reader(file)
        complaints = [row[0] for row in db.execute("PRAGMA quick_check") if row[0] != "ok"]
        db.close()
    except (StoreRefused, apsw.Error) as refusal:
        return "problem", f"{refusal} Restore a backup of it."
    if complaints:
        return "problem", f"{file}: {complaints[0]}; restore a backup, then: moot db verify"
    size = file.stat().st_size / 1_048_576
    return "ok", f"{file}, {size:.1f} MB, quick check passed (moot db verify reads every byte)"


def key(where: Place, settings: "Settings") -> Finding:
    file = key_file(where.database)
    if not file.exists():
        return "ok", f"{file} does not exist yet; moot serve makes it"
    mode = file.stat().st_mode & 0o777
    if mode & 0o077:
        return "problem", f"others can read {file} (mode {mode:o}); run: chmod 600 {file}"
    return "ok", f"{file}, readable by you only"


def disk(where: Place, settings: "Settings") -> Finding:
    """Whether a sync takes as long as one must."""
    folder = where.database.resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return "problem", f"{folder} cannot be written to"
    middle = statistics.median(_sync_times(folder))
    if middle < TOO_QUICK:
        says = f"a sync takes {middle:.3f} ms: this disk may lose what it has confirmed"
        return "warning", says
    if middle > TOO_SLOW:
        return "warning", f"a sync takes {middle:.0f} ms; every commit waits for one"
    return "ok", f"a sync takes {middle:.2f} ms"


def _sync_times(folder: Path) -> list[float]:
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(SYNCS):
            file.write(b"\0" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - began) * 1000)
    return times


def clock(where: Place, settings: "Settings") -> Finding:
    import apsw

    from moot.clock import SystemClock
    from moot.core.events import iso
    from moot.store.sqlite.read.readers import connect_reader

    now = SystemClock().millis()
    if now < EARLIEST:
        return "problem", f"it says {iso(now * 1000)}; set the clock"
    if where.database.exists():
        try:
            db = connect_reader(where.database)
            newest = db.execute("SELECT max(updated_at) FROM runs").get
            db.close()
        except apsw.Error:
            newest = None
        if newest is not None and newest > now + 1000:
            return "problem", f"it says {iso(now * 1000)}, but the log has events of later; set it"
    return "ok", iso(now * 1000)


def port(where: Place, settings: "Settings") -> Finding:
    from moot.cli.server.serve import refuse_taken_port
    from moot.cli.shared.errors import Trouble

    try:
        answer = Client(where).call("GET", "/healthz")
    except Unreachable:
        try:
            refuse_taken_port(settings)
        except Trouble as trouble:
            return "problem", str(trouble)
        return "ok", f"{settings.host}:{settings.port} is free; no server runs"
    if answer.status == 200 and b'"version"' in answer.body:
        return "ok", f"Moot {answer.data()['version']} answers at {where.url}"
    return "problem", f"something else answers at {where.url}; choose another --port"


def discovery(where: Place, settings: "Settings") -> Finding:
    try:
        answer = Client(where).call("GET", "/.well-known/openwop")
    except Unreachable:
        return "ok", "not checked: no server runs"
    document = answer.data()
    missing = [name for name in DISCOVERY if name not in document]
    if answer.status != 200 or missing:
        return "problem", f"the document lacks {', '.join(missing) or 'everything'}"
    problems = _against_schema(document, settings)
    if problems:
        return "problem", f"the document breaks its schema: {problems[0]}"
    checked = "" if problems is None else " and matches the published schema"
    claims = len(document)
    return "ok", f"protocol {document['protocolVersion']}, {claims} claims, well formed{checked}"


def models(where: Place, settings: "Settings") -> Finding:
    """Whether each model has its key, its package and somebody at its address; nobody is asked."""
    from moot.config.settings import project

    found = project()
    entries = found.models if found else {}
    wrong = [f"{name} {said}" for name, entry in entries.items() if (said := _missing(name, entry))]
    if wrong:
        return "problem", "; ".join(wrong)
    return "ok", ", ".join(["demo (offline, no key)", *entries])


def tools(where: Place, settings: "Settings") -> Finding:
    """Whether tools can be loaded, and have what they need; none of them is used."""
    from moot.cli.server.doctor_tools import lacking
    from moot.config.project import shelf_of
    from moot.config.settings import project, secret

    found = project()
    try:
        shelf = shelf_of(found, settings, secret)
    except ValueError as error:
        return "problem", str(error)
    wrong = lacking(found, settings, shelf)
    if wrong:
        return "problem", "; ".join(wrong)
    return "ok", ", ".join(shelf.names) or "none"


def _missing(name: str, entry: "ModelEntry") -> str | None:
    """What a model lacks, and the way out."""
    from importlib.util import find_spec

    from moot.agents.models.registry import URLS
    from moot.config.extras import install
    from moot.config.settings import secret

    if entry.provider == "demo":
        return None
    if find_spec(entry.provider) is None:
        return f"needs a package: {install(entry.provider)}"
    if entry.key_env and not secret(entry.key_env):
        return f"has no key: set {entry.key_env}"
    url = entry.url or URLS[entry.provider]
    place = urlsplit(url)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        socket.create_connection((place.hostname or "", port), timeout=KNOCK_S).close()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        return f"{url}: {why} → start it, or: moot models remove {name}"
    return None


def agents(where: Place, settings: "Settings") -> Finding:
    """Whether the files of agents can be read; a mistake is named by file and line."""
    from moot.agents.definitions.manifest import line_of_field
    from moot.agents.definitions.registry import in_folder
    from moot.cli.project.check import models_of, unspeakable
    from moot.config.settings import agents_folder

    folder = agents_folder(settings)
    if folder is None:
        return "ok", "no folder of agents; write agents/NAME.md to have one"
    if not folder.is_dir():
        return "problem", f"there is no folder {folder}; make it, or change MOOT_AGENTS"
    found, problems = in_folder(folder)
    book = models_of(settings)
    for file, agent in found.items():
        if said := unspeakable(book, agent.model):
            line = line_of_field((folder / file).read_text(encoding="utf-8"), "model")
            problems.append(f"{file}:{line}: {said}")
    if problems:
        return "problem", "; ".join(f"{folder}/{problem}" for problem in problems)
    names = ", ".join(agent.name for agent in found.values())
    return "ok", f"{folder}: {names or 'no *.md files'}"


def _against_schema(document: Any, settings: "Settings") -> list[str] | None:
    """None when the published schemas are not at hand."""
    import json

    import jsonschema_rs

    from moot.config.settings import openwop_dir

    folder = openwop_dir(settings)
    if folder is None:
        return None
    found = [json.loads(file.read_bytes()) for file in (folder / "schemas").rglob("*.json")]
    named = {schema["$id"]: schema for schema in found if "$id" in schema}
    mine = next((schema for name, schema in named.items() if name.endswith(CAPABILITIES)), None)
    if mine is None:
        return None
    registry = jsonschema_rs.Registry(list(named.items()))
    validator = jsonschema_rs.validator_for(mine, registry=registry)
    return [error.message for error in validator.iter_errors(document)]


def peers(where: Place, settings: "Settings") -> Finding:
    """Whether each host that work is handed to answers, and takes the key that is there for it."""
    from moot.config.settings import peer_key, peers_of

    known = peers_of(settings)
    if not known:
        return "ok", "none are configured"
    found = [_peer(name, url, peer_key(name)) for name, url in known.items()]
    worst = max((result for result, _ in found), key=("ok", "warning", "problem").index)
    return worst, "; ".join(says for _, says in found)


def _peer(name: str, url: str, key: str | None) -> Finding:
    from moot.config.settings import PREFIX

    client = Client(Place(url, key, Path(), True))
    try:
        answer = client.call("GET", "/.well-known/openwop")
        asked = client.call("GET", "/v1/runs/nobody") if key else None
    except Unreachable:
        return "problem", f"{name} does not answer at {url}"
    if answer.status != 200 or b'"protocolVersion"' not in answer.body:
        return "problem", f"{name}: what answers at {url} is no host of this protocol"
    if asked is None:
        variable = f"{PREFIX}PEER_{name.upper().replace('-', '_')}_KEY"
        return "problem", f"{name} answers at {url}; {variable} holds no key for it"
    if asked.status in (401, 403):
        return "problem", f"{name} answers at {url} and refuses the key ({asked.status})"
    if url.startswith("http://") and not _is_near(url):
        return "warning", f"{name} answers at {url}; the key travels in the clear, use https"
    return "ok", f"{name} answers at {url} and takes the key"


def _is_near(url: str) -> bool:
    from urllib.parse import urlsplit

    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


CHECKS = (
    python, sqlite, store, key, disk, clock, port, models, tools, agents, discovery, peers,
)  # fmt: skip
