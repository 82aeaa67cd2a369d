"""Steps in order: each one becomes a node, or a few with their branches."""

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from moot.core.workflows.yaml import agents, gates, verbs
from moot.core.workflows.yaml.graph import Entry, Exit, Graph, Part
from moot.core.workflows.yaml.source import Item, hint
from moot.core.workflows.yaml.templates import Scope, check_condition

COMMON = ("id", "name", "retries", "timeout", "on_error")
BRANCHING = ("when", "parallel")
#: word of the file -> port of the conditional
PORTS = {"then": "true", "else": "false"}

#: what a step does -> the words that go with it. for_each comes first: it also has a 'run'.
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


class Step(Struct, frozen=True):
    verb: str
    id: str
    item: Item
    fields: dict[str, Item]


class Compiler:
    """Walks the steps with the graph built so far."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def sequence(self, steps: Item, entry: Entry, scope: Scope, place: str) -> Part:
        """One step after the other. An empty list leads straight on."""
        part = Part(entry.exits, ())
        for number, item in enumerate(steps.sequence(place)):
            before = entry if number == 0 else part.entry()
            after = self._step(item, before, scope)
            part = Part(after.exits, (*part.risks, *after.risks))
        return part

    def _step(self, item: Item, entry: Entry, scope: Scope) -> Part:
        step = self._read(item)
        before = scope.fork()
        part = BUILDERS[step.verb](self, step, entry, scope)
        scope.steps[step.id] = None
        return self._handled(step, part, (scope, before))

    def _read(self, item: Item) -> Step:
        fields = item.mapping("a step")
        verb = next((word for word in WORDS if word in fields), None)
        if verb is None:
            first = next((key for key in fields if key not in COMMON), "")
            raise item.error_at(first, f"there is no step '{first}'{hint(first, WORDS)}")
        for key in fields:
            if key in WORDS and key != verb and key not in WORDS[verb]:
                raise item.error_at(key, f"'{verb}' and '{key}' are two steps; begin one with '-'")
        item.mapping(f"a '{verb}' step", (verb, *WORDS[verb], *COMMON))
        given = fields.get("id")
        stem = verb.replace("_", "-")
        name = self.graph.claim(given) if given else self.graph.fresh(stem)
        return Step(verb, name, item, fields)

    def _handled(self, step: Step, part: Part, scopes: tuple[Scope, Scope]) -> Part:
        """With on_error, the failure of the step leads into its own steps, and they lead on."""
        steps = step.fields.get("on_error")
        if steps is None:
            return part
        if not steps.sequence("on_error"):
            raise steps.error("on_error needs at least one step")
        scope, before = scopes
        entry = Entry(tuple(Exit(node) for node in part.risks), "any_failed")
        handler = self._in_lane(steps, entry, before, "on_error")
        scope.absorb(before)
        return Part((*part.exits, *handler.exits), handler.risks)

    def _in_lane(self, steps: Item, entry: Entry, scope: Scope, place: str) -> Part:
        self.graph.lane += 1
        part = self.sequence(steps, entry, scope, place)
        self.graph.lane -= 1
        return part

    def single(self, step: Step, entry: Entry, scope: Scope) -> Part:
        node = SINGLE[step.verb](step.item, scope)
        return self.graph.add({**node, **_common(step)}, entry)

    def when(self, step: Step, entry: Entry, scope: Scope) -> Part:
        condition = check_condition(step.fields["when"], scope)
        if "then" not in step.fields:
            raise step.item.error("a 'when' step needs 'then' with the steps to take")
        node = {"typeId": "core.conditional", "config": {"expression": condition}}
        self.graph.add({**node, **_common(step)}, entry)
        ways = {word: Exit(step.id, port, word) for word, port in PORTS.items()}
        branches = [(step.fields[word], way) for word, way in ways.items() if word in step.fields]
        parts = self._forked(branches, scope)
        skipped = [way for word, way in ways.items() if word not in step.fields]
        exits = [*(way for part in parts for way in part.exits), *skipped]
        return Part(tuple(exits), (step.id, *(risk for part in parts for risk in part.risks)))

    def parallel(self, step: Step, entry: Entry, scope: Scope) -> Part:
        """The join looks at every node of the branches: a branch that broke half-way ends in a
        skipped node, which alone would not stop what comes after."""
        named = _branches(step.fields["parallel"])
        self.graph.add({"typeId": "core.parallel", **_common(step)}, entry)
        branches = [(steps, Exit(step.id, None, label)) for label, steps in named]
        parts = self._forked(branches, scope)
        inside = [risk for part in parts for risk in part.risks]
        ends = [
            self._one_exit(f"{step.id}-{_slug(label)}", part)
            for (label, _), part in zip(named, parts, strict=True)
        ]
        watched = dict.fromkeys((*map(Exit, inside), *ends))
        joined = self.graph.join(f"{step.id}-join", Entry(tuple(watched)))
        return Part(joined.exits, (step.id, *inside, *joined.risks))

    def supervisor(self, step: Step, entry: Entry, scope: Scope) -> Part:
        """Who decides and what carries it out lead to each other until it is enough."""
        decides, carries = agents.supervisor(step.item, scope)
        self.graph.add({**decides, **_common(step)}, entry)
        name = self.graph.only(f"{step.id}-dispatch")
        node = {"id": name, "name": f"Dispatch ({step.id})", **carries}
        part = self.graph.add(node, Entry((Exit(step.id),)))
        self.graph.back(name, step.id)
        return Part(part.exits, (step.id, name))

    def _forked(self, branches: list[tuple[Item, Exit]], scope: Scope) -> list[Part]:
        """Each branch sees what came before, and none of the others."""
        forks = [scope.fork() for _ in branches]
        parts = [
            self._in_lane(steps, Entry((way,)), fork, f"'{way.label}'")
            for (steps, way), fork in zip(branches, forks, strict=True)
        ]
        for fork in forks:
            scope.absorb(fork)
        return parts

    def _one_exit(self, name: str, part: Part) -> Exit:
        if len(part.exits) == 1:
            return Exit(part.exits[0].node, part.exits[0].port)
        return self.graph.join(name, part.entry()).exits[0]


def _branches(item: Item) -> list[tuple[str, Item]]:
    if isinstance(item.value, list):
        found = [(str(number), steps) for number, steps in enumerate(item.value, 1)]
    else:
        found = list(item.mapping("parallel").items())
    if not found:
        raise item.error("'parallel' needs at least one branch")
    return found


def _slug(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", label)[:40]


def _common(step: Step) -> dict[str, Any]:
    """What every kind of step may say about its node."""
    fields = step.fields
    name = fields["name"].text("name") if "name" in fields else step.id
    node: dict[str, Any] = {"id": step.id, "name": name}
    settings: dict[str, int] = {}
    for word in ("retries", "timeout"):
        if word in fields and step.verb in BRANCHING:
            raise step.item.error_at(
                word, f"'{word}' goes on the steps inside, not on '{step.verb}'"
            )
    if "retries" in fields:
        settings["maxRetries"] = fields["retries"].whole("retries")
    waits = step.verb in gates.BUILDERS and "prompt" not in fields
    if "timeout" in fields and not waits:
        settings["timeoutMs"] = verbs.duration(fields["timeout"])
    return {**node, "settings": settings} if settings else node


#: steps that are one node each
SINGLE = {**verbs.BUILDERS, **gates.BUILDERS}

BUILDERS: dict[str, Callable[[Compiler, Step, Entry, Scope], Part]] = {
    **dict.fromkeys(SINGLE, Compiler.single),
    "when": Compiler.when,
    "parallel": Compiler.parallel,
    "supervisor": Compiler.supervisor,
}
