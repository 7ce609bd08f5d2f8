import pytest

from goose_like.core.errors import UsageError
from goose_like.serve.settings import is_loopback, parse_origins


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("[::1]", True),
        ("LocalHost.", True),
        ("desk.localhost", True),
        ("0.0.0.0", False),
        ("localhost.example", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_which_hosts_are_this_machine(host, is_ours):
    assert is_loopback(host) is is_ours


def test_origins_are_as_browsers_send_them():
    assert parse_origins(["https://Desk.example/", "http://localhost:3000"]) == (
        "https://desk.example",
        "http://localhost:3000",
    )


def test_an_origin_may_be_an_applications():
    assert parse_origins(["tauri://localhost", "chrome-extension://abc"]) == (
        "tauri://localhost",
        "chrome-extension://abc",
    )
    for text in ("null", "example.com", "https://*.example.com", "https://example.com/path"):
        with pytest.raises(UsageError, match="is no origin"):
            parse_origins([text])
