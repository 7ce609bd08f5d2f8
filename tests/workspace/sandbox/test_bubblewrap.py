"""The sandbox: each rule, tried out by a command inside."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from goose_like.core.errors import SandboxError
from goose_like.core.notifier import Recorder
from goose_like.workspace.repositories.git import find_commit_folders
from goose_like.workspace.sandbox import bubblewrap, landlock
from goose_like.workspace.sandbox.path_rules import build_rules
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import run_script

pytestmark = pytest.mark.skipif(
    bubblewrap.find_sandbox_problem() is not None, reason=str(bubblewrap.find_sandbox_problem())
)

GIT = "git -c user.name=n -c user.email=e -c init.defaultBranch=main"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with secrets outside /tmp, which the sandbox would hide anyway."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "goose"))
    for name in (".ssh/id_ed25519", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".bash_history"):
        file = tmp_path / "home" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("TOPSECRET")
    return tmp_path / "home"


@pytest.fixture
def root(home: Path) -> Path:
    """The home as the workspace, so that only the rules protect its content."""
    return home


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    async with Workspace(root, mode="workspace", approval="auto", notifier=Recorder()) as workspace:
        yield workspace


def run_git(folder: Path, *words: str) -> None:
    subprocess.run([*GIT.split(), *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(root: Path) -> Path:
    run_git(root, "init", "-q", "project")
    run_git(root / "project", "commit", "-q", "--allow-empty", "-m", "first")
    return root / "project"


@pytest.mark.parametrize(
    "secret", [".ssh/id_ed25519", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".bash_history"]
)
async def test_secrets_are_hidden(workspace: Workspace, secret: str) -> None:
    _, output = await run_script(workspace, f"cat ~/{secret}")
    assert "TOPSECRET" not in output
    _, output = await run_script(workspace, "cd; mv .config other; mv .ssh other2; grep -rs TOPSECRET . && echo found")
    assert "found" not in output


async def test_secret_behind_a_link(home: Path, tmp_path: Path) -> None:
    (home / ".ssh").rename(home / "elsewhere")
    (home / ".ssh").symlink_to(home / "elsewhere")
    async with Workspace(home, mode="workspace", approval="auto", notifier=Recorder()) as workspace:
        _, output = await run_script(workspace, "cat ~/.ssh/* ~/elsewhere/*")
    assert "TOPSECRET" not in output


async def test_the_persons_own_secrets_whatever_home_says(workspace: Workspace) -> None:
    _, output = await run_script(workspace, "cat /etc/shadow | wc -c")
    assert output.split()[-1] == "0"


async def test_our_own_state_is_hidden_but_for_outputs(root: Path, tmp_path: Path) -> None:
    session = tmp_path / "goose/state/sessions/s1"
    (session / "outputs").mkdir(parents=True)
    (session / "events.jsonl").write_text("TOPSECRET")
    async with Workspace(
        tmp_path, mode="workspace", approval="auto", notifier=Recorder(), session_folder=session
    ) as work:
        (session / "outputs/1.txt").write_text("long output")
        _, output = await run_script(
            work, f"cat {session}/events.jsonl; cat {session}/outputs/1.txt; echo x > {session}/outputs/1.txt"
        )
        assert "TOPSECRET" not in output
        assert "long output" in output
        assert "Read-only" in output
        assert work.read_bytes(session / "outputs/1.txt") == b"long output"


async def test_write_outside_fails(workspace: Workspace, tmp_path: Path) -> None:
    for target in ("/etc/passwd", "/usr/x", "/work/x", "/x"):
        code, output = await run_script(workspace, f"echo x >> {target}")
        assert code != 0, output
    code, _ = await run_script(workspace, f"echo x > {tmp_path}/outside")
    assert not (tmp_path / "outside").exists()


async def test_write_inside_works(workspace: Workspace, root: Path) -> None:
    assert (await run_script(workspace, "mkdir -p a/b && echo hi > a/b/c"))[0] == 0
    assert (root / "a/b/c").read_text() == "hi\n"


async def test_tmp_is_private(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "neighbour").write_text("x")
    _, output = await run_script(
        workspace, f"cat {tmp_path}/neighbour; echo mine > /tmp/file; cat /var/tmp/file; echo $TMPDIR"
    )
    assert "No such file" in output
    assert output.endswith("mine\n/tmp\n")
    assert not os.path.exists("/tmp/file")  # noqa: ASYNC240
    assert workspace.read_bytes("/tmp/file") == b"mine\n"
    assert oct(workspace.tmp.stat().st_mode & 0o777) == "0o700"


async def test_no_network(workspace: Workspace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        code, _ = await run_script(workspace, f"echo hi > /dev/tcp/127.0.0.1/{port}")
        assert code != 0


async def test_network_when_granted(root: Path) -> None:
    async with Workspace(root, mode="workspace", approval="yolo", notifier=Recorder()) as workspace:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            code, output = await run_script(workspace, f"echo hi > /dev/tcp/127.0.0.1/{port}", access="network")
            assert code == 0, output
            code, _ = await run_script(workspace, "cat ~/.netrc; echo x > /etc/x", access="network")
            assert code != 0


async def test_abstract_sockets_of_others_are_out_of_reach(root: Path) -> None:
    name = f"\0goose-like-test-{os.getpid()}"
    script = """python3 - <<'END'
import socket
for name in ("\\0own", "\\0NAME"):
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        if name.endswith("own"):
            listener.bind(name)
            listener.listen()
        client.connect(name)
        print("connected")
END""".replace("NAME", name[1:])
    async with Workspace(root, mode="workspace+network", approval="auto", notifier=Recorder()) as workspace:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(name)
            listener.listen()
            code, output = await run_script(workspace, script)
    if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 12):
        assert (code, output.count("connected")) == (1, 1), output
        assert "PermissionError" in output


@pytest.mark.skipif(os.getuid() != 0, reason="only root may listen in /run")
async def test_sockets_in_run_are_hidden(workspace: Workspace) -> None:
    path = f"/run/goose-test-{os.getpid()}.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        try:
            assert await run_script(workspace, "ls -A /run /var/run/") == (0, "/run:\n\n/var/run/:\n")
        finally:
            os.unlink(path)


async def test_sockets_elsewhere_are_hidden(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)  # so that commands see it
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/s")
        listener.listen()
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect('{folder}/s')"
        code, output = await run_script(workspace, f'ls {folder}; python3 -c "{connect}"')
    assert code == 1
    assert output.startswith("s\n")
    assert "Error" in output


async def test_the_machine_stays_as_it_is(workspace: Workspace) -> None:
    file = "/proc/sys/vm/swappiness"
    code, output = await run_script(workspace, f"cat {file} > /tmp/v; cat /tmp/v > {file}")
    assert code != 0, output


async def test_other_processes_are_out_of_sight(workspace: Workspace) -> None:
    _, output = await run_script(
        workspace, "ls /proc | grep -c '^[0-9]'; cat /proc/1/environ; kill -9 -1; kill -9 $PPID; echo on"
    )
    assert output.endswith("on\n")
    assert int(output.split()[0]) < 10
    assert "PATH" not in output


async def test_no_capabilities(workspace: Workspace) -> None:
    _, output = await run_script(
        workspace, "grep CapEff /proc/self/status; mount -t tmpfs x /mnt; umount ~/.ssh; cat ~/.ssh/*"
    )
    assert "CapEff:\t0000000000000000" in output
    assert "TOPSECRET" not in output


START_FILES = [
    ".bashrc",
    ".config/fish/config.fish",
    ".gitconfig",
    ".config/git/config",
    ".vim/vimrc",
    "bin/ls",
    ".xsession",
    ".sqliterc",
]


@pytest.mark.parametrize("name", START_FILES)
async def test_start_files_are_protected(home: Path, name: str) -> None:
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    async with Workspace(home, mode="workspace", approval="auto", notifier=Recorder()) as workspace:
        code, _ = await run_script(workspace, f"echo evil >> ~/{name}")
        assert code != 0
        await run_script(
            workspace,
            f"rm -rf ~/{name}; cd; mv .config bin .vim moved; mkdir -p $(dirname ~/{name}); echo evil > ~/{name}",
        )
    assert file.read_text() == "mine"


async def test_start_files_that_appear_are_removed(workspace: Workspace, home: Path) -> None:
    (home / ".config").rename(home / ".conf")  # .config itself would be hidden
    await run_script(
        workspace, "echo evil > ~/.zshenv; mkdir -p ~/.config/autostart; echo evil > ~/.config/autostart/x"
    )
    report = await workspace.inspect_changes(None)
    assert "disabled" in str(report)
    assert ".zshenv" in str(report)
    assert not (home / ".zshenv").exists()
    assert not (home / ".config/autostart/x").exists()
    assert await workspace.inspect_changes(None) == []


async def test_our_configuration_is_protected(tmp_path: Path, home: Path) -> None:
    config = tmp_path / "goose/config"
    config.mkdir(parents=True)
    (config / "profiles.yaml").write_text("mine")
    (config / "keys.yaml").write_text("TOPSECRET")
    async with Workspace(tmp_path, mode="workspace", approval="auto", notifier=Recorder()) as workspace:
        _, output = await run_script(
            workspace, f"cat {config}/*; echo evil > {config}/profiles.yaml; mv {tmp_path}/goose x"
        )
    assert "TOPSECRET" not in output
    assert (config / "profiles.yaml").read_text() == "mine"


async def test_a_python_in_the_workspace_that_runs_us_is_protected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "env/lib").mkdir(parents=True)
    for base in (root / "env", root):  # an environment of conda, and a workspace that is itself a prefix
        monkeypatch.setattr(sys, "prefix", str(base))
        monkeypatch.setattr(sys, "base_prefix", str(base))
        rules = build_rules(root, root.parent / "tmp")
        assert rules.get_rule(root / "env/lib") == ("write" if base == root else "protected")
        assert rules.get_rule(root / "src") == "write"


# --- git


async def test_git_init_and_commit(workspace: Workspace) -> None:
    code, output = await run_script(
        workspace, f"{GIT} init -q new && cd new && echo x > f && git add f && {GIT} commit -qm one"
    )
    assert code == 0, output
    assert await workspace.inspect_changes(None) == []


async def test_commit_in_root_subfolder_and_worktree(repository: Path) -> None:
    (repository / "below/deep").mkdir(parents=True)
    run_git(repository, "worktree", "add", "-q", str(repository.parent / "tree"))
    for place in (repository, repository / "below/deep", repository.parent / "tree"):
        async with Workspace(place, mode="workspace", approval="auto", notifier=Recorder()) as workspace:
            code, output = await run_script(
                workspace, f"echo x > f && git add f && {GIT} commit -qm more && git log --oneline"
            )
            assert code == 0, output
            assert await workspace.inspect_changes(None) == []
            await run_script(workspace, "cd $(git rev-parse --git-common-dir) && echo evil > hooks/post-commit")
            await run_script(workspace, "git config core.fsmonitor evil")
            assert not (repository / ".git/hooks/post-commit").exists()
            assert "evil" not in (repository / ".git/config").read_text()
            assert "hook post-commit" in str(await workspace.inspect_changes(None))
            assert "evil" not in (await run_script(workspace, "git config -l; ls $(git rev-parse --git-path hooks)"))[1]


async def test_existing_hooks_and_config_stay(repository: Path, root: Path) -> None:
    shutil.rmtree(repository / ".git/hooks")
    before = (repository / ".git/config").read_text()
    async with Workspace(root, mode="workspace", approval="auto", notifier=Recorder()) as workspace:
        for attack in (
            "echo evil > .git/hooks/pre-commit",
            "mkdir -p .git/hooks/x",
            "rm -r .git/hooks",
            "echo evil > .git/config",
            "ln -sf /dev/null .git/config",
            "mv .git x",
            "mv ../project ../moved",
        ):
            await run_script(workspace, attack, cwd=repository)
            assert (repository / ".git/config").read_text() == before
            assert list((repository / ".git/hooks").iterdir()) == []
            await workspace.inspect_changes(None)
    assert (repository / ".git/config").read_text() == before
    assert list((repository / ".git/hooks").iterdir()) == []


@pytest.mark.parametrize(
    ("setting", "target"),
    [
        ("core.hooksPath=tools/hooks", "tools/hooks/pre-commit"),
        ("core.hooksPath=.husky/_", ".husky/pre-commit"),
        ("include.path=../tools/more.cfg", "tools/more.cfg"),
        ("core.fsmonitor=tools/watch", "tools/watch"),
    ],
)
async def test_what_the_settings_lead_to_stays(repository: Path, setting: str, target: str) -> None:
    run_git(repository, "config", *setting.split("="))
    file = repository / target
    file.parent.mkdir(parents=True)
    file.write_text("")
    async with Workspace(repository, mode="workspace", approval="auto", notifier=Recorder()) as workspace:
        await run_script(
            workspace,
            f"echo evil > {target}; mv {target.split('/')[0]} moved; mkdir -p tools .husky; echo evil > {target}",
        )
    assert file.read_text() == ""


async def test_a_worktree_is_led_nowhere_else(repository: Path, root: Path) -> None:
    run_git(repository, "worktree", "add", "-q", str(root / "tree"))
    folder = repository / ".git/worktrees/tree"
    async with Workspace(root, mode="workspace", approval="auto", notifier=Recorder()) as workspace:
        for name in ("commondir", "gitdir"):
            assert (await run_script(workspace, f"echo /tmp/evil > {folder}/{name}"))[0] != 0
    assert (folder / "commondir").read_text() == "../..\n"


@pytest.mark.parametrize("target", ["home/.ssh", "victim/.git", "victim"])
def test_pointers_of_a_project_are_not_believed(root: Path, tmp_path: Path, target: str) -> None:
    run_git(tmp_path, "init", "-q", "victim")
    project = root / "untrusted"
    project.mkdir()
    (project / ".git").write_text(f"gitdir: {tmp_path / target}\n")
    assert find_commit_folders(project) == ()
    (project / ".git").unlink()
    (project / ".git").symlink_to(tmp_path / target)
    assert find_commit_folders(project) == ()


def test_a_submodule_is_believed(repository: Path) -> None:
    run_git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository), "sub")
    assert find_commit_folders(repository / "sub") == (repository / ".git/modules/sub",)


# --- where there is no sandbox, and as whom


async def test_without_bubblewrap_and_landlock_the_command_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho no namespaces here >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "find_bwrap", lambda: fake)
    monkeypatch.setattr(landlock, "find_landlock_problem", lambda: "no Landlock here")
    async with Workspace(root, mode="workspace", approval="auto", notifier=Recorder()) as workspace:
        with pytest.raises(SandboxError, match=r"no namespaces here.*--sandbox full"):
            await run_script(workspace, "true")


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="only root can become somebody else")
def test_as_an_unprivileged_user() -> None:
    program = bubblewrap.find_bwrap()
    assert program is not None
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # where nobody may read, unlike in tmp_path
        Path(folder).chmod(0o755)
        if program.parent.name == "_bin":
            package = program.parents[1]
            for part in (package, package.with_name(f"{package.name}.libs")):
                shutil.copytree(part, Path(folder, part.name))
            program = Path(folder, package.name, "_bin/bwrap")
        words = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--new-session"]
        words += [
            "--unshare-user-try",
            "--unshare-pid",
            "--unshare-net",
            "--unshare-ipc",
            "--unshare-uts",
            "--as-pid-1",
        ]
        words += ["--unshare-cgroup-try", "--cap-drop", "ALL", "--die-with-parent", "--", "id", "-u"]
        line = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", str(program), *words]
        done = subprocess.run(line, cwd="/", capture_output=True, text=True, check=False)
    assert done.stdout == "65534\n", done.stderr


def test_parents_are_mounted_before_what_lies_in_them(root: Path, tmp_path: Path) -> None:
    rules = build_rules(root, tmp_path / "tmp")
    line = bubblewrap.build_bwrap_command(rules, network=False)
    places = [line[at + 2] for at, word in enumerate(line) if word in ("--bind", "--ro-bind-try")]
    places = [place for place in places if not place.startswith("/proc/")]
    assert [len(Path(place).parts) for place in places] == sorted(len(Path(place).parts) for place in places)


def test_a_protected_file_that_vanishes_meanwhile_stops_no_command(root: Path, home: Path, tmp_path: Path) -> None:
    settings = home / ".gitconfig"
    settings.write_text("")
    rules = build_rules(root, tmp_path / "tmp")
    line = bubblewrap.build_bwrap_command(rules, network=False)
    assert str(settings) in line
    settings.unlink()
    done = subprocess.run([*line, "echo", "it ran"], cwd="/", capture_output=True, text=True, check=False)
    assert done.stdout == "it ran\n", done.stderr
