"""Addresses: where a host's name leads, and whether that is the open internet or somebody's own network."""

import asyncio
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from goose_like.toolkit import ToolError

Address = IPv4Address | IPv6Address

_INTERNET = IPv6Network("2000::/3")  # all that is given out as global unicast so far: RFC 4291, IANA's registry
_TRANSLATED = IPv6Network("64:ff9b::/96")  # an IPv4 address stands in the last 32 bits: RFC 6052
_SPECIAL = (
    IPv4Network("192.0.0.0/24"),  # of protocols, RFC 6890; one cloud's metadata stands there
    IPv4Network("168.63.129.16"),  # another cloud's services for the machine itself, though it looks public
)


async def addresses(host: str, port: int) -> list[Address]:
    """What the host's name leads to now, in the order in which the system would try.

    Raises:
        ToolError: to nothing.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "that is no valid name"
        raise ToolError(f"no address is known for the host {host!r}: {why}; check its spelling") from error
    return list(dict.fromkeys(ip_address(entry[4][0]) for entry in found))


def is_public(address: Address) -> bool:
    """Whether it is a machine of the open internet: not this one, none of its network, none of a cloud's insides.

    An IPv4 address within one of IPv6 counts as what it is.
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
