"""The checks of ``moot doctor``, which prints the names of these functions.

Each check returns its result (ok, warning or problem) and a sentence.
"""

import json
import os
import platform
import socket
import statistics
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from moot.agents.definitions.manifest import find_field_line
from moot.agents.definitions.registry import read_agents_folder
from moot.agents.models.registry import URLS
from moot.agents.project import build_tool_registry
from moot.cli.project.check import load_models, model_problem
from moot.cli.server.doctor_tools import tool_problems
from moot.cli.server.serve import refuse_taken_port
from moot.cli.shared.client import Api, ServerUnreachable
from moot.cli.shared.errors import CommandError
from moot.client.operations import host, runs
from moot.clock import SystemClock
from moot.config.extras import install_hint
from moot.config.models import ModelEntry
from moot.config.server_location import ServerLocation, key_file
from moot.config.settings import (
    ENV_PREFIX,
    Settings,
    find_agents_folder,
    find_openwop_dir,
    load_project,
    parse_peers,
    read_peer_key,
    read_secret,
)
from moot.core.events import iso

Finding = tuple[str, str]

OLDEST_PYTHON = (3, 11)
SYNCS = 20
#: seconds that a provider has to accept a connection
CONNECT_SECONDS = 3.0
#: milliseconds: a disk that syncs faster than this may not really sync
TOO_QUICK, TOO_SLOW = 0.03, 50.0
#: 2025-01-01 in ms: before that, Moot did not exist
EARLIEST = 1_735_689_600_000
#: the schema and the required fields of a discovery document
CAPABILITIES = "/capabilities.schema.json"
DISCOVERY = ("protocolVersion", "supportedEnvelopes", "schemaVersions", "limits")


def python(place: ServerLocation, settings: Settings) -> Finding:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        return "problem", f"{version} is too old; install 3.11 or newer"
    return "ok", version


def sqlite(place: ServerLocation, settings: Settings) -> Finding:
    import apsw

    from moot.store.sqlite.errors import StoreRefused
    from moot.store.sqlite.open import check_driver

    try:
        check_driver()
    except StoreRefused as refusal:
        return "problem", str(refusal)
    return "ok", apsw.sqlite_lib_version()


def store(place: ServerLocation, settings: Settings) -> Finding:
    """Check the file quickly; ``moot db verify`` reads every byte."""
    import apsw

    from moot.store.sqlite.errors import StoreRefused
    from moot.store.sqlite.open import open_to_read
    from moot.store.sqlite.read.readers import connect_reader

    file = place.database
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


def key(place: ServerLocation, settings: Settings) -> Finding:
    file = key_file(place.database)
    if not file.exists():
        return "ok", f"{file} does not exist yet; moot serve makes it"
    mode = file.stat().st_mode & 0o777
    if mode & 0o077:
        return "problem", f"others can read {file} (mode {mode:o}); run: chmod 600 {file}"
    return "ok", f"{file}, readable by you only"


def disk(place: ServerLocation, settings: Settings) -> Finding:
    """Check that a sync takes a plausible time."""
    folder = place.database.resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return "problem", f"{folder} cannot be written to"
    middle = statistics.median(_sync_times(folder))
    if middle < TOO_QUICK:
        sentence = f"a sync takes {middle:.3f} ms: this disk may lose what it has confirmed"
        return "warning", sentence
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


def clock(place: ServerLocation, settings: Settings) -> Finding:
    import apsw

    from moot.store.sqlite.read.readers import connect_reader

    now = SystemClock().millis()
    if now < EARLIEST:
        return "problem", f"it says {iso(now * 1000)}; set the clock"
    if place.database.exists():
        try:
            db = connect_reader(place.database)
            newest = db.execute("SELECT max(updated_at) FROM runs").get
            db.close()
        except apsw.Error:
            newest = None
        if newest is not None and newest > now + 1000:
            return "problem", f"it says {iso(now * 1000)}, but the log has events of later; set it"
    return "ok", iso(now * 1000)


def port(place: ServerLocation, settings: Settings) -> Finding:
    version = None
    try:
        version = Api(place).send(host.get_health()).version
    except ServerUnreachable:
        try:
            refuse_taken_port(settings)
        except CommandError as error:
            return "problem", str(error)
        return "ok", f"{settings.host}:{settings.port} is free; no server runs"
    except CommandError:
        pass  # it does not answer as Moot does
    if version is not None:
        return "ok", f"Moot {version} answers at {place.url}"
    return "problem", f"something else answers at {place.url}; choose another --port"


def discovery(place: ServerLocation, settings: Settings) -> Finding:
    try:
        document = Api(place).send(host.get_discovery())
    except ServerUnreachable:
        return "ok", "not checked: no server runs"
    except CommandError as error:
        return "problem", f"there is no document: {error}"
    missing = [name for name in DISCOVERY if name not in document]
    if missing:
        return "problem", f"the document lacks {', '.join(missing)}"
    problems = _schema_problems(document, settings)
    if problems:
        return "problem", f"the document breaks its schema: {problems[0]}"
    checked = "" if problems is None else " and matches the published schema"
    claims = len(document)
    return "ok", f"protocol {document['protocolVersion']}, {claims} claims, well formed{checked}"


def models(place: ServerLocation, settings: Settings) -> Finding:
    """Check that each model has a key, a package and a reachable address. No model is called."""
    project_config = load_project()
    entries = project_config.models if project_config else {}
    model_problems = [
        f"{name} {problem}"
        for name, entry in entries.items()
        if (problem := _model_problem(name, entry))
    ]
    if model_problems:
        return "problem", "; ".join(model_problems)
    return "ok", ", ".join(["demo (offline, no key)", *entries])


def tools(place: ServerLocation, settings: Settings) -> Finding:
    """Check that tools can be loaded and are complete. No tool is used."""
    project_config = load_project()
    try:
        registry = build_tool_registry(project_config, settings, read_secret)
    except ValueError as error:
        return "problem", str(error)
    problems = tool_problems(project_config, settings, registry)
    if problems:
        return "problem", "; ".join(problems)
    return "ok", ", ".join(registry.names) or "none"


def _model_problem(name: str, entry: ModelEntry) -> str | None:
    """Return a problem of the model and its remedy, or None."""

    if entry.provider == "demo":
        return None
    if find_spec(entry.provider) is None:
        return f"needs a package: {install_hint(entry.provider)}"
    if entry.key_env and not read_secret(entry.key_env):
        return f"has no key: set {entry.key_env}"
    url = entry.url or URLS[entry.provider]
    place = urlsplit(url)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        socket.create_connection((place.hostname or "", port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        return f"{url}: {why} → start it, or: moot models remove {name}"
    return None


def agents(place: ServerLocation, settings: Settings) -> Finding:
    """Check that the files of agents can be read. A mistake is named by file and line."""
    folder = find_agents_folder(settings)
    if folder is None:
        return "ok", "no folder of agents; write agents/NAME.md to have one"
    if not folder.is_dir():
        return "problem", f"there is no folder {folder}; make it, or change MOOT_AGENTS"
    agents_by_file, problems = read_agents_folder(folder)
    registry = load_models(settings)
    for file, agent in agents_by_file.items():
        if mistake := model_problem(registry, agent.model):
            line = find_field_line((folder / file).read_text(encoding="utf-8"), "model")
            problems.append(f"{file}:{line}: {mistake}")
    if problems:
        return "problem", "; ".join(f"{folder}/{problem}" for problem in problems)
    names = ", ".join(agent.name for agent in agents_by_file.values())
    return "ok", f"{folder}: {names or 'no *.md files'}"


def _schema_problems(document: Any, settings: Settings) -> list[str] | None:
    """Return None when the published schemas are not available."""

    import jsonschema_rs

    folder = find_openwop_dir(settings)
    if folder is None:
        return None
    schemas = [json.loads(file.read_bytes()) for file in (folder / "schemas").rglob("*.json")]
    schemas_by_id = {schema["$id"]: schema for schema in schemas if "$id" in schema}
    capabilities = next(
        (schema for name, schema in schemas_by_id.items() if name.endswith(CAPABILITIES)), None
    )
    if capabilities is None:
        return None
    registry = jsonschema_rs.Registry(list(schemas_by_id.items()))
    validator = jsonschema_rs.validator_for(capabilities, registry=registry)
    return [error.message for error in validator.iter_errors(document)]


def peers(place: ServerLocation, settings: Settings) -> Finding:
    """Check that each peer answers and accepts its key."""
    configured = parse_peers(settings)
    if not configured:
        return "ok", "none are configured"
    findings = [_check_peer(name, url, read_peer_key(name)) for name, url in configured.items()]
    worst = max((result for result, _ in findings), key=("ok", "warning", "problem").index)
    return worst, "; ".join(sentence for _, sentence in findings)


def _check_peer(name: str, url: str, key: str | None) -> Finding:
    api = Api(ServerLocation(url, key, Path(), True))
    try:
        is_host = _is_protocol_host(api)
        key_status = _key_status(api) if key else None
    except ServerUnreachable:
        return "problem", f"{name} does not answer at {url}"
    if not is_host:
        return "problem", f"{name}: what answers at {url} is no host of this protocol"
    if not key:
        variable = f"{ENV_PREFIX}PEER_{name.upper().replace('-', '_')}_KEY"
        return "problem", f"{name} answers at {url}; {variable} holds no key for it"
    if key_status in (401, 403):
        return "problem", f"{name} answers at {url} and refuses the key ({key_status})"
    is_local = urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")
    if url.startswith("http://") and not is_local:
        return "warning", f"{name} answers at {url}; the key travels in the clear, use https"
    return "ok", f"{name} answers at {url} and takes the key"


def _is_protocol_host(api: Api) -> bool:
    try:
        return "protocolVersion" in api.send(host.get_discovery())
    except ServerUnreachable:
        raise
    except CommandError:
        return False


def _key_status(api: Api) -> int | None:
    """Return the status with which a host refuses to show a run that it cannot have."""
    try:
        api.send(runs.get_run("nobody"))
    except ServerUnreachable:
        raise
    except CommandError as error:
        return error.status
    return None


CHECKS = (
    python, sqlite, store, key, disk, clock, port, models, tools, agents, discovery, peers,
)  # fmt: skip
