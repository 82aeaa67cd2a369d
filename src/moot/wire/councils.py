"""Councils: the request that convenes one, its floor and its decision."""

from typing import Annotated

from msgspec import Meta, Struct

from moot.core.state.council_policy import Policy
from moot.wire.json import JsonObject, WireStruct
from moot.wire.request import InvitedParticipants, Name, RequestStruct, Text, Title


class CouncilBudget(RequestStruct, frozen=True):
    """The limits at which a council stops."""

    turns: Annotated[int, Meta(ge=1, le=1000)] | None = None
    tokens: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    money: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None
    minutes: Annotated[int, Meta(ge=1, le=100_000)] | None = None


class ConveneCouncil(RequestStruct, frozen=True):
    """A council: a question to a closed roster, or with ``open`` to invited participants."""

    question: Annotated[Text, Meta(description="The question, as the first turn.")]
    participants: InvitedParticipants = []
    title: Title | None = None
    open: bool = False
    #: With any of the following fields the host leads the council.
    moderator: Name | None = None
    policy: Policy | None = None
    budget: CouncilBudget | None = None


class ConvenedCouncil(WireStruct, frozen=True):
    """A new council."""

    run_id: str
    thread_id: str
    url: str


class CouncilLimits(WireStruct, frozen=True):
    """The bounds at which a council stops by itself."""

    consecutive: int
    pair: int
    calls: int
    tokens: int
    minutes: int
    money: float | None
    agent_calls: int
    agent_tokens: int
    silence: int


class CouncilSpending(Struct, frozen=True, omit_defaults=True):
    """Model calls, tokens and money that a council has used. Zeros are left out."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0


class SpeakingMember(WireStruct, frozen=True):
    """A member that has the floor, and its task."""

    wake_id: str
    agent_id: str
    task: str
    since: str


class HeldTurn(WireStruct, frozen=True):
    """A turn that waits for a person to admit or drop it."""

    held: str
    turn: JsonObject


class ToolQuestion(WireStruct, frozen=True):
    """A member's request to use a tool that needs approval."""

    ask_id: str
    agent_id: str
    tool_name: str


class CouncilFloor(WireStruct, frozen=True):
    """The state of a council that the host leads: speakers, rounds, costs and votes."""

    #: the mode of its policy, and the mode that ``auto`` amounts to now
    mode: str
    now: str
    phase: str
    round: int
    rounds: int
    moderator: str | None
    #: member -> its profile
    members: dict[str, JsonObject]
    #: members that the host does not speak for
    outside: list[str]
    speaking: list[SpeakingMember]
    #: the reason why the council has stopped
    stopped: str | None
    spent: CouncilSpending
    limits: CouncilLimits
    proposal: str | None
    #: member -> its vote
    votes: dict[str, JsonObject]
    held: list[HeldTurn]
    asks: list[ToolQuestion]
    #: no member has the floor or will get it next
    at_rest: bool


class CouncilVote(WireStruct, frozen=True):
    """One participant's vote."""

    by: str
    vote: str
    reason: str | None = None


class CouncilDissent(WireStruct, frozen=True):
    """One participant's objection to the decision."""

    by: str
    text: str


class ActionItem(WireStruct, frozen=True):
    """One task that follows from the decision."""

    text: str
    owner: str | None = None
    due: str | None = None


class CouncilDecisionView(WireStruct, frozen=True):
    """A decision, with its votes, dissent, cited turns and action items."""

    text: str
    votes: list[CouncilVote] = []
    dissent: list[CouncilDissent] = []
    cited_turns: list[int] = []
    action_items: list[ActionItem] = []
    #: false when the vote did not carry the proposal
    adopted: bool = True
