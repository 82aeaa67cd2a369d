"""Triggers of a standing agent: made on hiring, left behind on dismissal.

They are checked before hiring, so that a mistake hires no agent.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from moot.cli.schedules.wording import local_time
from moot.cli.shared.client import Api
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.client.http.operation import PreparedCall
from moot.client.operations import roster, schedules, triggers
from moot.wire.roster import LeftTrigger
from moot.wire.triggers import SubscriptionBinding

QUEUE = re.compile(r"queue:([a-z0-9][a-z0-9._-]{0,63})")
WEBHOOK = "webhook"


class HireTriggers:
    """Starts the first workflow by schedule, the last by queue or webhook. Raises CommandError."""

    def __init__(
        self, api: Api, flows: list[str], every: str | None, on: tuple[str, ...], take_over: bool
    ) -> None:
        self._api, self._flows, self._every, self._on = api, flows, every, on
        self._take_over = take_over
        #: calls that undo what was made so far
        self._undo: list[PreparedCall[Any]] = []
        #: address and secret of a webhook, which the server sends only once
        self.binding: SubscriptionBinding | None = None

    def check(self, roster_id: str) -> None:
        """Check everything that can be known before hiring."""
        if (self._every or self._on) and not self._flows:
            raise CommandError("say with --portfolio what --every and --on start.", ExitCode.USAGE)
        for source in self._on:
            if source != WEBHOOK and not QUEUE.fullmatch(source):
                raise CommandError(
                    f"--on: '{source}' is no source; write {WEBHOOK}, or queue:NAME with a name of"
                    " small letters, digits, dots, - or _.",
                    ExitCode.USAGE,
                )
        if self._every is not None:
            self._api.send(schedules.check_schedule(self._schedule_body()))
        for queue in self._queues():
            self._check_queue(queue, roster_id)

    def _schedule_body(self) -> dict[str, object]:
        return {"workflowId": self._flows[0], "kind": "words", "words": self._every}

    def _queues(self) -> list[str]:
        return [source.removeprefix("queue:") for source in self._on if source != WEBHOOK]

    def _check_queue(self, queue: str, roster_id: str) -> None:
        """Raise CommandError if another member has the queue. A dismissed member does not count."""
        record = self._api.find(triggers.get_queue(queue))
        holder = record.roster_id if record is not None else None
        if holder is None or holder == roster_id or self._take_over:
            return
        if self._api.find(roster.get_member(holder)) is not None:
            raise CommandError(f"{queue} is {holder}'s; --take-over gives it to {roster_id}.")

    def begin(self, roster_id: str) -> list[str]:
        """Make the triggers and describe them. Undo everything after a refusal."""
        try:
            return [
                *self._make_schedule(roster_id),
                *self._bind_queues(roster_id),
                *self._make_webhook(roster_id),
            ]
        except CommandError:
            for undo in reversed(self._undo):
                self._api.send(undo)
            raise

    def _make_schedule(self, roster_id: str) -> list[str]:
        if self._every is None:
            return []
        body = {**self._schedule_body(), "rosterId": roster_id}
        schedule = self._api.send(schedules.create_schedule(body))
        self._undo.append(schedules.remove_schedule(schedule.schedule_id))
        due = schedule.next_fire_at
        return [f"next: {self._flows[0]} {local_time(due, schedule.timezone)}"] if due else []

    def _bind_queues(self, roster_id: str) -> list[str]:
        flow = self._flows[-1] if self._flows else ""
        for queue in self._queues():
            call = triggers.bind_queue(queue, flow, roster_id=roster_id, take_over=self._take_over)
            self._api.send(call)
            self._undo.append(triggers.unbind_queue(queue))
        return [f"listens to queue:{queue}" for queue in self._queues()]

    def _make_webhook(self, roster_id: str) -> list[str]:
        if WEBHOOK not in self._on:
            return []
        call = triggers.create_subscription(self._flows[-1], roster_id=roster_id)
        self.binding = self._api.send(call).binding
        return [f"listens at {self.binding.ingest_url}"]


def left_trigger_lines(left: Sequence[LeftTrigger], again: bool) -> Iterator[str]:
    """Yield each paused trigger of a dismissed member with the command that takes it over.

    With ``again`` a new member has the same name, so the command need not name one.
    """
    for each in left:
        if each.state != "active":
            yield f"Paused: {_trigger_text(each)} · {_takeover_hint(each, again)}"


def _trigger_text(each: LeftTrigger) -> str:
    flow = each.workflow_id or ""
    if each.source == "queue":
        return f"queue:{each.queue} → {flow}"
    return f"{flow} by {each.source}"


def _takeover_hint(each: LeftTrigger, again: bool) -> str:
    if each.source == "schedule":
        member = "" if again else " --member NAME"
        return command_hint(f"schedule resume {each.schedule_id}{member}")
    if each.source == "queue":
        bind = f"queue bind {each.queue} --flow {each.workflow_id or 'FLOW'} --member NAME"
        return command_hint(f"queue resume {each.queue}" if again else bind)
    body = '{"state": "active"}' if again else '{"rosterId": "host:NAME"}'
    return f"PATCH /v1/trigger-subscriptions/{each.subscription_id} {body}"
