"""Inputs of a new thread: title, opening, participants and profiles."""

from moot.api.http.request import Request
from moot.core.conversations.participants import check_invited
from moot.core.errors import BadRequest, Unprocessable
from moot.core.state.council_policy import THREAD_POLICY
from moot.core.text.names import full_name
from moot.core.text.nearest import nearest_word
from moot.core.text.titles import TITLE_RULE, parse_title
from moot.wire.json import JsonObject

HOST = "host:"


async def check_members_known(request: Request, names: list[str]) -> None:
    """Raise Unprocessable for a member that has no speaker, with the nearest name.

    A member is an agent of this host, a standing agent, a person, or a name of a key. Ids of other
    namespaces are not checked.
    """
    services, tenant = request.services, request.caller.tenant
    missing = [
        name
        for name in names
        if name.startswith(HOST)
        and await services.agents.find(tenant, name.removeprefix(HOST)) is None
        and await services.roster.find(tenant, name) is None
    ]
    if not missing:
        return
    now, spoken_for = services.clock.millis(), set()
    for key in await services.store.keys(tenant):
        if key.revoked_at is None and (key.expires_at is None or key.expires_at > now):
            spoken_for |= {full_name(name) for name in key.speaks_as}
    for name in missing:
        if name not in spoken_for:
            names_here = [agent.name for agent in await services.agents.all(tenant)]
            raise _unknown_member(name.removeprefix(HOST), names_here)


def _unknown_member(name: str, names: list[str]) -> Unprocessable:
    suggestion = nearest_word(name, names)
    hint = f" Did you mean '{suggestion}'?" if suggestion else ""
    return Unprocessable(
        f"'{name}' is no agent of this host, and no key speaks for it.{hint} One that lives"
        f" elsewhere needs its key first: moot key create --name NAME --as {HOST}{name}",
        field="participants",
        participant=name,
        agents=names[:50],
    )


def check_title(text: str, field: str = "title") -> str:
    """Return the title as it is stored. Raise BadRequest when it is not usable."""
    title = parse_title(text)
    if title is None:
        raise BadRequest(TITLE_RULE, field=field)
    return title


def participant_from_item(item: str | JsonObject) -> JsonObject:
    """Return a participant. A bare name is an agent of this host."""
    if isinstance(item, dict):
        return item
    return {"agentId": full_name(item)}


async def agent_profiles(request: Request, names: list[str]) -> dict[str, JsonObject]:
    profiles = {}
    for name in names:
        if not name.startswith("host:"):
            continue
        agent = await request.services.agents.find(request.caller.tenant, name[5:])
        if agent is not None:
            profiles[name] = {"name": agent.called, "role": agent.role, "model": agent.model}
    return profiles


async def thread_inputs(
    request: Request, title: str, opening: str | None, invited: list[str | JsonObject]
) -> JsonObject:
    """Return the inputs of a new thread, with the profiles of agents of this host."""
    members = [participant_from_item(item) for item in invited]
    check_invited(members)
    names = [str(each["agentId"]) for each in members]
    profiles = await agent_profiles(request, names)
    inputs: JsonObject = {
        "title": check_title(title),
        "invited": members,
        "participation": THREAD_POLICY,
        "profiles": profiles,
        "outside": [name for name in names if name not in profiles],
    }
    return inputs if opening is None else {**inputs, "question": opening}
