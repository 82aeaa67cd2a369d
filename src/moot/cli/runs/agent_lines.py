"""What agents do, as lines for people: who is asked, what was thought, which tool was used."""

from typing import Any

from moot.cli.shared import output

Event = dict[str, Any]
#: payload of an effect that is a model being asked; the invocation around it tells of that
MODEL = "model:"


def asked(event: Event, _: object) -> str:
    said = event["payload"]
    model = f" ({said['resolvedModel']})" if said.get("resolvedModel") else ""
    return output.one_line(f"{said.get('agentId')} is asked{model}")


def done(event: Event, _: object) -> str | None:
    """What it gave comes with the node that asked it."""
    said = event["payload"]
    if said.get("outcome") in (None, "completed"):
        return None
    return output.one_line(f"{said.get('agentId')} gave no answer: {said['outcome']}")


def thought(event: Event, _: object) -> str | None:
    said = event["payload"]
    if not said.get("reasoning"):
        return None
    return f"{output.one_line(str(said.get('agentId')))} thought: {output.brief(said['reasoning'])}"


def used(event: Event, _: object) -> str:
    said = event["payload"]
    return output.one_line(f"{said.get('agentId')} used {tool(said)}")


def gave(event: Event, _: object) -> str:
    said = event["payload"]
    if said.get("status") == "ok":
        return (
            f"{output.one_line(str(said.get('toolName')))} gave {output.brief(said.get('outcome'))}"
        )
    return output.one_line(f"{said.get('toolName')} gave nothing: {said.get('status')}")


def tool(said: Event) -> str:
    """``price_history({"sku": "lamp"})``"""
    return f"{said.get('toolName')}({output.brief(said.get('inputs', {}), 100)})"


def floor(event: Event, _: object) -> str | None:
    """Who is given the floor in a council."""
    wakes = event["payload"].get("wakes")
    names = [str(wake.get("agentId")) for wake in wakes or [] if isinstance(wake, dict)]
    return output.one_line(f"the floor is {', '.join(names)}'s") if names else None


def stopped(event: Event, _: object) -> str:
    return output.one_line(f"the council stops: {event['payload'].get('reason')}")


def permission(event: Event, _: object) -> str:
    said = event["payload"]
    return output.one_line(f"{said.get('agentId')} wants to use {tool(said)}: a person must agree")


def permitted(event: Event, _: object) -> str:
    said = event["payload"]
    word = "allowed it" if said.get("allowed") else "did not allow it"
    return output.one_line(f"{said.get('by')} {word}")


def quiet(event: Event, _: object) -> None:
    """The machinery around an answer."""


LINES = {
    "agent.invocation.started": asked,
    "agent.invocation.completed": done,
    "agent.promptResolved": quiet,
    "agent.reasoned": thought,
    "agent.reasoning.delta": quiet,
    "agent.decided": quiet,
    "agent.toolCalled": used,
    "agent.toolReturned": gave,
    "moot.participation.set": quiet,
    "moot.participation.decided": floor,
    "moot.participation.answered": quiet,
    "moot.participation.stopped": stopped,
    "moot.tool.asked": permission,
    "moot.tool.answered": permitted,
}
