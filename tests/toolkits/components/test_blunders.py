"""What a person is told who names the wrong thing: which it is, and what to do."""

import pytest
from goose_like_toolkits.components.described.checking import check_file
from goose_like_toolkits.components.described.coordinates import parse
from goose_like_toolkits.components.repositories.packing import Sent, deploy_all
from goose_like_toolkits.components.repositories.repository import LocalRepository, Repositories
from goose_like_toolkits.components.repositories.settings import Settings, address_of, read_settings
from goose_like_toolkits.components.repositories.sources import a_path, meant, parted

from goose_like.core.errors import GooseLikeError, UsageError
from tests.toolkits.components.component_files import component
from tests.toolkits.components.component_server import component_server, reply

WORDS = parse("org.ada:words:1.0")


@pytest.mark.parametrize("name", ["", " ", "\t"])
@pytest.mark.parametrize("read", [a_path, meant, lambda name: parted(["x", name])])
def test_a_name_that_is_empty_is_not_the_current_folder(name, read, tmp_path, monkeypatch):
    component(tmp_path / ".config")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"names nothing; give a component's folder, or GROUP:ARTIFACT:VERSION"):
        read(name)


def test_a_tree_where_one_component_is_wanted_tells_the_first(tmp_path):
    with pytest.raises(UsageError, match=r"there is no component in .*: one is a folder with \.config/config\.yaml$"):
        meant(str(tmp_path))
    component(tmp_path / "b" / "words" / ".config")
    with pytest.raises(UsageError, match=r"; there is one in .*/b/words, give its folder$"):
        meant(str(tmp_path))
    for named in ("b/words", "b/words/.config", "b/words/.config/config.yaml"):
        assert meant(str(tmp_path / named)) == tmp_path / "b/words/.config/config.yaml"


def test_a_file_that_is_no_text_is_told_with_its_line(tmp_path):
    (file := tmp_path / "config.yaml").write_bytes(b"group_id: org.a\nartifact_id: \xff\n")
    assert [str(fault) for fault in check_file(file)] == [f"{file}:2: this is no text in UTF-8; save it as such"]


def test_a_repository_that_is_a_file(tmp_path):
    (place := tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"file is no folder; name another local repository"):
        LocalRepository(place).all()
    assert LocalRepository(tmp_path / "not yet").all() == []
    served = b"- words-1.0-config.yaml\n"
    with component_server(tmp_path / "served") as server:
        server.more["/maven/releases/org/ada/words/1.0/__FILES.yaml"] = lambda request: reply(request, 200, served)
        with pytest.raises(GooseLikeError, match=r"^.*file/org/ada/words can't be written: .*; name another local"):
            Repositories(LocalRepository(place), [address_of(server.url)], shelves=()).find(WORDS)


def test_settings_in_a_folder(tmp_path):
    with pytest.raises(UsageError, match=r"is a folder; name the file in it with --settings"):
        read_settings(tmp_path)


def test_a_repository_that_gives_no_answer_is_no_proof_that_a_component_is_not_there(tmp_path):
    with component_server(tmp_path / "served") as server:
        found = Repositories(LocalRepository(tmp_path / "local"), [address_of(server.url)], shelves=())
        with pytest.raises(GooseLikeError, match=r"^there is no component org\.ada:words:1\.0; "):
            found.find(WORDS)
        server.more["/maven/releases/org/ada/words/1.0/__FILES.yaml"] = lambda request: reply(request, 503)
        with pytest.raises(
            GooseLikeError, match=r"there is no component .* here, and not every repository gave an answer; try again"
        ):
            found.find(WORDS)


def test_deployed_to_nowhere(tmp_path):
    component(tmp_path / "words" / ".config")
    settings = Settings(local=tmp_path / "local", remotes=())
    for address in ("", " ", "http://ada:secret@[x"):
        with pytest.raises(UsageError, match=r"^that is no repository's address: ") as raised:
            deploy_all([tmp_path / "words"], settings, LocalRepository(tmp_path / "local"), Sent(address), print)
        assert "secret" not in str(raised.value)
