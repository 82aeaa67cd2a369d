"""What wakes a standing agent that is hired: looked at before, so that a mistake hires nobody."""

import json
import re
from collections.abc import Callable
from typing import Any

from moot.cli.schedules.wording import when
from moot.cli.shared.client import Api, path_of
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.triggers.queue import QUEUES, SUBSCRIPTIONS

SCHEDULES = "/v1/host/moot/schedules"
QUEUE = re.compile(r"queue:([a-z0-9][a-z0-9._-]{0,63})")
WEBHOOK = "webhook"


class Waking:
    """The first workflow by times, the last by a queue or a webhook. Raises Trouble."""

    def __init__(
        self, api: Api, flows: list[str], every: str | None, on: tuple[str, ...], take_over: bool
    ) -> None:
        self._api, self._flows, self._every, self._on = api, flows, every, on
        self._take_over = take_over
        #: how to take back what was made so far
        self._undo: list[Callable[[], Any]] = []
        #: address and secret of a webhook, told this once
        self.binding: dict[str, Any] | None = None

    def check(self, roster_id: str) -> None:
        """Everything that can be known before anybody is hired."""
        if (self._every or self._on) and not self._flows:
            raise Trouble("say with --portfolio what --every and --on start.", Exit.USAGE)
        for source in self._on:
            if source != WEBHOOK and not QUEUE.fullmatch(source):
                raise Trouble(
                    f"--on: '{source}' is no source; write {WEBHOOK}, or queue:NAME with a name of"
                    " small letters, digits, dots, - or _.",
                    Exit.USAGE,
                )
        if self._every is not None:
            self._api.post(f"{SCHEDULES}:check", self._times())
        for queue in self._queues():
            self._free(queue, roster_id)

    def _times(self) -> dict[str, Any]:
        return {"workflowId": self._flows[0], "kind": "words", "words": self._every}

    def _queues(self) -> list[str]:
        return [source.removeprefix("queue:") for source in self._on if source != WEBHOOK]

    def _free(self, queue: str, roster_id: str) -> None:
        """What was handed to somebody who has gone is free, too."""
        found = self._found(f"{QUEUES}{path_of(queue)}")
        holder = found.get("rosterId") if found is not None else None
        if holder in (None, roster_id) or self._take_over:
            return
        if self._found(f"/v1/host/moot/roster{path_of(holder)}") is not None:
            raise Trouble(f"{queue} is {holder}'s; --take-over gives it to {roster_id}.")

    def _found(self, path: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self._api.get(path)
        except Trouble as trouble:
            if trouble.exit_code is Exit.NOT_FOUND:
                return None
            raise
        return found

    def begin(self, roster_id: str) -> list[str]:
        """Made, and in words. What was made before a refusal is taken back."""
        try:
            return [*self._scheduled(roster_id), *self._fed(roster_id), *self._called(roster_id)]
        except Trouble:
            for undo in reversed(self._undo):
                undo()
            raise

    def _scheduled(self, roster_id: str) -> list[str]:
        if self._every is None:
            return []
        found = self._api.post(SCHEDULES, {**self._times(), "rosterId": roster_id})
        self._undo.append(lambda: self._api.delete(f"{SCHEDULES}/{found['scheduleId']}"))
        due = found.get("nextFireAt")
        return [f"next: {self._flows[0]} {when(due, found['timezone'])}"] if due else []

    def _fed(self, roster_id: str) -> list[str]:
        body = {
            "workflowId": self._flows[-1] if self._flows else "", "rosterId": roster_id,
            "takeOver": self._take_over,
        }  # fmt: skip
        for queue in self._queues():
            path = f"{QUEUES}{path_of(queue)}"
            self._api.ask("PUT", path, json.dumps(body).encode())
            self._undo.append(lambda path=path: self._api.delete(path))  # type: ignore[misc]
        return [f"listens to queue:{queue}" for queue in self._queues()]

    def _called(self, roster_id: str) -> list[str]:
        if WEBHOOK not in self._on:
            return []
        body = {"source": "webhook", "workflowId": self._flows[-1], "rosterId": roster_id}
        self.binding = self._api.post(SUBSCRIPTIONS, body)["binding"]
        return [f"listens at {self.binding['ingestUrl']}"]
