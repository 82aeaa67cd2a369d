"""Refuse connections of tests that leave this machine.

An audit hook sees every connection that Python itself makes, for any library. It does not see
connections of native code or of other processes.
"""

import ipaddress
import sys
from typing import Any

_state = {"hooked": False, "refusing": False}

#: audit event -> index of the argument that is the address
ADDRESS_ARGUMENTS = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
}


class NetworkRefused(OSError):
    """A test tried to reach a network."""


def refuse_network(on: bool = True) -> None:
    """Switch the refusal on or off. Python cannot remove an audit hook, only ignore it."""
    if on and not _state["hooked"]:
        sys.addaudithook(_check_connection)
        _state["hooked"] = True
    _state["refusing"] = on


def _check_connection(event: str, args: tuple[Any, ...]) -> None:
    index = ADDRESS_ARGUMENTS.get(event)
    if index is None or not _state["refusing"]:
        return
    address = args[index] if len(args) > index else None
    host = address[0] if isinstance(address, tuple) and address else address
    if not is_local_host(host):
        raise NetworkRefused(
            f"{host!r} is not this machine, and tests run offline: use the demo model, a cassette,"
            " or a server on 127.0.0.1."
        )


def is_local_host(host: Any) -> bool:
    """Return whether the host is loopback, a file socket, or already connected."""
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str) or host in ("", "localhost") or "/" in host or "\0" in host:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
