"""Sentences by stance.

``{do}``, ``{doing}`` and ``{thing}`` come from the question.
"""

from msgspec import Struct


class Stance(Struct, frozen=True, kw_only=True):
    """The sentences of a role: to open, argue, settle, reply, ask and vote."""

    name: str
    #: prefixes of words in a role or persona that select this stance
    words: tuple[str, ...]
    open: tuple[str, ...]
    argue: tuple[str, ...]
    settle: tuple[str, ...]
    #: replies to the last speaker
    leads: tuple[str, ...]
    #: questions to another participant
    asks: tuple[str, ...]
    votes: tuple[tuple[str, str], ...]
    #: theme of the question -> opening sentences for it
    themed: dict[str, tuple[str, ...]] = {}


SKEPTIC = Stance(
    name="skeptic",
    words=("skeptic", "sceptic", "critic", "devil", "doubt", "contrarian", "challeng", "oppos"),
    open=(
        "What exactly goes wrong today that {doing} would fix?",
        "Before {doing}, I would like to hear what happens if nothing changes for a year.",
        "I have heard a plan to {do}, but not yet the problem it solves.",
        "The case for {doing} sounds tidy, and tidy is not a reason.",
        "When it comes to {thing}, the burden of proof is on the change, not on what works.",
    ),
    argue=(
        "That holds only if nothing else changes meanwhile, and something always does.",
        "We are comparing {thing} as it is with a version nobody has seen yet.",
        "Name one thing that must be true for this to work, and how we would notice if it is not.",
        "The cost we forget is the work that stands still meanwhile.",
        "If that were easy, it would have been done long ago.",
        "I have seen this go well once and badly three times; what is different here?",
    ),
    settle=(
        "I could live with a small step that can be taken back in a day.",
        "Name the figure at which we stop, and I stop objecting.",
        "Write down what would prove us wrong, and I am in.",
        "I still doubt it, but a trial with an end date is a fair way to find out.",
    ),
    leads=(
        "{prev}, I am not convinced.",
        "{prev}, that leaves out the hard part.",
        "I would turn that around, {prev}.",
        "{prev}, half of that is right.",
        "Not so fast, {prev}.",
    ),
    asks=(
        "{other}, what would make you stop?",
        "{other}, what is the worst that could come of it?",
    ),
    votes=(
        ("no", "Nobody has shown what fails today."),
        ("yes", "If it can be taken back within a day."),
        ("no", "The cost of waiting is still only a feeling."),
        ("abstain", "I would need one figure that I have not seen."),
    ),
    themed={
        "software": (
            "The old code pays the rent.",
            "Every odd line in the old code is a customer who once complained.",
        ),
        "money": ("A price is quickly changed and slowly forgiven.",),
        "people": ("People are not slots that can be filled.",),
    },
)

BUILDER = Stance(
    name="builder",
    words=("build", "engineer", "develop", "maker", "architect", "founder", "product", "program"),
    open=(
        "I would take the smallest step towards {doing} and leave the rest alone.",
        "Whether to {do} is the wrong size of question; which part first is the right one.",
        "{doing} in one go is too much, but one slice at a time it is ordinary work.",
        "Two weeks on one narrow piece would tell us more about {thing} than a month of talk.",
    ),
    argue=(
        "We can put the new part beside the old one and move over one case at a time.",
        "Every month we wait, the workaround grows another workaround.",
        "A way back costs a day to build; I would build that first.",
        "Doing nothing is a decision too, only one without a plan.",
        "I would rather be wrong within a week than right within a year.",
        "Pick the one case that hurts most, and we can show it working by Friday.",
    ),
    settle=(
        "Then let us agree on one slice, one owner and one date.",
        "I can work with that: small, behind a switch, with a way back.",
        "Good: first the piece that hurts, then we look again.",
        "Fine, I trade the big plan for a first piece that nobody can object to.",
    ),
    leads=(
        "{prev}, agreed on the risk, not on the remedy.",
        "{prev}, that is a reason to start small, not a reason to wait.",
        "Yes, {prev}, and there is a cheap way to find out.",
        "{prev}, we can have both.",
        "I take that seriously, {prev}.",
    ),
    asks=(
        "{other}, what is the smallest step you could accept?",
        "{other}, which part would you touch first?",
    ),
    votes=(
        ("yes", "One slice first, with a way back."),
        ("yes", "Waiting has a price as well."),
        ("yes", "If we begin with the part that hurts."),
        ("yes", "The first piece will tell us more than another vote."),
    ),
    themed={
        "software": (
            "One part usually causes most of the trouble; I would replace that one and keep the"
            " rest.",
            "A switch in front of the new code makes this a quiet change.",
        ),
        "money": ("We can try it on a few accounts and take it back the same day.",),
        "people": ("Let one team try it for a month; what works is quickly copied.",),
    },
)

MEASURER = Stance(
    name="measurer",
    words=("measur", "analy", "data", "metric", "research", "scien", "statist", "evidence"),
    open=(
        "Nobody has given a figure yet: what would {doing} save us in a month?",
        "Two weeks of measuring {thing} are cheaper than six of guessing.",
        "I would write down today's figures for {thing} before anybody touches anything.",
        "How often is there trouble with {thing}, and what does it cost each time?",
    ),
    argue=(
        "That may be so; I would like to see it in the figures of the last quarter.",
        "One story is not a rate. How many cases, out of how many?",
        "If we cannot say in numbers what better means, we will all claim that we got it.",
        "Let us pick the one figure that decides, and agree on it before we look.",
        "A pilot without a baseline is an anecdote with a budget.",
    ),
    settle=(
        "Put a threshold on it and I agree: below it we stop, above it we go on.",
        "Measure for two weeks, then decide with the figures on the table.",
        "I support it if the figures are collected from the first day.",
        "A small trial with a baseline would settle this for me.",
    ),
    leads=(
        "{prev}, how would we know?",
        "{prev}, is that a feeling or a figure?",
        "That can be checked, {prev}.",
        "{prev} may be right, and it is easy to find out.",
    ),
    asks=(
        "{other}, what number would change your mind?",
        "{other}, which figure would you look at first?",
    ),
    votes=(
        ("yes", "If the pilot is measured."),
        ("yes", "With a threshold agreed beforehand."),
        ("yes", "Once a baseline has been taken."),
        ("yes", "The figures will show whether it was right."),
    ),
    themed={
        "software": ("Response times and support tickets would tell us in a week.",),
        "money": ("Last year's figures would answer half of this.",),
        "people": ("Ask everybody three questions now and the same three in a month.",),
    },
)

MODERATOR = Stance(
    name="moderator",
    words=("moderat", "chair", "facilitat", "host", "mediator"),
    open=(
        "The question is whether to {do}. First the case for it, then the case against.",
        "Let us hear each view of {thing} once before we argue.",
        "Before we weigh {doing}: what would each of you call a good outcome?",
    ),
    argue=(
        "What would each of you need in order to say yes?",
        "We agree on more than it sounds; what is left is the order of the steps.",
        "Let us keep the goal and the way apart for a moment.",
        "Is there anybody for whom this is out of the question?",
    ),
    settle=(
        "I think we are close: one step, one figure, one date. Who objects?",
        "Before we close, is there anything that would make one of you say no?",
        "Let me try a sentence that all could sign; tell me which word is wrong.",
    ),
    leads=("Thank you, {prev}.", "Noted, {prev}.", "{prev}, let me hold on to that."),
    asks=("{other}, how do you see it?", "{other}, what is missing?"),
    votes=(
        ("abstain", "The chair does not vote."),
        ("yes", "Everybody could live with it."),
    ),
)

LEGAL = Stance(
    name="legal",
    words=("legal", "law", "complian", "privacy", "counsel", "regulat", "contract"),
    open=(
        "Before {doing}: who is bound by a contract here, and until when?",
        "{doing} may touch what we promised in writing; I would check that first.",
        "I see nothing that forbids us to {do}, but I want the notice periods on the table.",
        "What do our terms say about changes to {thing}?",
    ),
    argue=(
        "Nothing of that is forbidden; some of it needs notice in writing.",
        "The risk is not the change, it is the change nobody was told about.",
        "If it goes wrong we will be asked who decided, and on what grounds.",
        "Keep the old records; we may have to show them years from now.",
    ),
    settle=(
        "With notice given and the old records kept, I have no objection.",
        "I agree if the decision and its grounds are written down.",
        "One condition: nobody's terms change without being told.",
    ),
    leads=(
        "{prev}, in principle yes.",
        "{prev}, that depends on what we promised.",
        "A word of caution, {prev}.",
    ),
    asks=("{other}, whom would we have to tell?", "{other}, is that written down anywhere?"),
    votes=(
        ("yes", "If notice is given in writing."),
        ("abstain", "I have not seen the contracts."),
        ("no", "Not before the terms have been read."),
    ),
)

CUSTOMER = Stance(
    name="customer",
    words=("customer", "user", "support", "sales", "market", "success", "design", "client"),
    open=(
        "Has anybody asked the people who depend on {thing}?",
        "Customers will not see our plan for {thing}; they will see its first week.",
        "If we {do}, what looks different to a customer on the first day?",
    ),
    argue=(
        "They do not mind change; they mind finding out by accident.",
        "I would tell ten customers first and listen to what they ask.",
        "People forgive a missing feature sooner than a surprise.",
        "What they complain about and what we want to change are often two things.",
    ),
    settle=(
        "Announce it early, begin with those who ask for it, and I am for it.",
        "If support knows a week before, I am content.",
        "Begin with customers who volunteer; they tell us the truth.",
    ),
    leads=(
        "{prev}, and how does that look from outside?",
        "{prev}, customers would put it differently.",
        "I like that, {prev}, with one change.",
    ),
    asks=("{other}, who would notice first?", "{other}, how would you announce it?"),
    votes=(
        ("yes", "If customers hear of it first."),
        ("yes", "Beginning with volunteers."),
        ("no", "Nobody outside has asked for it."),
    ),
)

FINANCE = Stance(
    name="finance",
    words=("financ", "cfo", "budget", "cost", "account", "treasur", "invest", "economist"),
    open=(
        "What does {doing} cost, and what do we leave undone for it?",
        "In {doing} I see a cost now and a gain later; how much later?",
        "Our budget can carry one mistake with {thing}, not two.",
    ),
    argue=(
        "Count the weeks of everybody involved, not only the bill.",
        "If it pays back within a year it is easy; after that it is a belief.",
        "I would release the money in two parts, the second one after results.",
        "Money already spent on it is no argument for either side.",
    ),
    settle=(
        "Cap it and I sign: a fixed sum, a fixed date, no extension without a new decision.",
        "Half of it now, half when the figures hold.",
        "I agree to the small version; the large one needs another meeting.",
    ),
    leads=(
        "{prev}, what does that come to?",
        "{prev}, somebody pays for that.",
        "I follow you as far as the bill, {prev}.",
    ),
    asks=("{other}, what would you give up for it?", "{other}, when does it pay back?"),
    votes=(
        ("yes", "With a fixed limit on the cost."),
        ("no", "The gain is too far away."),
        ("yes", "In two parts, the second after results."),
    ),
)

OPERATIONS = Stance(
    name="operations",
    words=("operat", "ops", "sre", "secur", "admin", "reliab", "infra"),
    open=(
        "Who is called at night when {doing} goes wrong halfway through?",
        "Before {doing} I would want the way back rehearsed.",
        "Things work today because a few facts happen to hold; which of them does {doing} change?",
    ),
    argue=(
        "Two systems side by side mean twice the alarms for a while; plan for that.",
        "Move at a quiet hour, with somebody awake and a way back.",
        "Most breakdowns begin as a good idea on a Friday.",
        "What we cannot undo in ten minutes we should not do in one step.",
    ),
    settle=(
        "With a rehearsed way back and somebody on watch, I agree.",
        "Do it in steps that can each be undone, and I help.",
        "Fine with me, one part at a time and never on a Friday.",
    ),
    leads=(
        "{prev}, that works until it is three in the morning.",
        "{prev}, I can keep that running.",
        "One practical point, {prev}.",
    ),
    asks=("{other}, how do we undo that?", "{other}, who watches it in the first week?"),
    votes=(
        ("yes", "With a rehearsed way back."),
        ("no", "Nobody has said how it is undone."),
        ("yes", "One part at a time."),
    ),
)

GENERALIST = Stance(
    name="generalist",
    words=(),
    open=(
        "My first thought on {doing}: the timing matters more than the plan.",
        "I see both sides of {thing}; what tips it for me is how easily it can be undone.",
        "Let us keep apart what we know about {thing} and what we assume.",
    ),
    argue=(
        "I would take the step that teaches us most for the least effort.",
        "Both can be true; the question is which one we can test sooner.",
        "Suppose we are wrong: which mistake is cheaper to repair?",
        "There is a smaller version of this that nobody here would fight.",
    ),
    settle=(
        "I am for the smaller version, and for looking again in two weeks.",
        "That is good enough to begin with.",
        "Agreed, as long as we say now when we look at it again.",
    ),
    leads=(
        "{prev}, I see it a little differently.",
        "{prev} has a point.",
        "I would add one thing, {prev}.",
    ),
    asks=("{other}, what do you make of that?", "{other}, would that do for you?"),
    votes=(
        ("yes", "As a first step."),
        ("abstain", "I can live with either."),
        ("no", "Not yet."),
    ),
)

STANCES = (
    SKEPTIC, BUILDER, MEASURER, MODERATOR, LEGAL, CUSTOMER, FINANCE, OPERATIONS, GENERALIST,
)  # fmt: skip


def choose_stance(role: str, persona: str = "") -> Stance:
    """Choose the stance by the role, else by the persona, else the generalist."""
    for text in (role, persona):
        words = text.lower().replace("-", " ").replace("_", " ").split()
        for word in words:
            for stance in STANCES:
                if word.strip(".,;:!?()'\"").startswith(stance.words or "\0"):
                    return stance
    return GENERALIST
