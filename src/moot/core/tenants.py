"""Private tenants: the data of one person, under a tenant that no key belongs to.

No key can reach data of another tenant, so private data needs no further check. The parent tenant
pays for it.
"""

#: separates parent tenant and person; it never occurs in the tenant of a key
PRIVATE_SEPARATOR = "/"


def private_tenant(tenant: str, person: str) -> str:
    return f"{tenant}{PRIVATE_SEPARATOR}{person}"


def parent_tenant(tenant: str) -> str:
    """Return the tenant whose agents speak and whose budget counts."""
    return tenant.partition(PRIVATE_SEPARATOR)[0]


def is_private_tenant(tenant: str) -> bool:
    return PRIVATE_SEPARATOR in tenant
