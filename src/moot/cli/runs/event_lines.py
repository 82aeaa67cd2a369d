"""Render events of a run as lines for people."""

import click

from moot.cli.shared import output
from moot.core.events import Event
from moot.core.payloads.nodes import NodeDispatched, NodeStarted
from moot.core.sentences.table import sentence_of


class EventLines:
    """Renders the events of one run in their order. Some lines depend on earlier events."""

    def __init__(self) -> None:
        #: node -> the time of its start
        self._started: dict[str, str] = {}
        self._children: set[str] = set()

    def line(self, event: Event) -> str | None:
        """Return None for an event without meaning for a person."""
        sentence = sentence_of(event.payload)
        if sentence is None:
            return None
        lead, text = output.one_line(sentence.lead), output.one_line(sentence.text)
        match sentence.kind:
            case "note":
                return self._note(event, text)
            case "turn":
                return f"{click.style(lead, bold=True)}  {text}"
            case "question":
                return click.style(f"⏸ {lead}: ", fg="magenta") + text
            case "retried":
                return f"{click.style(lead, fg='yellow')}: {text}"
            case outcome:
                mark, colour = output.MARKS.get(outcome, ("·", None))
                head = click.style(f"{mark} {lead}", fg=colour) + self._duration(event)
                return f"{head}: {text}" if text else head

    def _note(self, event: Event, text: str) -> str:
        """Report the start of a child only once, though it runs again after each wait."""
        match event.payload:
            case NodeStarted(due_at=due_at):
                self._started[str(event.node_id)] = event.timestamp
                if due_at is not None:
                    seconds = output.seconds_between(event.timestamp, due_at)
                    text += f", waits {output.format_span(seconds)}"
            case NodeDispatched(child_run_id=child, child_status=status):
                if child in self._children:
                    text = output.one_line(f"child {child} {status}")
                self._children.add(child)
            case _:
                pass
        return text

    def _duration(self, event: Event) -> str:
        began = self._started.pop(str(event.node_id), None)
        if began is None:
            return ""
        return f" in {output.format_span(output.seconds_between(began, event.timestamp))}"


def summarize(event: Event) -> str:
    """Return the event in a few plain words, also one without meaning for a person."""
    action = getattr(event.payload, "action", None)
    name = f"{event.type}: {action}" if action else event.type
    return output.one_line(click.unstyle(EventLines().line(event) or name))
