"""A user's name and password go to a repository only by a way that nobody else can read, or where that is allowed."""

import pytest
from goose_like_toolkits.components.described.coordinates import parse
from goose_like_toolkits.components.repositories.deploying import target_for
from goose_like_toolkits.components.repositories.remote import open_remote
from goose_like_toolkits.components.repositories.repository import LocalRepository, Repositories
from goose_like_toolkits.components.repositories.settings import address_of, read_settings

from goose_like.core.errors import GooseLikeError, UsageError
from tests.toolkits.components.component_server import component_server

WORDS = parse("org.ada:words:1.0")
REFUSED = r"for all to read; give its address with https:, or allow it by `insecure: true`"


def found(tmp_path, *addresses):
    return Repositories(LocalRepository(tmp_path / "local"), addresses, shelves=()).find(WORDS)


@pytest.mark.parametrize("host", ["repo.invalid", "10.0.0.1:8081", "localhost.invalid", "[fe80::1]", "0.0.0.0"])
def test_a_password_in_an_address_by_http_is_refused(tmp_path, host):
    with pytest.raises(UsageError, match=REFUSED) as raised:
        found(tmp_path, address_of(f"http://ada:secret@{host}/maven"))
    assert "secret" not in str(raised.value)
    assert f"http://{host}/maven" in str(raised.value)


@pytest.mark.parametrize("host", ["localhost", "maven.localhost", "127.0.0.1", "127.3.2.1", "[::1]"])
def test_to_this_machine_it_goes_by_http(host):
    open_remote(f"http://ada:secret@{host}:1/maven").close()
    open_remote(f"http://{host}:1/maven", ("ada", "secret")).close()


def test_without_a_password_or_by_https_nothing_is_refused():
    for address in ("http://repo.invalid/maven", "https://ada:secret@repo.invalid/maven"):
        open_remote(address).close()
    open_remote("https://repo.invalid/maven", ("ada", "secret")).close()


def test_settings_allow_it(tmp_path):
    (file := tmp_path / "settings.yaml").write_text("repos:\n- {url: 'http://ada:secret@repo.invalid/maven'}\n")
    with pytest.raises(UsageError, match=REFUSED):
        found(tmp_path, *read_settings(file).remotes)
    with pytest.raises(UsageError, match=REFUSED):
        target_for(read_settings(file), False, None)
    file.write_text("repos:\n- {url: 'http://ada:secret@repo.invalid/maven', insecure: true}\n")
    with pytest.raises(GooseLikeError, match=r"http://repo\.invalid/maven can't be reached: ") as raised:
        found(tmp_path, *read_settings(file).remotes)
    assert "secret" not in str(raised.value)
    target_for(read_settings(file), False, None).close()


def test_whoever_deploys_is_refused_before_anything_is_asked(tmp_path):
    with component_server(tmp_path) as server:
        with pytest.raises(UsageError, match=REFUSED):
            open_remote(server.url.replace("127.0.0.1", "0.0.0.0"), ("ada", "secret"))
        assert server.asked == []
