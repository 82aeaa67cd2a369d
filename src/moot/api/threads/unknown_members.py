"""Who nobody can be: a member of a led council that would be waited for in vain."""

from moot.api.http.request import Request
from moot.core.errors import Unprocessable
from moot.core.text.names import full_name
from moot.core.text.nearest import nearest

HOST = "host:"


async def refuse_strangers(request: Request, names: list[str]) -> None:
    """Each member is an agent of this host, standing or not, a person, or somebody a key speaks
    for. An id of another namespace is for its owner to know. Raises Unprocessable with the nearest
    name."""
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
            known = [agent.name for agent in await services.agents.all(tenant)]
            raise _stranger(name.removeprefix(HOST), known)


def _stranger(name: str, known: list[str]) -> Unprocessable:
    meant = nearest(name, known)
    hint = f" Did you mean '{meant}'?" if meant else ""
    return Unprocessable(
        f"'{name}' is no agent of this host, and no key speaks for it.{hint} One that lives"
        f" elsewhere needs its key first: moot key create --name NAME --as {HOST}{name}",
        field="participants",
        participant=name,
        agents=known[:50],
    )
