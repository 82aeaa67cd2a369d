"""A room of one's own: what is private to a person is kept under a tenant that nobody has a key of.

Everything that belongs to a tenant is thereby out of everybody's reach, as what is of another
tenant always is. Who pays for it is the tenant around it.
"""

#: no tenant of a key has it in its name
WALL = "/"


def room(tenant: str, person: str) -> str:
    return f"{tenant}{WALL}{person}"


def around(tenant: str) -> str:
    """The tenant whose agents speak and whose budget counts."""
    return tenant.partition(WALL)[0]


def is_room(tenant: str) -> bool:
    return WALL in tenant
