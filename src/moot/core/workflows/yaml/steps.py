"""Compile the steps of a YAML file, each to a node or to branches of nodes."""

import re
from collections.abc import Callable

from msgspec import Struct

from moot.core.workflows.yaml import agents, gates, verbs
from moot.core.workflows.yaml.graph import GraphBuilder, StepEntry, StepExit, StepPart
from moot.core.workflows.yaml.source import YamlItem, spelling_hint
from moot.core.workflows.yaml.templates import Scope, check_condition

COMMON = ("id", "name", "retries", "timeout", "on_error")
BRANCHING = ("when", "parallel")
#: word of the file -> output port of the conditional
PORTS = {"then": "true", "else": "false"}

#: verb of a step -> its other words. for_each comes first, because it also has a 'run'.
WORDS: dict[str, tuple[str, ...]] = {
    "for_each": ("run", "as", "index", "with", "into", "on_failure", "max"),
    "run": ("with", "into", "on_failure"),
    "set": (),
    "delay": (),
    "write": (),
    "when": ("then", "else"),
    "parallel": (),
    "fail": (),
    "approve": ("by", "need", "policy", "show"),
    "ask": ("on_timeout", "prompt", "output", "tools"),
    "supervisor": ("workers", "prompt", "output", "on_failure", "max", "together"),
    "discuss": ("with", "turns", "on_timeout"),
    "node": ("config", "inputs"),
}


class YamlStep(Struct, frozen=True):
    """One step of the file with its verb and id."""

    verb: str
    id: str
    item: YamlItem
    fields: dict[str, YamlItem]


class StepCompiler:
    """Walks the steps and adds them to the graph."""

    def __init__(self, graph: GraphBuilder) -> None:
        self.graph = graph

    def sequence(self, steps: YamlItem, entry: StepEntry, scope: Scope, place: str) -> StepPart:
        """Compile steps one after the other. An empty list adds nothing."""
        part = StepPart(entry.exits, ())
        for number, item in enumerate(steps.sequence(place)):
            before = entry if number == 0 else part.entry()
            after = self._step(item, before, scope)
            part = StepPart(after.exits, (*part.risks, *after.risks))
        return part

    def _step(self, item: YamlItem, entry: StepEntry, scope: Scope) -> StepPart:
        step = self._read(item)
        before = scope.fork()
        part = BUILDERS[step.verb](self, step, entry, scope)
        scope.steps[step.id] = None
        return self._add_handler(step, part, (scope, before))

    def _read(self, item: YamlItem) -> YamlStep:
        fields = item.mapping("a step")
        verb = next((word for word in WORDS if word in fields), None)
        if verb is None:
            first = next((key for key in fields if key not in COMMON), "")
            raise item.error_at(first, f"there is no step '{first}'{spelling_hint(first, WORDS)}")
        for key in fields:
            if key in WORDS and key != verb and key not in WORDS[verb]:
                raise item.error_at(key, f"'{verb}' and '{key}' are two steps; begin one with '-'")
        item.mapping(f"a '{verb}' step", (verb, *WORDS[verb], *COMMON))
        id_item = fields.get("id")
        stem = verb.replace("_", "-")
        name = self.graph.claim_id(id_item) if id_item else self.graph.new_id(stem)
        return YamlStep(verb, name, item, fields)

    def _add_handler(self, step: YamlStep, part: StepPart, scopes: tuple[Scope, Scope]) -> StepPart:
        """Route a failure of the step into its ``on_error`` steps, which then continue."""
        steps = step.fields.get("on_error")
        if steps is None:
            return part
        if not steps.sequence("on_error"):
            raise steps.error("on_error needs at least one step")
        scope, before = scopes
        entry = StepEntry(tuple(StepExit(node) for node in part.risks), "any_failed")
        handler = self._in_lane(steps, entry, before, "on_error")
        scope.absorb(before)
        return StepPart((*part.exits, *handler.exits), handler.risks)

    def _in_lane(self, steps: YamlItem, entry: StepEntry, scope: Scope, place: str) -> StepPart:
        self.graph.lane += 1
        part = self.sequence(steps, entry, scope, place)
        self.graph.lane -= 1
        return part

    def single(self, step: YamlStep, entry: StepEntry, scope: Scope) -> StepPart:
        node = SINGLE[step.verb](step.item, scope)
        return self.graph.add({**node, **_common_fields(step)}, entry)

    def when(self, step: YamlStep, entry: StepEntry, scope: Scope) -> StepPart:
        condition = check_condition(step.fields["when"], scope)
        if "then" not in step.fields:
            raise step.item.error("a 'when' step needs 'then' with the steps to take")
        node = {"typeId": "core.conditional", "config": {"expression": condition}}
        self.graph.add({**node, **_common_fields(step)}, entry)
        exits_by_word = {word: StepExit(step.id, port, word) for word, port in PORTS.items()}
        taken = [word for word in exits_by_word if word in step.fields]
        skipped = [exit_ for word, exit_ in exits_by_word.items() if word not in taken]
        branches = [(step.fields[word], exits_by_word[word]) for word in taken]
        parts = self._compile_branches(branches, scope)
        exits = [*(exit_ for part in parts for exit_ in part.exits), *skipped]
        return StepPart(tuple(exits), (step.id, *(risk for part in parts for risk in part.risks)))

    def parallel(self, step: YamlStep, entry: StepEntry, scope: Scope) -> StepPart:
        """Compile parallel branches and their join.

        The join watches every node of the branches: a branch that fails half-way ends in a skipped
        node, which alone would not stop the steps after the join.
        """
        named = _branches(step.fields["parallel"])
        self.graph.add({"typeId": "core.parallel", **_common_fields(step)}, entry)
        branches = [(steps, StepExit(step.id, None, label)) for label, steps in named]
        parts = self._compile_branches(branches, scope)
        inside = [risk for part in parts for risk in part.risks]
        names = [f"{step.id}-{_slug(label)}" for label, _ in named]
        ends = list(map(self._one_exit, names, parts))
        watched = dict.fromkeys((*map(StepExit, inside), *ends))
        joined = self.graph.join(f"{step.id}-join", StepEntry(tuple(watched)))
        return StepPart(joined.exits, (step.id, *inside, *joined.risks))

    def supervisor(self, step: YamlStep, entry: StepEntry, scope: Scope) -> StepPart:
        """Compile a supervisor and its dispatch node as a loop."""
        supervisor_node, dispatch_node = agents.supervisor_nodes(step.item, scope)
        self.graph.add({**supervisor_node, **_common_fields(step)}, entry)
        name = self.graph.reserve_id(f"{step.id}-dispatch")
        node = {"id": name, "name": f"Dispatch ({step.id})", **dispatch_node}
        part = self.graph.add(node, StepEntry((StepExit(step.id),)))
        self.graph.connect_back(name, step.id)
        return StepPart(part.exits, (step.id, name))

    def _compile_branches(
        self, branches: list[tuple[YamlItem, StepExit]], scope: Scope
    ) -> list[StepPart]:
        """Compile the branches. Each sees the steps before it, but not the other branches."""
        forks = [scope.fork() for _ in branches]
        parts = [
            self._in_lane(steps, StepEntry((exit_,)), fork, f"'{exit_.label}'")
            for (steps, exit_), fork in zip(branches, forks, strict=True)
        ]
        for fork in forks:
            scope.absorb(fork)
        return parts

    def _one_exit(self, name: str, part: StepPart) -> StepExit:
        if len(part.exits) == 1:
            return StepExit(part.exits[0].node, part.exits[0].port)
        return self.graph.join(name, part.entry()).exits[0]


def _branches(item: YamlItem) -> list[tuple[str, YamlItem]]:
    if isinstance(item.value, list):
        branches = [(str(number), steps) for number, steps in enumerate(item.value, 1)]
    else:
        branches = list(item.mapping("parallel").items())
    if not branches:
        raise item.error("'parallel' needs at least one branch")
    return branches


def _slug(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", label)[:40]


def _common_fields(step: YamlStep) -> dict[str, object]:
    """Return the fields that every kind of step may set on its node."""
    fields = step.fields
    name = fields["name"].text("name") if "name" in fields else step.id
    node: dict[str, object] = {"id": step.id, "name": name}
    settings: dict[str, int] = {}
    for word in ("retries", "timeout"):
        if word in fields and step.verb in BRANCHING:
            message = f"'{word}' goes on the steps inside, not on '{step.verb}'"
            raise step.item.error_at(word, message)
    if "retries" in fields:
        settings["maxRetries"] = fields["retries"].whole("retries")
    waits = step.verb in gates.BUILDERS and "prompt" not in fields
    if "timeout" in fields and not waits:
        settings["timeoutMs"] = verbs.parse_duration(fields["timeout"])
    return {**node, "settings": settings} if settings else node


#: verbs of steps that become one node each
SINGLE = {**verbs.BUILDERS, **gates.BUILDERS}

BUILDERS: dict[str, Callable[[StepCompiler, YamlStep, StepEntry, Scope], StepPart]] = {
    **dict.fromkeys(SINGLE, StepCompiler.single),
    "when": StepCompiler.when,
    "parallel": StepCompiler.parallel,
    "supervisor": StepCompiler.supervisor,
}
