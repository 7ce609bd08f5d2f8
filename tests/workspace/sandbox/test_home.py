"""The home folder: commands see toolchains and no more, and tools read what the person named."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from goose_like.config.profile import PathChoice, WorkspaceSettings
from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox.scope import SandboxScope
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import ONCE, find_place, needs_sandbox, run_script

pytestmark = needs_sandbox

SECRET = (
    *(".ssh/id_ed25519", ".mozilla/cookies", ".config/unknown/token", ".local/share/keyrings/login", ".unknown"),
    *(
        ".cargo/credentials.toml",
        ".cache/huggingface/token",
        ".config/git/credentials",
        ".config/pip/pip.conf",
        ".npmrc",
    ),
    *(
        "Documents/taxes.txt",
        "other/.env",
        ".bashrc",
        ".local/share/unknown",
        ".m2/settings.xml",
        ".gradle/gradle.properties",
    ),
)
SHOWN = (".cargo/registry/x", ".nvm/nvm.sh", ".local/share/uv/x", ".cache/pip/x", "go/pkg/x", ".m2/repository/x")


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home outside /tmp, which the sandbox would hide anyway, with a repository `project` as the workspace."""
    with tempfile.TemporaryDirectory(dir=find_place()) as folder:
        home = Path(folder).resolve()
        monkeypatch.setenv("HOME", str(home))
        for name in SECRET:
            write_file(home / name, "TOPSECRET")
        for name in SHOWN:
            write_file(home / name, "shown")
        write_file(
            home / ".gitconfig", "[user]\nname = Ann\n[include]\npath = ~/.more-git\n[init]\ndefaultBranch=main\n"
        )
        write_file(home / ".more-git", "[user]\nemail = ann@example.org\n")
        (home / "project/sub").mkdir(parents=True)
        subprocess.run(["git", "init", "-q", home / "project"], check=True)
        yield home


def write_file(file: Path, text: str, mode: int = 0o644) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


def create_workspace(root: Path, *read: str, answer: Answer = Answer()) -> Workspace:
    settings = WorkspaceSettings(paths=PathChoice(read=read))
    return Workspace(root, mode="workspace", approval="auto", notifier=Recorder(answer), settings=settings)


async def test_commands_see_toolchains_and_nothing_else(home: Path) -> None:
    async with create_workspace(home / "project") as workspace:
        _, output = await run_script(workspace, "ls -A ~; grep -rs TOPSECRET ~")
        assert output.split() == [
            ".cache",
            ".cargo",
            ".config",
            ".gitconfig",
            ".local",
            ".m2",
            ".more-git",
            ".nvm",
            "go",
            "project",
        ]
        assert (await run_script(workspace, f"cd && cat {' '.join(SHOWN)}"))[0] == 0
        assert (await run_script(workspace, "touch ~/x || touch ~/.cargo/x"))[0] != 0


@pytest.mark.parametrize("folder", [".", "sub"])
async def test_git_commits_as_the_person(home: Path, folder: str) -> None:
    async with create_workspace(home / "project" / folder) as workspace:
        code, output = await run_script(
            workspace, "echo x > f && git add f && git commit -qm m && git log --format='%an %ae'"
        )
        assert (code, output) == (0, "Ann ann@example.org\n")


async def test_git_settings_behind_links_count(home: Path) -> None:
    (home / ".gitconfig").rename(home / "other/gitconfig")
    (home / ".gitconfig").symlink_to("other/gitconfig")
    write_file(home / "other/ignore", "*.skipped\n")
    (home / ".config/git/ignore").symlink_to(home / "other/ignore")
    async with create_workspace(home / "project") as workspace:
        script = "touch a.skipped b && git add . && git commit -qm m && git log --format='%an %ae' --name-only"
        assert await run_script(workspace, script) == (0, "Ann ann@example.org\n\nb\n")
        assert (await run_script(workspace, "cat ~/other/.env"))[0] != 0


async def test_programs_in_the_home_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(home / "opt/tool/lib/part", "echo from the library")
    write_file(home / "opt/tool/bin/tool", "#!/bin/sh\n. $(dirname $0)/../lib/part\n", 0o755)
    write_file(home / ".local/share/uv/tools/other/bin/other", "#!/bin/sh\necho other\n", 0o755)
    (home / ".local/bin").mkdir()
    (home / ".local/bin/other").symlink_to(home / ".local/share/uv/tools/other/bin/other")
    write_file(home / "opt/secret", "TOPSECRET")
    monkeypatch.setenv("PATH", f"{home}/opt/tool/bin:{home}/.local/bin:{os.environ['PATH']}")
    async with create_workspace(home / "project") as workspace:
        assert await run_script(workspace, "tool && other") == (0, "from the library\nother\n")
        assert "TOPSECRET" not in (await run_script(workspace, "cat ~/opt/secret"))[1]


async def test_credentials_that_variables_name_are_hidden(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, name in (("CARGO_HOME", "tools/cargo"), ("KUBECONFIG", "project/kube"), ("GOPATH", "gocode")):
        monkeypatch.setenv(variable, str(home / name))
    for name in ("tools/cargo/credentials.toml", "project/kube", "gocode/src/private"):
        write_file(home / name, "TOPSECRET")
    write_file(home / "tools/cargo/registry/x", "shown")
    write_file(home / "gocode/pkg/x", "shown")
    async with create_workspace(home / "project") as workspace:
        assert (await run_script(workspace, "cat ~/tools/cargo/registry/x ~/gocode/pkg/x"))[1] == "shown" * 2
        _, output = await run_script(workspace, "cat ~/tools/cargo/credentials.toml kube; grep -r . ~/gocode ~/tools")
        assert "TOPSECRET" not in output


async def test_a_venv_in_the_home_takes_packages(home: Path) -> None:
    async with create_workspace(home / "project") as workspace:
        script = f"{sys.executable} -m venv --without-pip .venv && .venv/bin/python -c 'import sys; print(sys.prefix)'"
        assert await run_script(workspace, script) == (0, f"{home}/project/.venv\n")


async def test_the_profile_shows_more(home: Path) -> None:
    async with create_workspace(home / "project", "~/Documents", "~/.local/share", "../other") as workspace:
        assert (await run_script(workspace, "cat ~/Documents/taxes.txt ~/other/.env"))[1] == "TOPSECRET" * 2
        assert (await run_script(workspace, "cat ~/.local/share/unknown"))[1] == "TOPSECRET"
        assert (await run_script(workspace, "cat ~/.local/share/keyrings/login"))[
            0
        ] != 0  # a secret must be named itself
        assert workspace.read_bytes("~/Documents/taxes.txt") == b"TOPSECRET"
    async with create_workspace(home / "project", "~/.config/pip", "~") as workspace:
        assert (await run_script(workspace, "cat ~/.config/pip/pip.conf ~/.unknown"))[1] == "TOPSECRET" * 2
        assert (await run_script(workspace, "cat ~/.ssh/id_ed25519"))[0] != 0


async def test_a_scope_names_settings_and_folders_of_the_home(home: Path) -> None:
    async with create_workspace(home / "project") as workspace:
        scope = SandboxScope(readable=(home / ".config/pip", home / "other"))
        assert await run_script(workspace, "cat ~/.config/pip/pip.conf ~/other/.env", scope=scope) == (
            0,
            "TOPSECRET" * 2,
        )
        with pytest.raises(DeniedError, match="hidden from commands"):
            await run_script(workspace, "true", scope=SandboxScope(readable=(home / ".ssh",)))


async def test_links_lead_nowhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(home / "project/.venv/x", "")
    (home / "project/.venv/bin").symlink_to(home / "Documents")
    (home / ".pyenv").symlink_to(home / "Documents")
    (home / "project/out").symlink_to(home)
    monkeypatch.setenv("PATH", f"{home}/project/.venv/bin:{os.environ['PATH']}")
    monkeypatch.setenv("GOPATH", str(home))
    async with create_workspace(home / "project") as workspace:
        _, output = await run_script(
            workspace, "cat .venv/bin/* ~/.pyenv/* out/Documents/* /proc/self/root$HOME/Documents/*"
        )
        assert "TOPSECRET" not in output


async def test_a_home_behind_a_link(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir=find_place()) as folder:
        (link := Path(folder, "link")).symlink_to(home)
        monkeypatch.setenv("HOME", str(link))
        async with create_workspace(link / "project") as workspace:
            _, output = await run_script(workspace, "cat ~/.nvm/nvm.sh; grep -rs TOPSECRET ~/")
            assert output == "shown"


async def test_toolchains_behind_a_link_out_of_the_home(home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=find_place()) as folder:
        write_file(Path(folder, "x"), "shown")
        (home / ".volta").symlink_to(folder)
        async with create_workspace(home / "project") as workspace:
            assert (await run_script(workspace, "cat ~/.volta/x"))[1] == "shown"


async def test_the_home_as_the_workspace(home: Path) -> None:
    async with create_workspace(home) as workspace:
        _, output = await run_script(
            workspace, "grep -rs TOPSECRET ~/.[a-z]*; cat ~/.nvm/nvm.sh; echo mine > new; cat Documents/*"
        )
        assert output == "shownTOPSECRET"
        assert (home / "new").read_text() == "mine\n"


async def test_tools_read_what_the_person_named(home: Path) -> None:
    async with create_workspace(home / "project") as workspace:
        for name in SECRET:
            with pytest.raises(DeniedError, match="hidden from you"):
                workspace.read_bytes(home / name)
        assert workspace.read_bytes("~/.nvm/nvm.sh") == b"shown"
        with pytest.raises(DeniedError, match="hidden from you"):
            workspace.list_folder("~/Documents")
        workspace.show_path("~/Documents/taxes.txt")
        assert workspace.read_bytes("~/Documents/taxes.txt") == b"TOPSECRET"
        for path in ("~", "~/.ssh"):
            workspace.show_path(path)
            with pytest.raises(DeniedError, match="hidden from you"):
                workspace.read_bytes("~/.ssh/id_ed25519")


async def test_a_new_file_in_the_home_is_asked_about(home: Path) -> None:
    async with create_workspace(home / "project") as workspace:
        with pytest.raises(DeniedError, match="not allowed"):
            await workspace.write_bytes("~/Documents/report.md", b"x")
    async with create_workspace(home / "project", answer=ONCE) as workspace:
        await workspace.write_bytes("~/Documents/report.md", b"x")
        assert (home / "Documents/report.md").read_bytes() == b"x"
        for name in (".ssh/authorized_keys", ".zshrc", ".config/autostart/x", "Documents/taxes.txt", ".local/bin/x"):
            with pytest.raises(DeniedError, match=r"hidden from you|protected"):
                await workspace.write_bytes(f"~/{name}", b"x")


async def test_commands_get_settings_without_credentials(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        ".gitconfig": "[user]\nname = Ann\n[http]\nextraheader = TOPSECRET\n[include]\npath=~/.more-git\n",
        ".more-git": '[url "https://TOPSECRET@x.org/"]\ninsteadOf = https://x.org/\n',
        ".config/git/work": "[http]\nextraheader = TOPSECRET\n",
        ".cargo/config.toml": '[registry]\ntoken = "TOPSECRET"\n',
        ".nvm/versions/node/v22/etc/npmrc": "_authToken=TOPSECRET\n",
        ".npm-global/etc/npmrc": "//x.org/:_password=TOPSECRET\n",
        "miniconda3/.condarc": "channel_alias: https://me:TOPSECRET@x.org\n",
        ".virtualenvs/one/pip.conf": "[global]\nindex_url = https://me:TOPSECRET@x.org\n",
        ".virtualenvs/one/.env": "X=TOPSECRET\n",
        ".config/mise/config.toml": '[env]\nMYSTERY = "TOPSECRET"\n',
        ".config/go/env": "GOPROXY=https://me:TOPSECRET@x.org\n",
        "opt/py/pip.conf": "[global]\nextra_index_url = https://me:TOPSECRET@x.org\n",
        ".local/share/uv/credentials/credentials.toml": "TOPSECRET",
        ".stack/upload/credentials.json": "TOPSECRET",
        ".opam/plugins/opam-publish/x.token": "TOPSECRET",
    }
    for name, text in settings.items():
        write_file(home / name, text)
    (home / "opt/py/bin").mkdir()
    monkeypatch.setenv("VIRTUAL_ENV", str(home / "opt/py"))
    async with create_workspace(home / "project") as workspace:
        _, output = await run_script(workspace, "grep -rs TOPSECRET ~; git config --list --show-origin")
        assert "TOPSECRET" not in output
        assert "user.name=Ann" in output
        assert (await run_script(workspace, "cat ~/.virtualenvs/one/pip.conf"))[
            1
        ] == "[global]\nindex_url = https://x.org\n"
        code, _ = await run_script(workspace, "git commit -q --allow-empty -m m; echo x > ~/.gitconfig")
        assert code != 0
        with pytest.raises(DeniedError):
            workspace.read_bytes(home / ".gitconfig")
    async with create_workspace(home / "project", "~/.gitconfig") as workspace:
        assert "TOPSECRET" in (await run_script(workspace, "cat ~/.gitconfig"))[1]
