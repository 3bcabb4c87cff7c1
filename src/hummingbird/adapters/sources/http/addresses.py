"""Which network addresses a model's wish may lead to (D7). Pure: it resolves nothing and connects nowhere."""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

# What stands behind these prefixes is an IPv4 address that some gateway connects to
_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")
# Outside of it nothing is routed in public; some of it is translated to IPv4, such as ::ffff:0:127.0.0.1
_PUBLIC = IPv6Network("2000::/3")
_HERE = IPv4Network("0.0.0.0/8")
# Where clouds hand out the credentials of a machine, besides what is link-local. Azure's is a public address.
_METADATA = (
    IPv4Network("100.100.100.200"),  # Alibaba Cloud
    IPv4Network("168.63.129.16"),  # Azure
    IPv4Network("192.0.0.192"),  # Oracle Cloud, formerly
    IPv6Network("fd00:ec2::/32"),  # AWS
    IPv6Network("fd20:ce::/32"),  # Google Cloud
    IPv6Network("fd00:c1::/32"),  # Oracle Cloud
    IPv6Network("fd00:42::42"),  # Scaleway
)
_NUMBER = re.compile(r"(?:[0-9]+|0[xX][0-9a-fA-F]*)")


def reachable(address: Address, *, private: bool) -> bool:
    """Whether a connection may go there. `private` adds one's own networks and this machine, and nothing more: no
    metadata service of a cloud, whatever the operator allows, and no multicast, which is no server."""
    real = meant(address)
    if real is None or real.is_multicast or real.is_unspecified or is_metadata(real):
        return False
    if isinstance(real, IPv6Address) and (real.scope_id or real.is_site_local):
        return False
    if real in _HERE:
        return False
    if real.is_global:
        return isinstance(real, IPv4Address) or real in _PUBLIC
    return private and (real.is_loopback or not real.is_reserved)


def is_metadata(address: Address) -> bool:
    """Whether a cloud may hand out credentials there: any link-local address, and those in _METADATA. An IPv6 address
    that ends in such an IPv4 address counts too, because a gateway may translate it under a prefix of its own."""
    if address.is_link_local or any(address in network for network in _METADATA):
        return True
    return isinstance(address, IPv6Address) and is_metadata(IPv4Address(int(address) & 0xFFFFFFFF))


def meant(address: Address) -> Address | None:
    """The address that a packet ends up at: an IPv6 address may wrap an IPv4 one. None where that cannot be known."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None or address in _NAT64_LOCAL or (address in _COMPATIBLE and int(address) > 1):
        return None
    return address


def is_literal(host: str) -> bool:
    """Whether a host is an address in any spelling that some resolver takes: 127.0.0.1, 127.1, 0177.0.0.1, 0x7f000001,
    2130706433, ::1. Names never end in a number."""
    return ":" in host or "[" in host or _NUMBER.fullmatch(host.rstrip(".").rsplit(".", 1)[-1]) is not None


def literal(host: str) -> Address | None:
    """The address that a host is, in its one plain spelling and without a zone; None for any other."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return None if isinstance(address, IPv6Address) and address.scope_id else address
