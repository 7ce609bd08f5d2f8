"""Address filter: normalize and resolve host names, and tell public internet addresses from private ones."""

import asyncio
import re
import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from goose_like.core.errors import GooseLikeError

Address = IPv4Address | IPv6Address

_INTERNET = IPv6Network("2000::/3")  # the global unicast addresses assigned so far: RFC 4291, IANA's registry
_TRANSLATED = IPv6Network("64:ff9b::/96")  # an IPv4 address in the last 32 bits: RFC 6052
_SPECIAL = (
    IPv4Network("192.0.0.0/24"),  # protocol assignments, RFC 6890; the metadata service of one cloud is here
    IPv4Network("168.63.129.16"),  # services of another cloud for its machines, although it looks public
)


def normalize_host(host: str) -> str:
    """Write a host, or a pattern of hosts, as questions and lists name it, also with a port.

    The result is in lower case and in ASCII, without a dot at the end and without the ports 80 and 443.
    """
    host = re.sub(r"\.*(?::(?:80|443)|(:\d+))?$", r"\1", host.strip().lower())
    with suppress(UnicodeError):  # no name of a host
        return host.encode("idna").decode()
    return host


def is_address(host: str) -> bool:
    """Check whether a resolver takes a host for an address, also with a port. It takes 127.1 and 0x7f000001 too."""
    return re.fullmatch(r"(\[.*\]|(.*\.)?(\d+|0x[0-9a-f]*))(:\d+)?", host) is not None


async def resolve_host(host: str, port: int) -> list[Address]:
    """Resolve a host name to its addresses, in the order that the system prefers.

    Raises:
        GooseLikeError: there is no address.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "that is no valid name"
        advice = "check its spelling"
        if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
            advice = "this machine may be offline"
        raise GooseLikeError(f"no address is known for the host {host!r}: {why}; {advice}") from error
    addresses = [ip_address(place[0]) for *_, place in found]
    return list(dict.fromkeys(addresses))


def is_public(address: Address) -> bool:
    """Check that an address is on the open internet: not this machine, its network, or the inside of a cloud.

    An IPv4 address inside an IPv6 address is judged as the IPv4 address.
    """
    if isinstance(address, IPv6Address):
        within = address.ipv4_mapped or address.sixtofour
        if address in _TRANSLATED:
            within = IPv4Address(int(address) & 0xFFFFFFFF)
        if within:
            return is_public(within)
        return address in _INTERNET and address.is_global
    is_special = address.is_multicast or any(address in network for network in _SPECIAL)
    return address.is_global and not is_special


def is_loopback(address: Address) -> bool:
    """Check whether an address leads to this machine itself, also one inside an IPv6 address."""
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return address.is_loopback or address.is_unspecified
