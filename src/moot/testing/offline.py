"""No test reaches further than this machine, once this is switched on.

An audit hook hears of every connection that Python itself makes, whichever library asks for it;
what native code does on its own, and other processes, it does not.
"""

import ipaddress
import sys
from typing import Any

_state = {"heard": False, "refusing": False}

#: audit event -> which of its arguments is the address
REACHING = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
}


class NetworkRefused(OSError):
    """A test reached for a network."""


def refuse(on: bool = True) -> None:
    """From now on; a hook cannot be taken away, but it can be told to look away."""
    if on and not _state["heard"]:
        sys.addaudithook(_heard)
        _state["heard"] = True
    _state["refusing"] = on


def _heard(event: str, args: tuple[Any, ...]) -> None:
    place = REACHING.get(event)
    if place is None or not _state["refusing"]:
        return
    address = args[place] if len(args) > place else None
    host = address[0] if isinstance(address, tuple) and address else address
    if not near(host):
        raise NetworkRefused(
            f"{host!r} is not this machine, and tests run offline: use the demo model, a cassette,"
            " or a server on 127.0.0.1."
        )


def near(host: Any) -> bool:
    """This machine: loopback, a socket in the file system, or an address already connected to."""
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str) or host in ("", "localhost") or "/" in host or "\0" in host:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
