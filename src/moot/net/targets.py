"""Decide which addresses may be called. Pure: look-ups happen elsewhere.

A caller that fills in part of an address must not reach this machine or its neighbours. So a host
is a plain name with a dot or an address in its usual form, and every address of a name must be on
the public internet."""

import ipaddress
import re
from urllib.parse import urlsplit

from msgspec import Struct

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

#: the IPv4 blocks that are not the public internet
_CLOSED_4 = [
    ipaddress.IPv4Network(block)
    for block in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32",
        "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
        "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
        "240.0.0.0/4",
    )
]  # fmt: skip
#: the public part of IPv6, and the exceptions in it: protocols that carry an
#: IPv4 address inside (Teredo, 6to4), benchmarks, documentation
_OPEN_6 = ipaddress.IPv6Network("2000::/3")
_CLOSED_6 = [
    ipaddress.IPv6Network(block)
    for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
]

#: domains that are never public
_INSIDE = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "home.arpa")
#: every port below this belongs to another service
_ORDINARY = 1024
_KNOWN = {"https": 443, "http": 80}
#: ports above it of databases, caches and daemons that often answer without a password
_SERVICES = frozenset({
    1433, 1521, 2375, 2376, 2379, 2380, 3306, 3389, 5432, 5672, 5984, 5985, 6379, 6443, 8500,
    9042, 9200, 9300, 10250, 11211, 27017,
})  # fmt: skip

_NAME = re.compile(
    r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
#: a scheme and, where it is a web address, the beginning of a host
_ADDRESS = re.compile(r"(?!https?:(?!//[^/?#]))[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")


class TargetRefused(Exception):
    """The address may not be called. The message says why, and what to do."""


class NoAddress(TargetRefused):
    """The URL has no scheme or no host."""


class Target(Struct, frozen=True):
    """A parsed address that may be looked up."""

    scheme: str
    host: str
    port: int
    #: path and query, as they go over the wire
    rest: str

    @property
    def origin(self) -> str:
        """Return the value of the Host header."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _KNOWN[self.scheme] else f"{name}:{self.port}"


def parse_target(url: str, private: bool = False) -> Target:
    """Parse a URL. Raise TargetRefused when it may not be called. ``private`` allows private
    addresses, plain HTTP and any port."""
    if not _ADDRESS.match(url):
        raise NoAddress("This is no address; one begins with https:// and a host.")
    if len(url) > 8192 or re.search(r"[^\x21-\x7e]|\\", url):
        raise TargetRefused("The address holds characters that no address has; encode them.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise TargetRefused(f"This is no address: {error}.") from None
    if parts.scheme not in (("https", "http") if private else ("https",)):
        raise TargetRefused("The address must begin with https://.")
    if "@" in parts.netloc:
        raise TargetRefused("The address holds a name or password; leave it out.")
    if port == 0 or parts.netloc.endswith(":"):
        raise TargetRefused("The address has no port after its colon.")
    port = port or _KNOWN[parts.scheme]
    if not private and port != _KNOWN[parts.scheme] and (port < _ORDINARY or port in _SERVICES):
        raise TargetRefused(f"Port {port} is not one that is called from here.")
    host = _parse_host(parts.netloc, parts.hostname or "", private)
    rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port, rest)


def _parse_host(netloc: str, host: str, private: bool) -> str:
    if netloc.startswith("["):
        try:
            address = ipaddress.IPv6Address(host)
        except ValueError:
            raise TargetRefused(f"'{host}' is no IPv6 address.") from None
        check_address(address, private)
        return str(address)
    name = host.removesuffix(".")
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise TargetRefused("The host is no name: letters, digits, '-' and '.' only.")
    labels = name.split(".")
    if _NUMERIC.fullmatch(labels[-1]):  # programs disagree on how to read such names as numbers
        try:
            check_address(ipaddress.IPv4Address(name), private)
        except ValueError:
            raise TargetRefused(f"'{host}' is an odd way to write an address.") from None
        return name
    if not private and (len(labels) == 1 or name.endswith(tuple(f".{end}" for end in _INSIDE))):
        raise TargetRefused(f"'{host}' is a name inside; {OPT_IN}")
    return name


OPT_IN = "set MOOT_ALLOW_PRIVATE_TARGETS=1 to allow such addresses."


def check_address(address: Address, private: bool) -> None:
    """Raise TargetRefused for an address that must not be called."""
    closed = address.is_multicast or address.is_unspecified
    if closed or not (private or is_public(address)):
        hint = "." if closed else f"; {OPT_IN}"
        raise TargetRefused(f"{address} is not an address of the public internet{hint}")


def is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in block for block in _CLOSED_4)
    return address in _OPEN_6 and not any(address in block for block in _CLOSED_6)


def check_addresses(addresses: list[str], target: Target, private: bool) -> list[str]:
    """Check every address of a name, and return them. Raise TargetRefused."""
    if not addresses:
        raise TargetRefused(f"'{target.host}' leads nowhere.")
    for text in addresses:
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            raise TargetRefused(f"'{target.host}' leads to {text!r}, no address.") from None
        check_address(address, private)
    return addresses
