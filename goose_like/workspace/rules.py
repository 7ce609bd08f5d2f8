"""Path rules: for every path, the rights that the commands of a session have there."""

import os
import pwd
import shutil
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from goose_like.config.paths import config_folder, state_folder

Rule = Literal["read", "write", "protected", "hidden", "tmp", "pin"]
"""The rights at a path.

- `read`: read-only, unless the person allows a write.
- `write`: readable and writable.
- `protected`: read-only in any case.
- `hidden`: neither readable nor writable.
- `tmp`: the machine's /tmp, which is replaced by the private folder.
- `pin`: writable, but cannot be moved, because a rule for a path inside depends on its name.
"""

# Credentials, and sockets of programs that hold them. Below the home folder, unless absolute.
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

# Files that a shell, an interpreter, a tool or the desktop runs outside any sandbox. Below the home folder.
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

_TEMPORARY = ("/tmp", "/var/tmp")


@dataclass(frozen=True, slots=True)
class Rules:
    """A rule for each path, all of them real paths. The rule of the nearest parent applies."""

    table: dict[Path, Rule]
    tmp: Path

    def get_rule(self, path: Path) -> Rule:
        """Return the rule of a real path."""
        return next(self.table[p] for p in (path, *path.parents) if p in self.table)

    def to_host_path(self, path: Path) -> Path:
        """Translate a path of the sandbox to the machine: /tmp is the private folder, other paths are equal."""
        above = next(p for p in (path, *path.parents) if self.table.get(p, "pin") != "pin")
        return self.tmp / path.relative_to(above) if self.table[above] == "tmp" else path

    def with_pins(self) -> "Rules":
        """Return the rules with every folder pinned that lies between a writable folder and a rule inside it.

        Without pins, `mv .git x` would move a protected path away from the name that protects it.
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

    def create_pinned_folders(self) -> None:
        """Create the pinned folders of the private /tmp."""
        for path, rule in self.table.items():
            if rule == "pin" and (source := self.to_host_path(path)) != path:
                source.mkdir(parents=True, exist_ok=True)


def build_rules(
    root: Path,
    tmp: Path,
    *,
    writable: Iterable[Path] = (),
    protected: Iterable[Path] = (),
    outputs: Path | None = None,
    is_read_only: bool = False,
) -> Rules:
    """Build the rules of a session.

    Args:
        root: the workspace.
        tmp: the private folder that commands see as /tmp.
        writable: git folders outside the workspace that a commit writes to.
        protected: paths that stay read-only inside the writable folders.
        outputs: the only folder of goose_like's own state that commands may read.
        is_read_only: nothing but `tmp` is writable, not even the workspace.
    """
    table: dict[Path, Rule] = {Path("/"): "read", **dict.fromkeys(map(Path, ("/proc", "/dev", "/run")), "hidden")}
    table |= {resolve_path(folder): "tmp" for folder in _TEMPORARY}
    table[resolve_path(tmp)] = "write"
    table |= {resolve_path(path): "read" if is_read_only else "write" for path in (root, *writable)}
    rules = Rules(table, resolve_path(tmp))

    rg = shutil.which("rg") or shutil.which("rg", path=str(Path(sys.executable).parent))
    # The program itself must stay visible, even if it is installed below the machine's /tmp.
    program: tuple[str | Path, ...] = (
        *list_python_folders(),
        Path(__file__).parents[1],
        *filter(os.path.isabs, sys.path),  # a `.pth` file may lead anywhere
        *((Path(rg).parent, resolve_path(rg).parent) if rg else ()),  # its link may lead to another folder
    )
    for path in sorted(map(resolve_path, program)):
        if rules.get_rule(path) in ("tmp", "hidden"):
            table[path] = "read"
    # A virtual environment that runs goose_like is protected too: its files run outside any sandbox the next time.
    own = [config_folder()] if sys.prefix == sys.base_prefix else [config_folder(), Path(sys.prefix)]
    for path in (*(home / name for home in _list_homes() for name in START_FILES), *own, *protected):
        if rules.get_rule(resolve_path(path)) in ("read", "write"):
            table[resolve_path(path)] = "protected"
    for path in list_secret_paths():
        if rules.get_rule(path) not in ("tmp", "hidden"):
            table[path] = "hidden"
    # A read-only mount does not stop connect(2).
    for path in map(resolve_path, _list_listening_sockets()):
        if rules.get_rule(path) in ("read", "protected"):
            table[path] = "hidden"
    if outputs is not None:
        table[resolve_path(outputs)] = "read"
    return rules.with_pins()


def list_secret_paths() -> list[Path]:
    """List the real paths that no command may see, existing or not: the person's secrets and goose_like's own state."""
    found = [
        *(home / name for home in _list_homes() for name in SECRETS),
        *config_folder().glob("keys*"),
        state_folder(),
    ]
    return list(map(resolve_path, found))


def list_python_folders() -> tuple[Path, ...]:
    """List the folders of the Python that runs goose_like: its environment, the base installation, the executable."""
    return Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).parent


def resolve_path(path: str | Path) -> Path:
    """Resolve all links of a path."""
    return Path(os.path.realpath(path))


def _list_homes() -> set[Path]:
    homes = {resolve_path(Path.home())}
    with suppress(KeyError):  # HOME may point elsewhere, but the person's real home still holds secrets
        homes.add(resolve_path(pwd.getpwuid(os.getuid()).pw_dir))
    return homes


def _list_listening_sockets() -> list[str]:
    """List the paths of unix sockets in our network namespace."""
    with suppress(OSError), open("/proc/net/unix", errors="surrogateescape") as table:
        columns = (line.rstrip("\n").split(maxsplit=7) for line in table)
        return [path for *_, path in columns if path.startswith("/") and _is_socket(path)]
    return []


def _is_socket(path: str) -> bool:
    with suppress(OSError, ValueError):
        return stat.S_ISSOCK(os.stat(path).st_mode)
    return False
