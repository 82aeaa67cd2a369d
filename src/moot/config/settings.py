"""Settings: one frozen struct, read once. File < environment < flag; secrets are never in it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

if TYPE_CHECKING:
    from moot.config.project import Project

from moot.core.workflows.peer_ids import HOST_ID, NAME, is_address

PREFIX = "MOOT_"
USUAL_FILE = "moot.toml"
#: settings that may say that there is no bound
UNBOUNDED = ("tenant_tokens_per_day", "tenant_money_per_day")


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every knob of the server; ``moot doctor`` prints them."""

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


def load(
    flags: dict[str, Any] | None = None, environment: dict[str, str] | None = None
) -> Settings:
    """Flags over environment over file over defaults. Raises ValueError naming the setting."""
    environ = dict(os.environ) if environment is None else environment
    file = project(environ)
    given: dict[str, Any] = dict(file.settings) if file else {}
    for field in Settings.__struct_fields__:
        value = environ.get(PREFIX + field.upper())
        if value not in (None, ""):
            given[field] = value
    given.update({name: value for name, value in (flags or {}).items() if value is not None})
    given.update({name: 0 for name in UNBOUNDED if str(given.get(name, "")).lower() == "none"})
    try:
        found = msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"A setting is wrong: {error}") from None
    _check_names(found)
    return found


def _check_names(settings: Settings) -> None:
    """Addresses are not repeated in what is said: one may hold what nobody is to see."""
    if settings.host_id is not None and not HOST_ID.fullmatch(settings.host_id):
        raise ValueError("A setting is wrong: MOOT_HOST_ID takes 1 to 256 plain characters.")
    if settings.public_url is not None and not is_address(settings.public_url):
        raise ValueError("A setting is wrong: MOOT_PUBLIC_URL must be an http or https address.")
    for name, url in peers_of(settings).items():
        if not NAME.fullmatch(name):
            raise ValueError(f"A setting is wrong: '{name[:32]}' cannot be the name of a peer.")
        if not is_address(url):
            raise ValueError(f"A setting is wrong: peer '{name}' needs an http or https address.")


def peers_of(settings: Settings) -> dict[str, str]:
    """Name -> address of each host that work may be handed to."""
    words = [word.strip() for word in (settings.peers or "").split(",")]
    pairs = [word.partition("=") for word in words if word]
    return {name.strip(): url.strip() for name, _, url in pairs}


def peer_key(name: str) -> str | None:
    """The key to another host. It is in the environment and nowhere else."""
    return os.environ.get(f"{PREFIX}PEER_{name.upper().replace('-', '_')}_KEY", "").strip() or None


def project(environment: dict[str, str] | None = None) -> "Project | None":
    """What moot.toml says, if there is one. Raises ValueError with file and line."""
    file = project_file(environment)
    if not file.is_file():
        return None
    from moot.config.project import read

    return read(file, Settings)


def project_file(environment: dict[str, str] | None = None) -> Path:
    """What MOOT_CONFIG names, which must be there, or moot.toml here, which need not."""
    environ = os.environ if environment is None else environment
    chosen = environ.get("MOOT_CONFIG")
    if chosen and not Path(chosen).is_file():
        raise ValueError(f"MOOT_CONFIG names {chosen}, and there is no such file.")
    return Path(chosen or USUAL_FILE)


def secret(name: str) -> str | None:
    """What a ``key_env`` names. It is read when it is needed and kept nowhere."""
    return os.environ.get(name) or None


def bootstrap_key() -> str | None:
    """The first key of an empty store, if the environment names one."""
    return os.environ.get("MOOT_BOOTSTRAP_KEY") or None


def agents_folder(settings: Settings) -> Path | None:
    """What the setting names, or ``agents`` in this folder, which need not be there."""
    usual = Path("agents")
    if settings.agents:
        return Path(settings.agents)
    return usual if usual.is_dir() else None


def with_defaults(**more: str) -> dict[str, str]:
    """The environment for a child of this process; what is set in it already wins."""
    return {**more, **os.environ}


def client_environment() -> dict[str, str]:
    """What the command line reads: where the server is, with which key, how somebody works."""
    ours = ("MOOT_URL", "MOOT_KEY", "MOOT_DATABASE", "MOOT_DEBUG")
    names = (*ours, "NO_COLOR", "TERM", "VISUAL", "EDITOR")
    return {name: os.environ[name] for name in names if name in os.environ}


def program_environment(*more: str) -> dict[str, str]:
    """What a program gets that takes part from outside: how to find itself and its settings, what
    was named for it, and no key of ours."""
    usual = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM")
    return {
        name: value
        for name, value in os.environ.items()
        if name in usual or name in more or name.startswith("LC_")
    }


def openwop_dir(settings: Settings) -> Path | None:
    """Where the published schemas and fixtures are, if they are at hand."""
    candidates = [settings.openwop_dir, "../shared/openwop"]
    for candidate in candidates:
        if candidate and (Path(candidate) / "fixtures").is_dir():
            return Path(candidate)
    return None
