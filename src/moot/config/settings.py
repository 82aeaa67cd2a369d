"""Settings of the server, read once from file, environment and flags.

A flag wins over the environment, and that over the file. Settings never contain secrets.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta, Struct

if TYPE_CHECKING:
    from moot.config.project import ProjectConfig

from moot.core.workflows.peer_ids import HOST_ID, NAME, is_host_url

ENV_PREFIX = "MOOT_"
PROJECT_FILE = "moot.toml"
#: settings that accept ``none`` for no limit
UNBOUNDED = ("tenant_tokens_per_day", "tenant_money_per_day")


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of the server; ``moot doctor`` prints them."""

    database: str = "moot.db"  #: MOOT_DATABASE - the SQLite file
    host: str = "127.0.0.1"  #: MOOT_HOST - the address to listen on
    port: int = 7666  #: MOOT_PORT - 0 takes a free one
    workflows: str | None = None  #: MOOT_WORKFLOWS - a folder of definitions to register
    agents: str | None = None  #: MOOT_AGENTS - a folder of agents, one Markdown file each
    nodes: str | None = None  #: MOOT_NODES - a Python file of @node functions
    tools: str | None = None  #: MOOT_TOOLS - a Python file of @tool functions, or a folder of them
    allow_private_targets: bool = False  #: MOOT_ALLOW_PRIVATE_TARGETS - calls may reach inside
    trust_local: bool = False  #: MOOT_TRUST_LOCAL - /threads without a key, from this machine
    roster: bool = True  #: MOOT_ROSTER - standing agents; off: none are kept, none are woken
    conformance: bool = False  #: MOOT_CONFORMANCE - test nodes, mock providers and seams
    openwop_dir: str | None = None  #: MOOT_OPENWOP_DIR - published fixtures for --conformance
    max_body_bytes: int = 1_048_576  #: MOOT_MAX_BODY_BYTES
    rate_limit: int = 20_000  #: MOOT_RATE_LIMIT - requests a second for one key
    queue_limit: int = 10_000  #: MOOT_QUEUE_LIMIT - commits that may wait
    max_node_executions: int = 10_000  #: MOOT_MAX_NODE_EXECUTIONS - nodes one run may start
    max_run_duration_ms: int = 86_400_000  #: MOOT_MAX_RUN_DURATION_MS - active time of one run
    max_parallel_nodes: int = 32  #: MOOT_MAX_PARALLEL_NODES - nodes of one run at a time
    max_depth: int = 16  #: MOOT_MAX_DEPTH - workflows calling workflows
    max_tree_runs: int = 1000  #: MOOT_MAX_TREE_RUNS - runs one run may lead to
    max_activities: int = 256  #: MOOT_MAX_ACTIVITIES - nodes touching the world at a time
    max_heads: int = 4096  #: MOOT_MAX_HEADS - runs kept in memory
    keepalive_s: int = 15  #: MOOT_KEEPALIVE_S - seconds between comments on a quiet stream
    presence_s: Annotated[int, Meta(ge=1)] = 120  #: MOOT_PRESENCE_S - of a sign of life
    council_error_codes: Literal["v1", "0239"] = "v1"  #: MOOT_COUNCIL_ERROR_CODES - see errors
    receipt_hours: int = 24  #: MOOT_RECEIPT_HOURS - how long Idempotency-Key answers are kept
    demo_wps: Annotated[float, Meta(ge=0)] = 40  #: MOOT_DEMO_WPS - words a second; 0 is at once
    models_mode: Literal["live", "record", "replay"] = "live"  #: MOOT_MODELS_MODE - see models
    cassette: str = "models.jsonl"  #: MOOT_CASSETTE - the file of recorded answers
    host_id: str | None = None  #: MOOT_HOST_ID - the name of this host for others
    public_url: str | None = None  #: MOOT_PUBLIC_URL - where others reach this host
    peers: str | None = None  #: MOOT_PEERS - other hosts that work is handed to: NAME=URL,...
    #: MOOT_TENANT_TOKENS_PER_DAY, MOOT_TENANT_MONEY_PER_DAY - 0 or none: no bound
    tenant_tokens_per_day: Annotated[int, Meta(ge=0)] = 10_000_000
    tenant_money_per_day: Annotated[float, Meta(ge=0)] | None = None
    peer_patience_s: int = 600  #: MOOT_PEER_PATIENCE_S - how long a peer may be away at first


def load_settings(
    flags: Mapping[str, object] | None = None, environment: dict[str, str] | None = None
) -> Settings:
    """Return the settings; flags win over the environment, the file and the defaults.

    Raise ValueError that names the setting.
    """
    environ = dict(os.environ) if environment is None else environment
    project = load_project(environ)
    values: dict[str, object] = dict(project.settings) if project else {}
    for field in Settings.__struct_fields__:
        value = environ.get(ENV_PREFIX + field.upper())
        if value not in (None, ""):
            values[field] = value
    values.update({name: value for name, value in (flags or {}).items() if value is not None})
    values.update({name: 0 for name in UNBOUNDED if str(values.get(name, "")).lower() == "none"})
    try:
        settings = msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"A setting is wrong: {error}") from None
    _check_names(settings)
    return settings


def _check_names(settings: Settings) -> None:
    """Raise ValueError for a bad name or address. Messages omit addresses, which may be secret."""
    if settings.host_id is not None and not HOST_ID.fullmatch(settings.host_id):
        raise ValueError("A setting is wrong: MOOT_HOST_ID takes 1 to 256 plain characters.")
    if settings.public_url is not None and not is_host_url(settings.public_url):
        raise ValueError("A setting is wrong: MOOT_PUBLIC_URL must be an http or https address.")
    for name, url in parse_peers(settings).items():
        if not NAME.fullmatch(name):
            raise ValueError(f"A setting is wrong: '{name[:32]}' cannot be the name of a peer.")
        if not is_host_url(url):
            raise ValueError(f"A setting is wrong: peer '{name}' needs an http or https address.")


def parse_peers(settings: Settings) -> dict[str, str]:
    """Return name -> address of each peer."""
    words = [word.strip() for word in (settings.peers or "").split(",")]
    pairs = [word.partition("=") for word in words if word]
    return {name.strip(): url.strip() for name, _, url in pairs}


def read_peer_key(name: str) -> str | None:
    """Return the key of a peer. Only the environment has it."""
    return (
        os.environ.get(f"{ENV_PREFIX}PEER_{name.upper().replace('-', '_')}_KEY", "").strip() or None
    )


def load_project(environment: dict[str, str] | None = None) -> "ProjectConfig | None":
    """Return the project of moot.toml, if there is one. Raise ValueError with file and line."""
    file = project_file(environment)
    if not file.is_file():
        return None
    from moot.config.project import read_project

    return read_project(file, Settings)


def project_file(environment: dict[str, str] | None = None) -> Path:
    """Return the file of MOOT_CONFIG, which must exist, or moot.toml here, which need not."""
    environ = os.environ if environment is None else environment
    chosen = environ.get("MOOT_CONFIG")
    if chosen and not Path(chosen).is_file():
        raise ValueError(f"MOOT_CONFIG names {chosen}, and there is no such file.")
    return Path(chosen or PROJECT_FILE)


def read_secret(name: str) -> str | None:
    """Return the value of a ``key_env``. It is read when needed and never stored."""
    return os.environ.get(name) or None


def read_bootstrap_key() -> str | None:
    """Return the first key of an empty store, if the environment has one."""
    return os.environ.get("MOOT_BOOTSTRAP_KEY") or None


def find_agents_folder(settings: Settings) -> Path | None:
    """Return the folder of the setting, or ``agents`` in this folder if it exists."""
    default = Path("agents")
    if settings.agents:
        return Path(settings.agents)
    return default if default.is_dir() else None


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment for a child process; variables that are already set win."""
    return {**more, **os.environ}


def client_environment() -> dict[str, str]:
    """Return the variables of the command line: server, key and terminal."""
    ours = ("MOOT_URL", "MOOT_KEY", "MOOT_DATABASE", "MOOT_DEBUG")
    names = (*ours, "NO_COLOR", "TERM", "VISUAL", "EDITOR")
    return {name: os.environ[name] for name in names if name in os.environ}


def program_environment(*more: str) -> dict[str, str]:
    """Return the environment for an outside program, without any key of Moot.

    It has basic variables of the system and those named in ``more``.
    """
    basic = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM")
    return {
        name: value
        for name, value in os.environ.items()
        if name in basic or name in more or name.startswith("LC_")
    }


def find_openwop_dir(settings: Settings) -> Path | None:
    """Return the folder of published schemas and fixtures, if it exists."""
    candidates = [settings.openwop_dir, "../shared/openwop"]
    for candidate in candidates:
        if candidate and (Path(candidate) / "fixtures").is_dir():
            return Path(candidate)
    return None
