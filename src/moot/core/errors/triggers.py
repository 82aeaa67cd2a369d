"""Errors of standing agents, subscriptions, queues and deliveries."""

from collections.abc import Iterable

from moot.core.errors import BadRequest, Conflict, Forbidden, NotFound, Unauthenticated
from moot.core.events import iso
from moot.core.text.nearest import nearest_word


class Overtaken(Conflict):
    """The state behind a batch has changed meanwhile; the store wrote nothing of it."""

    code = "overtaken"

    def __init__(self, name: str) -> None:
        super().__init__("This was changed by somebody else meanwhile; try again.", name=name)


class MemberOffDuty(Conflict):
    code, passing = "roster_entry_disabled", True

    def __init__(self, roster_id: str, reason: str) -> None:
        way_out = "enable" if reason == "disabled" else "resume"
        message = f"{roster_id} is {reason}, so nothing was started; {way_out} it first."
        super().__init__(message, rosterId=roster_id, reason=reason)


class MemberGone(MemberOffDuty):
    """No member has this name, or it was dismissed; its work rests until there is one."""

    def __init__(self, roster_id: str) -> None:
        Conflict.__init__(
            self,
            f"There is no member {roster_id} (any more), so nothing starts; hand this to somebody"
            " else, or to nobody.",
            rosterId=roster_id,
            reason="dismissed",
        )


class NotInPortfolio(Conflict):
    code = "workflow_not_in_portfolio"

    def __init__(self, roster_id: str, workflow_id: str, portfolio: Iterable[str] = ()) -> None:
        details: dict[str, str] = {"rosterId": roster_id, "workflowId": workflow_id}
        suggestion = nearest_word(workflow_id, portfolio)
        hint = "" if suggestion is None else f" Did you mean '{suggestion}'?"
        super().__init__(
            f"{workflow_id} is none of the workflows of {roster_id}; add it to them first.{hint}",
            **details | ({} if suggestion is None else {"suggestion": suggestion}),
        )


class WebhookUrlRejected(BadRequest):
    code = "webhook_url_rejected"


class SubscriptionNotFound(NotFound):
    code = "subscription_not_found"

    def __init__(self, name: str) -> None:
        super().__init__("There is no such subscription; see the list of them.", id=name[:128])


class WorkspaceMembershipRequired(Forbidden):
    code = "workspace_membership_required"

    def __init__(self, workflow_id: str) -> None:
        advice = "register the workflow there first"
        message = f"A portfolio holds workflows of its own tenant; {advice}."
        super().__init__(message, field="workflows", workflowId=workflow_id[:128])


class TenantMembershipRequired(Forbidden):
    code = "tenant_membership_required"

    def __init__(self, tenant: str) -> None:
        super().__init__("This key is of another tenant.", tenantId=tenant[:128])


class SubscriptionNotActive(Conflict):
    code, passing = "subscription_not_active", True

    def __init__(
        self, name: str, state: str, queue: str | None = None, note: str = "",
        until: int | None = None,
    ) -> None:  # fmt: skip
        what = "The subscription" if queue is None else f"The queue {queue}"
        more = {} if queue is None else {"queue": queue}
        more |= {} if until is None else {"until": iso(until * 1000)}
        end = f" until {more['until']}" if until is not None else ""
        why = f" ({note})" if note else ""
        message = f"{what} is {state}{end}{why} and takes nothing; resume it first."
        super().__init__(message, subscriptionId=name, state=state, **more)


class QueueIdle(Conflict):
    code, passing = "queue_idle", True

    def __init__(self, queue: str) -> None:
        super().__init__(f"Nobody takes from {queue}; bind a workflow to it.", queue=queue)


class QueueTaken(Conflict):
    code = "queue_taken"

    def __init__(self, queue: str, roster_id: str) -> None:
        message = f"{queue} is {roster_id}'s; take it over to give it to somebody else."
        super().__init__(message, queue=queue, rosterId=roster_id)


class LoopRefused(Conflict):
    code = "loop_detected"

    def __init__(self, hops: int) -> None:
        super().__init__(
            f"What began this has come back {hops} times; tell the webhook of other events,"
            " or of runs with a tag.",
            hops=hops,
        )


class SignatureInvalid(Unauthenticated):
    code = "signature_invalid"


class QueueFull(Conflict):
    code, passing = "queue_full", True

    def __init__(self, most: int) -> None:
        message = f"{most} items wait already. Resume or bind a consumer, or drop some items."
        super().__init__(message, limit=most)
