"""Checks of the body of ``POST /v1/runs``."""

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from moot.api.http.request import Request
from moot.api.services import Services
from moot.conformance import capability_toggle
from moot.core.agents.events import VERBOSITIES
from moot.core.conversations import participants
from moot.core.errors import (
    BadRequest,
    ForceEngineForbidden,
    MockProviderForbidden,
    NotProvided,
    Unprocessable,
    UnsupportedEngineVersion,
    UnsupportedMockProvider,
)
from moot.core.errors.models import ModelNotConfigured
from moot.core.events import ENGINE_VERSION
from moot.core.json.schema import schema_problems
from moot.core.text.nearest import nearest_word
from moot.core.workflows.flow import Flow
from moot.engine.nodes.registry import MOCK_PROVIDERS
from moot.wire.discovery import OptionRule
from moot.wire.json import JsonObject
from moot.wire.runs import CreateRun

MOST_TAGS = 100
LONGEST_TAG = 256
METADATA_BYTES = 8192
METADATA_DEPTH = 4
FORCEABLE_VERSIONS = (0, ENGINE_VERSION)


#: ``configurable`` keys that the protocol reserves. They are checked, though not all are used.
RESERVED = {
    "maxLoopIterations": OptionRule(type="integer", min=1),
    "model": OptionRule(type="string"),
    "temperature": OptionRule(type="number", min=0, max=2),
    "maxTokens": OptionRule(type="integer", min=1),
    "promptOverrides": OptionRule(type="object"),
    "escalationThreshold": OptionRule(type="number", min=0, max=1),
    "models": OptionRule(type="object"),
}


def configurable_keys(services: Services) -> dict[str, OptionRule]:
    """Return the ``configurable`` keys this host acts on, with their bounds.

    Discovery shows the same.
    """
    limits = services.host.limits
    keys = {
        "recursionLimit": OptionRule(type="integer", min=1),
        "maxLoopIterations": OptionRule(type="integer", min=1),
        "escalationThreshold": OptionRule(type="number", min=0, max=1),
        "reasoningVerbosity": OptionRule(type="string", enum=list(VERBOSITIES)),
        "runTimeoutMs": OptionRule(type="number", min=1, max=limits.duration_ms),
    }
    if services.settings.conformance:
        keys["mockProvider"] = OptionRule(type="object")
    return keys


def check_run_options(
    services: Services,
    request: Request,
    body: CreateRun,
    flow: Flow,
    before: JsonObject | None = None,
) -> None:
    """Raise for everything that can be refused before a run exists.

    ``before`` holds the options a fork already has.
    """
    _check_shape(body)
    capability_toggle.check_flow(services.overlay, flow)
    if body.tags:
        _check_tags(body.tags)
    if body.metadata:
        _check_metadata(body.metadata)
    if body.configurable:
        _check_mock(services, request, body.configurable)
    schema = flow.definition.configurable_schema
    if schema is not UNSET:
        _check_schema(schema, {**(before or {}), **body.configurable})
    if body.configurable:
        _check_configurable(services, body.configurable, free=schema is not UNSET)


def check_participants(flow: Flow, inputs: JsonObject) -> None:
    """Raise when a conversation's roster cannot work, before a run exists."""
    for node in flow.nodes.values():
        if node.type.type_id == "core.conversationGate":
            roster = node.definition.config.get("participants", inputs.get("participants"))
            if roster is not None:
                participants.check_roster(roster)


def _check_shape(body: CreateRun) -> None:
    if not (body.mode is body.eval_suite_ref is UNSET):
        raise NotProvided("Evaluation runs are not available on this host.", capability="eval")
    if body.residency is not UNSET:
        refusal = Unprocessable("This host does not offer data residency; leave 'residency' out.")
        raise refusal
    if body.scope_id is not UNSET and not 1 <= len(body.scope_id) <= 256:
        raise BadRequest("scopeId must have 1 to 256 characters.", field="scopeId")
    if body.callback_url is not UNSET:
        _check_url(body.callback_url)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        fine = False
    if not fine:
        raise BadRequest("callbackUrl must be an http or https address.", field="callbackUrl")


def _check_tags(tags: list[str]) -> None:
    if len(tags) > MOST_TAGS or any(not 1 <= len(tag) <= LONGEST_TAG for tag in tags):
        raise BadRequest(
            f"tags takes at most {MOST_TAGS} tags of 1 to {LONGEST_TAG} characters.", field="tags"
        )


def _check_metadata(metadata: JsonObject) -> None:
    if len(msgspec.json.encode(metadata)) > METADATA_BYTES or _depth(metadata) > METADATA_DEPTH:
        raise BadRequest(
            f"metadata may have {METADATA_BYTES} bytes and be nested {METADATA_DEPTH} deep.",
            field="metadata",
        )


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(item) for item in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((_depth(item) for item in value), default=0)
    return 0


def _check_mock(services: Services, request: Request, configurable: JsonObject) -> None:
    mock = configurable.get("mockProvider")
    if mock is None:
        return
    provider = mock.get("id") if isinstance(mock, dict) else None
    offered = list(MOCK_PROVIDERS) if services.settings.conformance else []
    if not services.settings.conformance or not request.caller.test:
        raise MockProviderForbidden(
            "Mock providers are for test keys on a host under test.",
            requestedProvider=provider,
            supportedProviders=offered,
        )
    if not isinstance(mock, dict) or not isinstance(provider, str) or set(mock) - {"id", "config"}:
        raise BadRequest("mockProvider must be {id, config?}.", field="configurable.mockProvider")
    if provider not in offered:
        raise UnsupportedMockProvider(
            f"There is no mock provider '{provider}'.",
            requestedProvider=provider,
            supportedProviders=offered,
        )


def _check_schema(schema: JsonObject, configurable: JsonObject) -> None:
    faults = schema_problems(schema, configurable)
    if faults:
        raise BadRequest(f"configurable does not fit: {faults[0]}", fields=faults)


def _check_configurable(services: Services, configurable: JsonObject, free: bool) -> None:
    rules = {**RESERVED, **configurable_keys(services)}
    for key, value in configurable.items():
        rule = rules.get(key)
        if rule is not None:
            _check_value(key, value, rule)
            if key == "models":
                check_models(services, value, "configurable.models")
        elif key.startswith("ai.") or (not free and "." not in key):
            suggestion = nearest_word(key, rules)
            hint = (
                f" Did you mean '{suggestion}'?"
                if suggestion
                else " Prefix keys of your own: 'acme.key'."
            )
            raise BadRequest(f"'{key}' is not an option of a run.{hint}", key=key)


def check_models(services: Services, models: JsonObject, field: str) -> None:
    """Raise BadRequest for a model that this host does not know, before a run exists."""
    for agent, reference in models.items():
        if not isinstance(reference, str):
            raise BadRequest(f"{field} has an agent and its model.", field=f"{field}.{agent}")
        if services.book is None:
            continue
        try:
            services.book.look_up(reference)
        except ModelNotConfigured as unknown:
            raise BadRequest(unknown.message, field=f"{field}.{agent}") from None


def _check_value(key: str, value: Any, rule: OptionRule) -> None:
    low, high = rule.min, rule.max
    fine = _has_type(rule.type, value) and (rule.enum is None or value in rule.enum)
    if fine and low is not None:
        fine = value >= low and (high is None or value <= high)
    if not fine:
        bounds = f" from {low}" if low is not None else ""
        bounds += f" to {high}" if high is not None else ""
        kind = f"a {rule.type}" if rule.enum is None else f"one of {', '.join(rule.enum)}"
        details = {"key": key, "value": value, "min": low, "max": high}
        raise BadRequest(
            f"{key} must be {kind}{bounds}.",
            **{name: item for name, item in details.items() if item is not None},
        )


def _has_type(type_: str, value: Any) -> bool:
    if isinstance(value, bool):
        return False
    kinds: dict[str, Any] = {
        "integer": int, "number": (int, float), "string": str, "object": dict,
    }  # fmt: skip
    return isinstance(value, kinds[type_])


def requested_engine_version(services: Services, request: Request) -> int:
    """Return the engine version that a test asks the host to write as."""
    text = request.header("x-force-engine-version")
    if text is None:
        return ENGINE_VERSION
    if not services.settings.conformance or not request.caller.test:
        raise ForceEngineForbidden("X-Force-Engine-Version is for test keys on a host under test.")
    low, high = FORCEABLE_VERSIONS
    if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise UnsupportedEngineVersion(
            f"X-Force-Engine-Version must be {low} to {high}.", min=low, max=high
        )
    return int(text)
