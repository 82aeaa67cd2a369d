"""``moot convene``: put a question to a council, and be there."""

import sys
from typing import Any, NamedTuple

import click

from moot.cli.runs.follow import is_plain
from moot.cli.shared import output, quantities
from moot.cli.shared.client import Api, Client, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit
from moot.cli.shared.options import Options, place, talks

MODES = ("round-robin", "declared", "addressed", "raise-hand", "moderated", "small", "large")


def _bounds(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in given:
        try:
            found |= quantities.budget(word)
        except ValueError as error:
            raise click.BadParameter(f"{error}.") from None
    return found


def _names(ctx: click.Context, param: click.Parameter, given: str) -> list[str]:
    names = [name.strip() for name in given.split(",") if name.strip()]
    if not names:
        raise click.BadParameter("name the agents that take part: --with ada,bo.")
    return list(dict.fromkeys(names))


OPTIONS = (
    click.option("--with", "members", required=True, metavar="A,B,C", callback=_names,
                 help="The agents that take part, in the order they speak."),
    click.option("--moderator", metavar="NAME", help="Who sums up and proposes a decision."),
    click.option("--rounds", type=click.IntRange(1, 100), show_default="2",
                 help="How often everybody has the floor."),
    click.option("--budget", multiple=True, metavar="N-WHAT", callback=_bounds,
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


def _options(command: Any) -> Any:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("question")
@_options
@talks
def convene(options: Options, question: str, **given: Any) -> Exit:
    """Put a question to a council of agents and follow it as they speak.

    At the prompt plain text is a turn, @NAME addresses one member, /help lists what else can be
    done. The server leads the council: it goes on when you leave. In a pipe there is no prompt,
    and exit code 4 says that the council waits for a person.

    \b
    moot convene "Do we raise prices in Q1?" --with ada,bo,cy --moderator mo \\
        --rounds 2 --budget 20k-tokens --vote
    """
    api, client = to_write(options), Client(place(options))
    if not question.strip():
        raise click.UsageError("say what the council is to talk about: moot convene QUESTION.")
    thread_id = str(api.post("/v1/host/moot/councils", asked(question, **given))["threadId"])
    if given["detach"]:
        _show_id(options, thread_id)
        return Exit.OK
    how = Attending(prompt=not given["no_prompt"], as_json=options.json)
    return attend(api, client, thread_id, how)


def asked(question: str, **given: Any) -> dict[str, Any]:
    """What the API is told."""
    names, moderator = list(given["members"]), given["moderator"]
    if moderator is not None and moderator not in names:
        names.append(moderator)
    policy = {
        "mode": given["mode"], "blind": given["blind"], "vote": given["vote"],
        "close": given["closes"],
    }  # fmt: skip
    if given["rounds"] is not None:
        policy["rounds"] = given["rounds"]
    body: dict[str, Any] = {"question": question, "participants": names, "policy": policy}
    more = {"moderator": moderator, "title": given["title"], "budget": given["budget"] or None}
    body |= {key: value for key, value in more.items() if value is not None}
    if given["open_"]:
        body["open"] = True
    return body


def _show_id(options: Options, thread_id: str) -> None:
    if options.json:
        output.show_json({"threadId": thread_id})
    else:
        click.echo(thread_id)


class Attending(NamedTuple):
    """How a thread is followed."""

    prompt: bool = True
    as_json: bool = False
    #: the newest event that is not to be shown
    after: int = -1
    #: also while it waits for a person
    stay: bool = False


def attend(api: Api, client: Client, thread_id: str, how: Attending) -> Exit:
    """Follow a thread until it ends or is left, and say how to come back."""
    from moot.cli.councils.session import Council, Left, threads, waits_for

    thread = api.get(threads(thread_id))
    shown = Council(api, client, thread, how.prompt and sys.stdin.isatty(), how.as_json)
    shown.tell(header(thread))
    try:
        end = shown.follow(how.after, how.stay)
    except Left as left:
        name, now = output.short(thread_id), api.get(threads(thread_id))
        rests = not now["open"] or now.get("floor", {}).get("atRest", True)
        kind = "thread" if is_plain(now) else "council"
        goes_on = f"it waits for {_whom(now)}" if rests else f"the {kind} goes on"
        output.complain(f"You left; {goes_on}. Come back: {way(f'watch {name}')}")
        if left.by_force:
            raise click.Abort from None
        return Exit.OK
    if end is Exit.WAITING:
        now = api.get(threads(thread_id))
        name = output.short(thread_id)
        if "floor" not in now:
            from moot.cli.interrupts.questions import waiting_line

            output.complain(waiting_line(api, str(now["runId"])))
            return end
        output.complain(
            f"{_called(now)} waits for {_whom(now)}: {waits_for(now)}."
            f" Take part: {way(f'watch {name}')},"
            f" or end it: {way(f'thread close {name} --decision TEXT')}"
        )
    return end


def _called(thread: dict[str, Any]) -> str:
    """``The thread “Prices”``"""
    if not is_plain(thread):
        return "The council"
    title = output.one_line(thread["title"] or "")
    return f"The thread “{title}”" if title else "The thread"


def _whom(thread: dict[str, Any]) -> str:
    asked = [one["person"] for one in thread.get("asked", [])]
    return "you" if thread.get("you") in asked else "a person"


def _of_thread(name: str, thread: dict[str, Any], floor: dict[str, Any]) -> str:
    """``Thread th_9f3a · Prices · 2 agents, 1 program + you · all answer what is said to all``"""
    programs = len(floor["outside"])
    agents = len(floor["members"]) - programs
    kinds = ((agents, "agent"), (programs, "program"))
    others = ", ".join(quantities.counted(many, kind) for many, kind in kinds if many)
    all_of_them = floor["now"] == "small" or thread["state"]["invited_auto"]
    answers = "all answer what is said to all" if all_of_them else "who is named answers: @NAME"
    there = [f"{others} + you", answers] if others else ["you"]
    return " · ".join([name, output.one_line(thread["title"] or ""), *there])


def header(thread: dict[str, Any]) -> str:
    """``Thread th_9f3a · 3 agents + you · order: round-robin · moderator: Mo``"""
    floor = thread.get("floor")
    name = f"Thread {output.short(str(thread['threadId']))}"
    if floor is None:
        members = len(thread.get("participants", thread["state"]["participants"]["invited"]))
        return f"{name} · {quantities.counted(members, 'agent')} + you"
    if is_plain(thread):
        return _of_thread(name, thread, floor)
    moderator, members = floor["moderator"], floor["members"]
    others = [one for one in members if one != moderator] or list(members)
    parts = [name, f"{quantities.counted(len(others), 'agent')} + you", f"order: {floor['mode']}"]
    if moderator:
        called = members.get(moderator, {}).get("name") or moderator.rpartition(":")[2]
        parts.append(f"moderator: {output.one_line(str(called))}")
    limits = floor["limits"]
    parts.append(f"{quantities.counted(floor['rounds'], 'round')}")
    parts.append(f"at most {quantities.grouped(limits['tokens'])} tokens")
    return " · ".join(parts)
