"""Tests of the names and addresses of hosts. tests/workspace/network/test_proxy.py shows their use."""

from ipaddress import ip_address

import pytest

from goose_like.workspace.network.address_filter import is_address, is_public, normalize_host
from goose_like.workspace.network.host_access import format_host


@pytest.mark.parametrize(
    ("written", "normalized"),
    [
        ("Example.ORG", "example.org"),
        (" example.org. ", "example.org"),
        ("example.org:443", "example.org"),
        ("example.org.:80", "example.org"),
        ("example.org.:8443", "example.org:8443"),
        ("*.Bücher.example", "*.xn--bcher-kva.example"),
        ("xn--BCHER-kva.example", "xn--bcher-kva.example"),
        ("[2606:2800:220:1::80]", "[2606:2800:220:1::80]"),
        ("[::1]:443", "[::1]"),
        ("10.0.0.5:80", "10.0.0.5"),
        ("a..b", "a..b"),
    ],
)
def test_a_host_has_one_spelling(written: str, normalized: str) -> None:
    assert normalize_host(written) == normalized == normalize_host(normalized)


def test_questions_name_a_host_with_an_unusual_port() -> None:
    hosts = [("Example.org", 80), ("example.org.", 8080), ("::1", 443), ("[::1]", 22), ("bücher.example", 443)]
    names = ["example.org", "example.org:8080", "[::1]", "[::1]:22", "xn--bcher-kva.example"]
    assert [format_host(*host) for host in hosts] == names


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::1]", "1.2.3.4:81"]
)
def test_a_resolver_takes_a_host_for_an_address(host: str) -> None:
    assert is_address(host)


@pytest.mark.parametrize("host", ["example.org", "1.example", "0x.org", "a1:80"])
def test_a_name_is_no_address(host: str) -> None:
    assert not is_address(host)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("10.0.0.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("192.0.0.192", False),
        ("168.63.129.16", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::ffff:127.0.0.1", False),
        ("::127.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
        ("2001:0:7f00:1::", False),
        ("fe80::1", False),
        ("fd00::1", False),
    ],
)
def test_only_addresses_of_the_internet_are_public(address: str, expected: bool) -> None:
    assert is_public(ip_address(address)) == expected
