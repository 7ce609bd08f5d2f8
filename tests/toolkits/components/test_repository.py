"""Repositories of components: laid out, fetched, verified, deployed; nothing half or wrong is ever kept."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from goose_like_toolkits.components.commands.scaffold import TYPES, write_component
from goose_like_toolkits.components.described.coordinates import Coordinates, parse
from goose_like_toolkits.components.repositories.deploying import deploy, target_for
from goose_like_toolkits.components.repositories.layout import config_file_in
from goose_like_toolkits.components.repositories.listing import RefusedError, read_listing
from goose_like_toolkits.components.repositories.packing import install
from goose_like_toolkits.components.repositories.progress import Progress
from goose_like_toolkits.components.repositories.remote import open_remote
from goose_like_toolkits.components.repositories.repository import FolderShelf, LocalRepository, Repositories
from goose_like_toolkits.components.repositories.settings import RemoteAddress, read_settings
from goose_like_toolkits.components.repositories.signing import Signer, verify
from goose_like_toolkits.components.repositories.sources import (
    Package,
    config_file_at,
    config_files,
    known_packages,
    topmost_package,
)

from goose_like.core.errors import GooseLikeError, UsageError
from tests.toolkits.components.component_server import ComponentServer, component_server, reply
from tests.toolkits.components.gpg_keys import end_agent, secret_key

WORDS = Coordinates("org.example.text", "word-count", "1.0")
PLACE = "releases/org/example/text/word-count/1.0"
CONFIG = "word-count-1.0-config.yaml"
YAML = """
group_id: org.example.text
artifact_id: word-count
version: "VERSION"
type: plugin
as_plugin: true
info: {title: words, description: Counts words.}
commands:
  - {command_name: count, description: Count them., parameter: {type: {text: {type: string}}}}
setup: {package: texts.words}
config: {longest: 3}
"""


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "home" / "goose"))
    monkeypatch.setenv("GNUPGHOME", str(tmp_path / "no-keys"))
    (tmp_path / "no-keys").mkdir(mode=0o700)


def component(root: Path, version: str = "1.0") -> Path:
    """A component with two more files, one of them in a folder."""
    folder = root / "texts" / "words"
    (folder / ".config" / "prompts").mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text("def constructor(config): ...\n")
    (folder / ".config" / "config.yaml").write_text(YAML.replace("VERSION", version))
    (folder / ".config" / "read me.md").write_text("Zählt Wörter.\r\n")
    (folder / ".config" / "prompts" / "long.md").write_text("count")
    return folder


def files_in(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def local(tmp_path) -> LocalRepository:
    return LocalRepository(tmp_path / "local")


@pytest.fixture
def installed(tmp_path) -> LocalRepository:
    """A repository of somebody who deploys."""
    repository = LocalRepository(tmp_path / "author")
    install([component(tmp_path)], repository, print)
    return repository


def deployed(installed: LocalRepository, address: str, signer: Signer | None = None) -> None:
    deploy(installed.folder_of(WORDS), WORDS, open_remote(address), signer, print)


@pytest.fixture
def server(installed, tmp_path):
    """A server with the component in it."""
    with component_server(tmp_path / "served") as running:
        deployed(installed, running.url)
        running.asked.clear()
        yield running


def repositories(local: LocalRepository, *addresses: str, tell=lambda words: None, **more) -> Repositories:
    return Repositories(local, [RemoteAddress(url=one) for one in addresses], shelves=(), tell=tell, **more)


def test_an_installed_component_lies_as_concopilot_lays_it(installed):
    folder = installed.folder / "org/example/text/word-count/1.0"
    assert files_in(folder) == {
        "__COMPLETED",
        CONFIG,
        "word-count-1.0-read me.md",
        "prompts/word-count-1.0-long.md",
    }
    assert installed.all() == [WORDS]
    assert config_file_in(installed.folder_of(WORDS), WORDS) == folder / CONFIG
    assert known_packages() == {
        str(WORDS): Package(installed.folder.parent / "texts" / "words", installed.folder.parent)
    }


def test_installed_again_nothing_of_the_former_one_stays(installed, tmp_path):
    folder = component(tmp_path)
    (folder / ".config" / "read me.md").unlink()
    (folder / ".config" / "config.yaml.sha1").write_text("0")
    (folder / ".config" / "x.asc").write_text("0")
    install([tmp_path], installed, print)
    assert files_in(installed.folder_of(WORDS)) == {"__COMPLETED", CONFIG, "prompts/word-count-1.0-long.md"}
    assert [path.name for path in installed.folder_of(WORDS).parent.iterdir()] == ["1.0"]


def test_versions_are_in_their_order(tmp_path, local):
    for version in ("1.10", "1.9-SNAPSHOT", "1.9", "1.2"):
        install([component(tmp_path, version)], local, print)
    (local.folder / "org/example/text/word-count/2.0").mkdir()
    (local.folder / "__COMPLETED").touch()
    assert [each.version for each in local.versions("org.example.text", "word-count")] == [
        "1.2",
        "1.9-SNAPSHOT",
        "1.9",
        "1.10",
    ]


def test_of_a_tree_all_are_installed_or_none(tmp_path, local):
    component(tmp_path / "tree")
    broken = tmp_path / "tree" / "zzz" / ".config"
    broken.mkdir(parents=True)
    (broken / "config.yaml").write_text("group_id: org.example\nartifact_id: x\nversion: 1.0\ntype: plugin\n")
    with pytest.raises(GooseLikeError, match=r"zzz/.config/config.yaml:3: .*quotes"):
        install([tmp_path / "tree"], local, print)
    assert not local.folder.exists()
    (broken / "config.yaml").write_text(YAML.replace("VERSION", "1.0"))
    with pytest.raises(GooseLikeError, match="give one of them another version"):
        install([tmp_path / "tree"], local, print)
    (broken / "config.yaml").write_text(YAML.replace("VERSION", "1.1"))
    (broken / "secret").symlink_to("/etc/passwd")
    with pytest.raises(GooseLikeError, match="secret is a link out of the component"):
        install([tmp_path / "tree"], local, print)
    assert local.all() == []
    assert files_in(local.folder) == set()


def test_what_is_no_component_is_said(tmp_path):
    with pytest.raises(UsageError, match="there is nothing at"):
        config_files(tmp_path / "none")
    (tmp_path / "venv" / "lib" / "a" / ".config").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    with pytest.raises(UsageError, match="there is no component in"):
        config_files(tmp_path)
    component(tmp_path)
    with pytest.raises(UsageError, match="--recursive"):
        config_files(tmp_path, is_recursive=False)
    (tmp_path / "texts" / "loop").symlink_to(tmp_path)
    assert config_files(tmp_path) == [tmp_path / "texts" / "words" / ".config" / "config.yaml"]


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_at_a_name_that_no_file_can_have_there_is_nothing(name):
    assert config_file_at(Path(name)) is None
    with pytest.raises(UsageError, match="there is nothing at"):
        config_files(Path(name))


def test_a_copy_of_a_configuration_is_a_component_where_no_other_is_below(tmp_path):
    copy = tmp_path / "config.yaml"
    copy.write_text(YAML)
    assert config_file_at(tmp_path) == copy
    assert config_files(tmp_path) == config_files(tmp_path, is_recursive=False) == [copy]
    inner = component(tmp_path) / ".config" / "config.yaml"
    assert config_files(tmp_path) == [inner]
    assert config_file_at(tmp_path / "texts") is None
    assert config_file_at(tmp_path / "texts" / "words") == inner


def test_the_topmost_package_is_imported(tmp_path):
    file = component(tmp_path) / ".config" / "config.yaml"
    words = tmp_path / "texts" / "words"
    assert topmost_package(file, "words") == Package(words, tmp_path / "texts")
    found = topmost_package(file, "texts.words")  # a stranger chose this name, and `texts` may hold anything
    assert found == Package(words, tmp_path)
    assert found.above == [tmp_path / "texts", tmp_path]
    (tmp_path / "texts" / "__init__.py").touch()
    assert topmost_package(file, "texts.words") == Package(tmp_path / "texts", tmp_path)
    assert topmost_package(file, "other.words") is None
    assert topmost_package(file, "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p") is None
    assert topmost_package(file, "") is None
    (tmp_path / "src" / "other").mkdir(parents=True)
    (tmp_path / "src" / "other" / "__init__.py").write_text("def constructor(config): ...\n")
    assert topmost_package(file, "other", [tmp_path / "src"]) == Package(tmp_path / "src" / "other", tmp_path / "src")


def test_from_a_server_and_back(server: ComponentServer, local, installed):
    told: list[str] = []
    folder = repositories(local, server.url, tell=told.append).find(WORDS)
    assert files_in(folder) == files_in(installed.folder_of(WORDS))
    assert (folder / "word-count-1.0-read me.md").read_bytes() == "Zählt Wörter.\r\n".encode()
    assert told == [f"{WORDS} fetched from {server.url}"]
    server.asked.clear()
    assert repositories(local, server.url).find(WORDS) == folder
    assert server.asked == []  # what is here is not asked for


def test_what_is_deployed_can_be_verified_by_others(server: ComponentServer):
    folder = server.folder / PLACE
    config = (folder / CONFIG).read_bytes()
    assert (folder / f"{CONFIG}.sha256").read_text() == hashlib.sha256(config).hexdigest()
    assert (folder / f"{CONFIG}.sha1").read_text() == hashlib.sha1(config).hexdigest()
    listed = yaml.safe_load((folder / "__FILES.yaml").read_text())
    assert set(listed) == {CONFIG, "word-count-1.0-read me.md", "prompts/word-count-1.0-long.md"}
    assert listed[CONFIG] == hashlib.sha256(config).hexdigest()
    assert "__COMPLETED" not in files_in(folder)


def test_a_server_that_lists_as_concopilots_site_does(server: ComponentServer, local):
    (server.folder / PLACE / "__FILES.yaml").unlink()
    (server.folder / PLACE / "prompts" / "word-count-1.0-long.md").unlink()
    server.lists = True
    with pytest.raises(RefusedError, match="prompts is listed, and not there"):
        repositories(local, server.url).find(WORDS)
    for file in (server.folder / PLACE / "prompts").iterdir():
        file.unlink()
    (server.folder / PLACE / "prompts").rmdir()
    folder = repositories(local, server.url).find(WORDS)
    assert files_in(folder) == {"__COMPLETED", CONFIG, "word-count-1.0-read me.md"}


@pytest.mark.parametrize("algorithm", ["sha256", "sha1", "md5"])
def test_a_wrong_checksum_is_refused_and_nothing_stays(server: ComponentServer, local, algorithm):
    folder = server.folder / PLACE
    for file in [*folder.rglob("*.sha*"), folder / "__FILES.yaml"]:
        file.unlink()
    server.lists = True
    (folder / "prompts" / "word-count-1.0-long.md").unlink()
    (folder / "prompts").rmdir()
    (folder / f"{CONFIG}.{algorithm}").write_text(f"{'0' * {'sha256': 64, 'sha1': 40, 'md5': 32}[algorithm]}  {CONFIG}")
    with pytest.raises(RefusedError, match=f"{CONFIG} is not what its {algorithm} checksum says"):
        repositories(local, server.url).find(WORDS)
    assert files_in(local.folder) == set()
    assert not local.folder_of(WORDS).exists()
    right = hashlib.new(algorithm, (folder / CONFIG).read_bytes()).hexdigest().upper()
    (folder / f"{CONFIG}.{algorithm}").write_text(f"{right}\n")
    told: list[str] = []
    repositories(local, server.url, tell=told.append).find(WORDS)
    assert [words for words in told if "without a checksum" in words] == [
        f"{WORDS}: word-count-1.0-read me.md came without a checksum, so it is taken as it is"
    ]


def test_a_file_that_is_not_as_listed_is_refused(server: ComponentServer, local):
    (server.folder / PLACE / CONFIG).write_text("group_id: evil\n")
    (server.folder / PLACE / f"{CONFIG}.sha256").write_text(hashlib.sha256(b"group_id: evil\n").hexdigest())
    with pytest.raises(RefusedError, match="sha256 checksum"):
        repositories(local, server.url).find(WORDS)


def test_a_component_under_anothers_name_is_refused(tmp_path, server: ComponentServer, local):
    other = Coordinates(WORDS.group_id, WORDS.artifact_id, "2.0")
    (server.folder / PLACE).rename((server.folder / PLACE).with_name("2.0"))
    listing = server.folder / PLACE.replace("1.0", "2.0") / "__FILES.yaml"
    for file in listing.parent.glob("word-count-1.0-config.yaml*"):
        file.rename(file.with_name(file.name.replace("1.0", "2.0")))
    listing.write_text(listing.read_text().replace(CONFIG, CONFIG.replace("1.0", "2.0")))
    with pytest.raises(RefusedError, match=r"its config\.yaml says that it is org\.example\.text:word-count:1\.0"):
        repositories(local, server.url).find(other)


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/etc/passwd",
        "a\\b",
        "a/../../b",
        "a//b",
        "./a",
        "",
        "C:/x",
        "a\x00b",
        "a\nb",
        "x" * 300,
        "a/" * 20 + "b",
        f"/srv/../../{WORDS.folder}/x",
        "org/example/text/word-count/1.0/../x",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(server: ComponentServer, local, name, tmp_path):
    listing = server.folder / PLACE / "__FILES.yaml"
    listing.write_text(yaml.safe_dump({**yaml.safe_load(listing.read_text()), name: ""}))
    before = files_in(tmp_path)
    with pytest.raises(RefusedError, match="no name of a file in the component's folder"):
        repositories(local, server.url).find(WORDS)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "a: &a [*a]", "- - x", "just text", "", "- a\n- *b", "{a: {b: c}}", "\t", "a: b\n---\nc: d"],
)
def test_a_list_that_is_none(text):
    assert read_listing(text, "g/a/1") is None


def test_names_in_a_list_may_bring_the_whole_path():
    folder = str(WORDS.folder)
    assert read_listing(f"- /repository/releases/{folder}/a.yaml\n- {folder}/b/c\n- d", folder) == {
        "a.yaml": None,
        "b/c": None,
        "d": None,
    }
    with pytest.raises(RefusedError, match="more than 2,000 files"):
        read_listing("\n".join(f"- {number}" for number in range(2_001)), folder)


def test_a_file_that_says_to_be_huge_is_refused_before_it_comes(server: ComponentServer, local):
    def huge(request) -> None:
        request.send_response(200)
        request.send_header("content-length", str(10 << 30))
        request.end_headers()
        request.close_connection = True

    server.more[f"/maven/{PLACE}/{CONFIG}"] = huge
    with pytest.raises(RefusedError, match="is larger than"):
        repositories(local, server.url).find(WORDS)


def test_an_interrupted_transfer_leaves_nothing(server: ComponentServer, local):
    def half(request) -> None:
        request.send_response(200)
        request.send_header("content-length", "1000")
        request.end_headers()
        request.wfile.write(b"group_id: ")
        request.close_connection = True

    server.more[f"/maven/{PLACE}/{CONFIG}"] = half
    with pytest.raises(GooseLikeError, match="can't be reached") as failed:
        repositories(local, server.url).find(WORDS)
    assert "local: not there" in str(failed.value)
    assert files_in(local.folder) == set()
    server.more.clear()
    assert local.has(WORDS) is False
    repositories(local, server.url).find(WORDS)
    assert local.has(WORDS)


def test_what_an_interrupted_copy_left_is_replaced(server: ComponentServer, local):
    folder = local.folder_of(WORDS)
    folder.mkdir(parents=True)
    (folder / CONFIG).write_text("half")
    (folder / "old").write_text("half")
    assert repositories(local, server.url).here(WORDS) is None
    repositories(local, server.url).find(WORDS)
    assert "old" not in files_in(folder)


def test_redirects_stay_on_the_host_or_go_to_https(server: ComponentServer, local, tmp_path):
    moved = f"/maven/{PLACE}/{CONFIG}"
    server.more[moved] = lambda request: reply(request, 302, location=f"/maven/{PLACE}/elsewhere")
    (server.folder / PLACE / CONFIG).rename(server.folder / PLACE / "elsewhere")
    repositories(local, server.url).find(WORDS)
    with component_server(tmp_path / "other") as other:
        away = other.url.replace("127.0.0.1", "localhost")
        server.more[moved] = lambda request: reply(request, 302, location=f"{away}/x")
        with pytest.raises(RefusedError, match="another host without https"):
            repositories(LocalRepository(tmp_path / "second"), server.url).find(WORDS)
        assert other.asked == []
    server.more[moved] = lambda request: reply(request, 302, location=moved)
    with pytest.raises(GooseLikeError, match="redirects more than 5 times"):
        repositories(LocalRepository(tmp_path / "third"), server.url).find(WORDS)


def test_every_place_that_was_looked_in_is_told(local, tmp_path, server: ComponentServer):
    missing = Coordinates("org.example", "none", "1.0")
    never = RemoteAddress(url="https://user:secret@never.example", release={"enable": False})
    addresses = [RemoteAddress(url=server.url), never, RemoteAddress(url=str(tmp_path / "no-folder"))]
    with pytest.raises(GooseLikeError) as failed:
        Repositories(local, addresses, shelves=()).find(missing)
    text = str(failed.value)
    assert f"{local.folder}: not there" in text
    assert f"{server.url}: not there" in text
    assert "https://never.example: not asked for releases" in text
    assert "there is no folder" in text
    assert "secret" not in text


def test_credentials_go_to_their_server_only(installed, local, tmp_path):
    with component_server(tmp_path / "served", user=("ada", "p@ss:word")) as server:
        with pytest.raises(GooseLikeError, match="wants a user name and password"):
            deployed(installed, server.url)
        target = open_remote(server.url, ("ada", "wrong"))
        with pytest.raises(GooseLikeError, match="are not accepted") as failed:
            deploy(installed.folder_of(WORDS), WORDS, target, None, print)
        assert "wrong" not in str(failed.value)
        deploy(installed.folder_of(WORDS), WORDS, open_remote(server.url, ("ada", "p@ss:word")), None, print)
        with_password = server.url.replace("http://", "http://ada:p%40ss%3Aword@")
        told: list[str] = []
        repositories(local, with_password, tell=told.append).find(WORDS)
        assert told == [f"{WORDS} fetched from {server.url}"]
        with component_server(tmp_path / "served") as other:
            away = f"http://127.0.0.1:{other.port}/maven/{PLACE}/{CONFIG}"
            server.more[f"/maven/{PLACE}/{CONFIG}"] = lambda request: reply(request, 307, location=away)
            repositories(LocalRepository(tmp_path / "second"), with_password).find(WORDS)
            assert [authorization for _, _, authorization in other.asked] == [""]


def test_a_release_is_never_replaced_a_snapshot_is(installed, tmp_path, server: ComponentServer):
    with pytest.raises(UsageError, match="a release is never replaced"):
        deployed(installed, server.url)
    snapshot = Coordinates(WORDS.group_id, WORDS.artifact_id, "1.1-SNAPSHOT")
    for text in ("first", "second"):
        folder = component(tmp_path, "1.1-SNAPSHOT")
        (folder / ".config" / "read me.md").write_text(text)
        install([folder], installed, print)
        deploy(installed.folder_of(snapshot), snapshot, open_remote(server.url), None, print)
        local = LocalRepository(tmp_path / text)
        found = repositories(local, server.url).find(snapshot)
        assert (found / "word-count-1.1-SNAPSHOT-read me.md").read_text() == text
    stale = repositories(LocalRepository(tmp_path / "first"), server.url)
    assert (stale.find(snapshot) / "word-count-1.1-SNAPSHOT-read me.md").read_text() == "first"
    assert (stale.fetch(snapshot) / "word-count-1.1-SNAPSHOT-read me.md").read_text() == "second"


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_folder_is_a_remote_repository_too(installed, local, tmp_path, form):
    folder = tmp_path / "share"
    address = form.format(folder)
    folder.mkdir()
    deployed(installed, address)
    with pytest.raises(UsageError, match="a release is never replaced"):
        deployed(installed, address)
    found = repositories(local, address).find(WORDS)
    assert files_in(found) == files_in(installed.folder_of(WORDS))
    (folder / PLACE / "__FILES.yaml").unlink()  # put there by hand, or by others
    again = repositories(LocalRepository(tmp_path / "second"), address).find(WORDS)
    assert files_in(again) == files_in(found)
    (folder / PLACE / CONFIG).unlink()
    (folder / PLACE / CONFIG).symlink_to("/etc/passwd")
    with pytest.raises(RefusedError, match=r"no config.yaml among its files"):
        repositories(LocalRepository(tmp_path / "third"), address).find(WORDS)


@pytest.fixture
def keys() -> Iterator[Path]:
    with secret_key("open sesame") as home:
        yield home


def test_signatures(installed, local, tmp_path, keys):
    share = tmp_path / "share"
    share.mkdir()
    with pytest.raises(GooseLikeError, match="can't be signed") as failed:
        deployed(installed, str(share), Signer("close sesame", keys))
    assert "close sesame" not in str(failed.value)
    assert files_in(share) == set()
    deployed(installed, str(share), Signer("open sesame", keys))
    assert (share / PLACE / f"{CONFIG}.asc").is_file()
    told: list[str] = []
    repositories(local, str(share), tell=told.append, gnupg_home=keys).find(WORDS)
    assert told[0].startswith(f"{WORDS}: signed by Ada <ada@example.org>")
    assert not any(name.endswith(".asc") for name in files_in(local.folder))
    told.clear()
    repositories(LocalRepository(tmp_path / "second"), str(share), tell=told.append).find(WORDS)
    assert "is not known here" in told[0]
    assert len(told) == 2  # once for all files

    right = (share / PLACE / f"{CONFIG}.asc").read_bytes()
    (share / PLACE / f"{CONFIG}.asc").write_bytes((share / PLACE / "word-count-1.0-read me.md.asc").read_bytes())
    third = LocalRepository(tmp_path / "third")
    with pytest.raises(RefusedError, match=f"the signature of {CONFIG} is bad"):
        repositories(third, str(share), gnupg_home=keys).find(WORDS)
    (share / PLACE / f"{CONFIG}.asc").write_text("no signature at all")
    with pytest.raises(RefusedError, match=f"the signature of {CONFIG} is bad"):
        repositories(third, str(share), gnupg_home=keys).find(WORDS)
    (share / PLACE / f"{CONFIG}.asc").unlink()
    with pytest.raises(RefusedError, match=f"{CONFIG} is not signed, and other files of it are"):
        repositories(third, str(share), gnupg_home=keys).find(WORDS)
    assert files_in(third.folder) == set()
    (share / PLACE / f"{CONFIG}.asc").write_bytes(right)
    repositories(third, str(share), gnupg_home=keys).find(WORDS)


def test_a_snapshot_replaced_without_a_signature(installed, local, tmp_path, server: ComponentServer, keys):
    snapshot = Coordinates(WORDS.group_id, WORDS.artifact_id, "1.1-SNAPSHOT")
    remote = open_remote(server.url)
    for text, signer in (("first", Signer("open sesame", keys)), ("second", None)):
        folder = component(tmp_path, "1.1-SNAPSHOT")
        (folder / ".config" / "read me.md").write_text(text)
        install([folder], installed, print)
        deploy(installed.folder_of(snapshot), snapshot, remote, signer, print)
    assert list((server.folder / "snapshots").rglob("*.asc"))  # the server has no way to remove it
    found = repositories(local, server.url, gnupg_home=keys).find(snapshot)
    assert (found / "word-count-1.1-SNAPSHOT-read me.md").read_text() == "second"


def test_a_key_that_has_expired_since(tmp_path, keys):
    file, signature = tmp_path / "file", tmp_path / "file.asc"
    file.write_text("words")
    then = ["gpg", "--homedir", str(keys), "--batch", "--faked-system-time", "20200101T000000!", "--passphrase", ""]
    then += ["--pinentry-mode", "loopback"]
    for words in (
        ("--quick-gen-key", "Bob <bob@example.org>", "ed25519", "sign", "1d"),
        ("-u", "bob@example.org", "--armor", "--detach-sign", "--output", str(signature), str(file)),
    ):
        subprocess.run([*then, *words], check=True, capture_output=True)
    verdict = verify(file, signature, keys)
    assert (verdict.state, verdict.words.endswith("has expired")) == ("unknown", True)
    file.write_text("other words")
    assert verify(file, signature, keys).state == "bad"


def test_settings(tmp_path):
    usual = read_settings()
    assert usual.local == tmp_path / "home/.concopilot/repository"
    assert [each.url for each in usual.remotes] == ["https://concopilot.org"]
    file = tmp_path / "home/.concopilot/settings.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(
        "local_repo_path: ~/mine\nrepos:\n- url: https://example.org/a\n  snapshot: {enable: false, update: true}\n"
        "-\n- url: file:///srv/components\n  release:\n"
    )
    read = read_settings()
    assert read.local == tmp_path / "home/mine"
    assert [(one.url, one.serves(True), one.serves(False)) for one in read.remotes] == [
        ("https://example.org/a", False, True),
        ("file:///srv/components", True, True),
    ]
    with pytest.raises(UsageError, match=r"there is no file nowhere\.yaml"):
        read_settings(Path("nowhere.yaml"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("local_repo: x", r"line 1: unknown key 'local_repo'; did you mean 'local_repo_path'"),
        ("repos:\n- url: ftp://x/y", r"line 2: .*reached by http:"),
        ("repos:\n- url: https:///y", r"line 2: .*no host"),
        ("repos:\n- url: 3", r"line 2: .*expected text, not 3"),
        ("repos:\n- {}", r"url: this key is missing"),
        ("repos: x", r"expected a list"),
        ("- x", r"the settings: expected a mapping"),
        ("repos:\n- url: 'http://[::1'", r"line 2"),
        ("repos:\n- url: http://x\n  release: {enabled: no}", r"line 3: unknown key .*did you mean 'enable'"),
        ("a: [", r"no valid YAML"),
    ],
)
def test_settings_that_are_none(tmp_path, text, said):
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_settings(file)


def test_the_upload_of_concopilots_site_is_not_offered():
    with pytest.raises(UsageError, match="captcha"):
        target_for(read_settings(), is_snapshot=False, credentials=None)


def test_our_own_components_come_after_installed_ones(tmp_path, local):
    folder = tmp_path / "own" / "words"
    (folder / ".config").mkdir(parents=True)
    (folder / ".config" / "config.yaml").write_text(YAML.replace("VERSION", "1.0"))
    shelf = FolderShelf(tmp_path / "own", "ours")
    found = Repositories(local, shelves=(shelf,))
    assert found.find(WORDS) == folder / ".config"
    assert config_file_in(found.find(WORDS), WORDS) == folder / ".config" / "config.yaml"
    install([component(tmp_path)], local, print)
    assert found.find(WORDS) == local.folder_of(WORDS)
    assert shelf.all() == [WORDS]


@pytest.mark.parametrize("type_name", TYPES)
def test_what_is_written_can_be_installed(type_name, tmp_path, local):
    (tmp_path / "around").mkdir()
    (tmp_path / "around" / "__init__.py").touch()
    files = write_component(type_name, None, tmp_path / "around", "org.example")
    for file in files:
        if file.suffix == ".py":
            compile(file.read_text(), file, "exec")
    definition, *more = install([tmp_path], local, print)
    assert definition.package == f"around.my_{type_name}"
    assert set(known_packages().values()) == {Package(tmp_path / "around", tmp_path)}
    assert [each.type for each in more] == (["interactor"] if type_name == "copilot" else [])
    assert len(files) == 3 + 3 * len(more)
    with pytest.raises(UsageError, match="is there already"):
        write_component(type_name, None, tmp_path / "around", "org.example")


@pytest.mark.parametrize(
    ("type_name", "name", "group", "said"),
    [
        ("plugins", "x", "org.example", "did you mean 'plugin'"),
        ("plugin", "X y", "org.example", "no name"),
        ("plugin", "class", "org.example", "no name"),
        ("plugin", "../x", "org.example", "no name"),
        ("plugin", "x", "org/example", "group_id"),
    ],
)
def test_what_can_not_be_written(tmp_path, type_name, name, group, said):
    with pytest.raises(UsageError, match=said):
        write_component(type_name, name, tmp_path, group)
    assert os.listdir(tmp_path) in (["no-keys"], [])


def test_a_name_that_others_could_not_take_is_not_deployed(tmp_path, installed, server: ComponentServer):
    folder = component(tmp_path, "3.0-SNAPSHOT")
    snapshot = Coordinates(WORDS.group_id, WORDS.artifact_id, "3.0-SNAPSHOT")
    for name in ("a:b", "line\nend", os.fsdecode(b"\xff")):
        (folder / ".config" / name).touch()
        install([folder], installed, print)
        with pytest.raises(GooseLikeError, match="can't be deployed"):
            deploy(installed.folder_of(snapshot), snapshot, open_remote(server.url), None, print)
        (folder / ".config" / name).unlink()
    assert not any(method == "PUT" for method, _, _ in server.asked)


def test_what_is_no_file_is_not_installed(tmp_path, local):
    folder = component(tmp_path)
    os.mkfifo(folder / ".config" / "pipe")
    with pytest.raises(GooseLikeError, match="pipe is no file that can be copied"):
        install([folder], local, print)
    (folder / ".config" / "pipe").unlink()
    (folder / ".config" / "up").symlink_to("..")
    with pytest.raises(GooseLikeError, match="up is a link out of the component"):
        install([folder], local, print)
    (folder / ".config" / "up").unlink()
    (folder / ".config" / "same.md").symlink_to("read me.md")
    install([folder], local, print)
    assert "word-count-1.0-same.md" in files_in(local.folder_of(WORDS))


def test_many_at_once_leave_one_whole(tmp_path, server: ComponentServer):
    script = f"""
import sys
from pathlib import Path
from goose_like_toolkits.components.described.coordinates import Coordinates
from goose_like_toolkits.components.repositories.repository import LocalRepository, Repositories
from goose_like_toolkits.components.repositories.settings import address_of
one = Repositories(LocalRepository(Path({str(tmp_path / "local")!r})), [address_of({server.url!r})], shelves=())
for _ in range(4):
    one.fetch(Coordinates("org.example.text", "word-count", "1.0"))
"""
    running = [subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[1] for process in running] == [b"", b"", b""]
    local = LocalRepository(tmp_path / "local")
    assert local.all() == [WORDS]
    assert len(files_in(local.folder)) == 4
    assert os.listdir(local.folder_of(WORDS).parent) == ["1.0"]


def test_a_key_without_a_passphrase_signs_and_an_empty_folder_of_keys_does_not(installed, tmp_path):
    (tmp_path / "share").mkdir()
    with secret_key("") as home:
        deployed(installed, str(tmp_path / "share"), Signer("", home))
    assert (tmp_path / "share" / PLACE / f"{CONFIG}.asc").is_file()
    for signer in (Signer("x", tmp_path / "no-keys"), Signer("x", tmp_path / "nowhere"), Signer("x\ny")):
        (tmp_path / "other").mkdir(exist_ok=True)
        with pytest.raises(GooseLikeError, match=r"can't be signed: |there is no folder|line end"):
            deployed(installed, str(tmp_path / "other"), signer)
    end_agent(tmp_path / "no-keys")
    assert files_in(tmp_path / "other") == set()


def test_a_long_transfer_tells_how_far_it_is():
    told: list[str] = []
    progress = Progress("fetching a", told.append, 8_000_000, told_at_s=float("-inf"))
    progress.moved(1_000_000)
    progress.moved(1_000_000)
    assert told == ["fetching a: 1.0 MB of 8.0 MB"]
    Progress("b", told.append).moved(1)
    assert len(told) == 1


def test_what_can_not_be_written_is_said(tmp_path, local):
    (tmp_path / "file").touch()
    with pytest.raises(GooseLikeError, match=r"file/org/example/text/word-count can't be written"):
        install([component(tmp_path)], LocalRepository(tmp_path / "file"), print)
    local.folder_of(WORDS).parent.mkdir(parents=True)
    local.folder_of(WORDS).touch()
    with pytest.raises(GooseLikeError, match=r"word-count/1.0 can't be written"):
        install([component(tmp_path)], local, print)
    assert os.listdir(local.folder_of(WORDS).parent) == ["1.0"]


def test_what_was_probably_meant_is_told(installed):
    found = Repositories(installed, shelves=())
    for wrong in ("org.example.text:word-count:1.0.1", "org.example.text:wordcount:1.0", "org.exmple:word-count:1.0"):
        with pytest.raises(GooseLikeError, match=rf"no component {wrong}; did you mean {WORDS}\?"):
            found.find(parse(wrong))
    with pytest.raises(GooseLikeError, match="; check its coordinates, or install it with"):
        found.find(parse("org.example.text:pizzeria:1.0"))
