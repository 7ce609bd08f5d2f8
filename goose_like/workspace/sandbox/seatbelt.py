"""The sandbox of macOS: path rules as a profile of sandbox-exec. Untested on macOS; only the text is tested."""

import os
from pathlib import Path

from .path_rules import Rules

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
CONFIRMATION = "GOOSE_LIKE_MACOS_SANDBOX"
"""The variable by which a person confirms that the sandbox of macOS may be used."""

# A later rule wins over an earlier one. Programs need these to start, to find the user's name and to use a terminal.
_START = """(version 1)
(deny default)
(allow process-exec process-fork process-codesigning-status*)
(allow process-info* signal (target same-sandbox))
(allow sysctl-read ipc-posix-sem ipc-posix-shm* pseudo-tty)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo" "com.apple.trustd.agent"))
(allow file-read* (subpath "/"))"""
_DEVICES = """(allow file-read* file-write* file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx")
  (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
(allow file-read-metadata)"""
_NETWORK = """(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))
(allow network-bind network-inbound (local ip "*:*"))
(allow system-socket)"""


def find_seatbelt_problem(program: str = SANDBOX_EXEC) -> str | None:
    """Return the reason why commands are not confined on macOS; None if they are."""
    if not os.access(program, os.X_OK):
        return f"{program} is missing"
    if os.environ.get(CONFIRMATION) != "yes":
        return (
            "the authors have never run the sandbox of macOS; "
            f"to use it anyway, read `goose-like help sandbox` and set {CONFIRMATION}=yes"
        )
    return None


def build_seatbelt_command(rules: Rules, *, network: bool) -> list[str]:
    """Build the front of a command line that runs a program in the sandbox of macOS."""
    return [SANDBOX_EXEC, "-p", build_seatbelt_profile(rules, network=network)]


def build_seatbelt_profile(rules: Rules, *, network: bool) -> str:
    """Build the text of a profile. Unlike with bubblewrap, /tmp is the machine's and hidden, and processes are seen."""
    lines = [_START]
    for path in sorted(rules.table, key=lambda path: len(path.parts)):
        rule = rules.table[path]
        if path in (Path("/proc"), Path("/dev")):
            continue
        where = f"(subpath {_quote(path)})"
        reads = "deny" if rule in ("hidden", "private", "tmp") else "allow"
        writes = "allow" if rule == "write" else "deny"
        lines.append(f"({reads} file-read* {where})")
        lines.append(f"({writes} file-write* {where})")
    # A folder above a rule keeps its name, so that no rule loses its path.
    for pin in sorted(rules.find_pins()):
        lines.append(f"(deny file-write-unlink file-write-create (literal {_quote(pin)}))")
    lines.append(_DEVICES)
    if network:
        lines.append(_NETWORK)
    return "\n".join(lines) + "\n"


def _quote(path: Path) -> str:
    text = os.fspath(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
