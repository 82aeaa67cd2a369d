"""``moot convene``: put a question to a council and take part in it."""

import functools
import sys
from typing import Any, NamedTuple

import click

from moot.cli.runs.follow import is_plain_thread
from moot.cli.shared import output, quantities
from moot.cli.shared.client import Api, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.http.operation import PreparedCall
from moot.client.operations import threads
from moot.core.text.quantities import format_count
from moot.wire.councils import ConvenedCouncil, CouncilFloor
from moot.wire.threads import ThreadView

MODES = ("round-robin", "declared", "addressed", "raise-hand", "moderated", "small", "large")


def _parse_budgets(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> dict[str, object]:
    budget: dict[str, object] = {}
    for word in words:
        try:
            budget |= quantities.parse_budget(word)
        except ValueError as error:
            raise click.BadParameter(f"{error}.") from None
    return budget


def _parse_members(ctx: click.Context, param: click.Parameter, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.BadParameter("name the agents that take part: --with ada,bo.")
    return list(dict.fromkeys(names))


OPTIONS = (
    click.option("--with", "members", required=True, metavar="A,B,C", callback=_parse_members,
                 help="The agents that take part, in the order they speak."),
    click.option("--moderator", metavar="NAME", help="Who sums up and proposes a decision."),
    click.option("--rounds", type=click.IntRange(1, 100), show_default="2",
                 help="How often everybody has the floor."),
    click.option("--budget", multiple=True, metavar="N-WHAT", callback=_parse_budgets,
                 help="Where it stops: 20k-tokens, 30-turns, 5-minutes, 2-usd."),
    click.option("--policy", "mode", type=click.Choice(MODES), default="round-robin",
                 show_default=True, help="How the floor is given. declared, addressed, small and"
                 " large have no rounds, moderator, votes or blind round."),
    click.option("--blind", is_flag=True, help="In the first round nobody hears the others."),
    click.option("--vote", is_flag=True, help="Members vote on what the moderator proposes."),
    click.option("--close", "closes", type=click.Choice(("person", "moderator")),
                 default="person", show_default=True, help="Who ends it when all is said."),
    click.option("--open", "open_", is_flag=True, help="More may be invited while it lasts."),
    click.option("--title", metavar="TEXT", help="How it is called in lists [the question]."),
    click.option("--no-prompt", is_flag=True, help="Only follow; type nothing."),
    click.option("-d", "--detach", is_flag=True, help="Print its id and go."),
)  # fmt: skip


def _council_options(command: Any) -> Any:
    return functools.reduce(lambda inner, option: option(inner), reversed(OPTIONS), command)


@click.command()
@click.argument("question")
@_council_options
@server_options
def convene(options: CommandOptions, question: str, **settings: Any) -> ExitCode:
    """Put a question to a council of agents and follow it as they speak.

    At the prompt plain text is a turn, @NAME addresses one member, /help lists what else can be
    done. The server leads the council: it goes on when you leave. In a pipe there is no prompt,
    and exit code 4 says that the council waits for a person.

    \b
    moot convene "Do we raise prices in Q1?" --with ada,bo,cy --moderator mo \\
        --rounds 2 --budget 20k-tokens --vote
    """
    api = api_for_writing(options)
    if not question.strip():
        raise click.UsageError("say what the council is to talk about: moot convene QUESTION.")
    thread_id = api.send(council_call(question, **settings)).thread_id
    if settings["detach"]:
        output.print_answer(options, {"threadId": thread_id}, thread_id)
        return ExitCode.OK
    attend_options = AttendOptions(prompt=not settings["no_prompt"], as_json=options.json)
    return attend_thread(api, thread_id, attend_options)


def council_call(question: str, **settings: Any) -> PreparedCall[ConvenedCouncil]:
    """Return the call that starts the council."""
    names, moderator = list(settings["members"]), settings["moderator"]
    if moderator is not None and moderator not in names:
        names.append(moderator)
    policy = {
        "mode": settings["mode"], "blind": settings["blind"], "vote": settings["vote"],
        "close": settings["closes"],
    }  # fmt: skip
    if settings["rounds"] is not None:
        policy["rounds"] = settings["rounds"]
    return threads.convene_council(
        question, names, title=settings["title"], moderator=moderator, policy=policy,
        budget=settings["budget"] or None, open=settings["open_"],
    )  # fmt: skip


class AttendOptions(NamedTuple):
    """Options for following a thread."""

    prompt: bool = True
    as_json: bool = False
    #: the newest event that is not shown
    after: int = -1
    #: stay while the thread waits for a person
    stay: bool = False


def attend_thread(api: Api, thread_id: str, options: AttendOptions) -> ExitCode:
    """Follow a thread until it ends or the user leaves, and say how to come back."""
    from moot.cli.councils.session import CouncilSession, SessionLeft

    thread = api.send(threads.get_thread(thread_id))
    session = CouncilSession(api, thread, options.prompt and sys.stdin.isatty(), options.as_json)
    session.tell(thread_header(thread))
    try:
        end = session.follow(options.after, options.stay)
    except SessionLeft as left:
        name, current = output.short_id(thread_id), api.send(threads.get_thread(thread_id))
        at_rest = not current.open or current.floor is None or current.floor.at_rest
        kind = "thread" if is_plain_thread(current) else "council"
        state = f"it waits for {_awaited_person(current)}" if at_rest else f"the {kind} goes on"
        output.print_error(f"You left; {state}. Come back: {command_hint(f'watch {name}')}")
        if left.by_force:
            raise click.Abort from None
        return ExitCode.OK
    if end is ExitCode.WAITING:
        output.print_error(_waiting_text(api, api.send(threads.get_thread(thread_id))))
    return end


def _waiting_text(api: Api, thread: ThreadView) -> str:
    """Return ``The thread “Prices” waits for you: …``, and the commands that continue it."""
    from moot.cli.councils.session import waiting_reason
    from moot.cli.interrupts.questions import waiting_line

    if thread.floor is None:
        return waiting_line(api, thread.run_id)
    name, title = output.short_id(thread.thread_id), output.one_line(thread.title)
    label = "The council"
    if is_plain_thread(thread):
        label = f"The thread “{title}”" if title else "The thread"
    return (
        f"{label} waits for {_awaited_person(thread)}: {waiting_reason(thread)}."
        f" Take part: {command_hint(f'watch {name}')},"
        f" or end it: {command_hint(f'thread close {name} --decision TEXT')}"
    )


def _awaited_person(thread: ThreadView) -> str:
    people = [one.person for one in thread.asked]
    return "you" if thread.you in people else "a person"


def _plain_thread_header(name: str, thread: ThreadView, floor: CouncilFloor) -> str:
    """Return ``Thread th_9f3a · Prices · 2 agents, 1 program + you · who is named answers``."""
    programs = len(floor.outside)
    agents = len(floor.members) - programs
    kinds = ((agents, "agent"), (programs, "program"))
    counts = ", ".join(format_count(many, kind) for many, kind in kinds if many)
    everyone_answers = floor.now == "small" or thread.state.invited_auto
    rule = "all answer what is said to all" if everyone_answers else "who is named answers: @NAME"
    participants = [f"{counts} + you", rule] if counts else ["you"]
    return " · ".join([name, output.one_line(thread.title), *participants])


def thread_header(thread: ThreadView) -> str:
    """Return ``Thread th_9f3a · 3 agents + you · order: round-robin · moderator: Mo``."""
    floor = thread.floor
    name = f"Thread {output.short_id(thread.thread_id)}"
    if floor is None:
        count = len(thread.participants or thread.state.participants.invited)
        return f"{name} · {format_count(count, 'agent')} + you"
    if is_plain_thread(thread):
        return _plain_thread_header(name, thread, floor)
    moderator, members = floor.moderator, floor.members
    others = [one for one in members if one != moderator] or list(members)
    parts = [
        name,
        f"{format_count(len(others), 'agent')} + you",
        f"order: {floor.mode}",
    ]
    if moderator:
        moderator_name = members.get(moderator, {}).get("name") or moderator.rpartition(":")[2]
        parts.append(f"moderator: {output.one_line(str(moderator_name))}")
    parts.append(f"{format_count(floor.rounds, 'round')}")
    parts.append(f"at most {quantities.group_digits(floor.limits.tokens)} tokens")
    return " · ".join(parts)
