"""The table that turns an event into a sentence, with one row for each payload."""

from moot.core.payloads import agents, interrupts, nodes
from moot.core.payloads.base import OpaquePayload, Payload
from moot.core.sentences.agents import AGENT_SENTENCES
from moot.core.sentences.conversations import CONVERSATION_SENTENCES
from moot.core.sentences.runs import RUN_SENTENCES
from moot.core.sentences.sentence import Names, Sentence, SentenceRow, brief

SENTENCES: dict[type, SentenceRow] = {**RUN_SENTENCES, **AGENT_SENTENCES, **CONVERSATION_SENTENCES}

#: events without a sentence, because another event reports the same
SILENT = frozenset({
    nodes.NodeSuspended, nodes.NodeResumed, interrupts.ApprovalRequested,
    interrupts.ApprovalReceived, interrupts.ClarificationRequested,
    interrupts.ClarificationResolved, agents.PromptResolved, agents.ReasoningDelta,
    agents.AgentDecided,
})  # fmt: skip


def sentence_of(payload: Payload | OpaquePayload, names: Names = str) -> Sentence | None:
    """Return the sentence about an event, or None for one without meaning for a person.

    A payload that this host cannot read is named as it is.
    """
    if isinstance(payload, OpaquePayload):
        return Sentence(f"{payload.event_type} {brief(bytes(payload.raw).decode(), 100)}")
    row = SENTENCES.get(type(payload))
    if row is None:
        return None
    sentence = row.format(p=payload) if isinstance(row, str) else row(payload, names)
    if isinstance(sentence, str):
        return Sentence(sentence) if sentence else None
    return sentence


def text_of(payload: Payload | OpaquePayload, names: Names = str) -> str | None:
    """Return the whole sentence as a text, or None."""
    sentence = sentence_of(payload, names)
    return sentence.whole if sentence is not None else None
