"""The environment variables of commands: those of the person without secrets, set for output without a terminal."""

import os
import re
import shutil
import sys
from pathlib import Path

from goose_like.config.secrets import is_secret_variable

# User and password in a URL. For the web the whole part is removed, because a user name alone may be a token.
_URL_USER = re.compile(r"(https?://)[^/\s?#]*@|(://)[^/\s@:]*:[^/\s]*@", re.IGNORECASE)

# Sockets and programs that would act for a command outside the sandbox, or disturb the person.
_ESCAPES = {
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS", "GPG_AGENT_INFO"),
    *("GNOME_KEYRING_CONTROL", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "XAUTHORITY"),
    *("VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "DOCKER_HOST", "BASH_ENV", "ENV", "PROMPT_COMMAND"),
    "PROMETHEUS_MULTIPROC_DIR",  # metrics of a command are not metrics of `goose-like serve`
}
_ESCAPES_WHEN_CONFINED = {"XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "TMUX"}

_NO_EDITOR = "echo 'there is no editor here; give the text on the command line, e.g. git commit -m' >&2; false"

_NON_INTERACTIVE = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    **dict.fromkeys(("PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER"), "cat"),
    **dict.fromkeys(("EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"), _NO_EDITOR),
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_MERGE_AUTOEDIT": "no",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONUNBUFFERED": "1",  # the output of a program that runs out of time matters more than its speed
}

# The person's caches are read-only in the sandbox, and these tools fail with a read-only cache.
_CONFINED = {
    **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), "/tmp"),
    "GOCACHE": "/tmp/.cache/go-build",
    "UV_CACHE_DIR": "/tmp/.cache/uv",
    "npm_config_cache": "/tmp/.cache/npm",
}


def build_environment(*, is_confined: bool) -> dict[str, str]:
    """Build the variables of a command: no secrets, no user and password in a URL, and `rg` on the PATH."""
    escapes = _ESCAPES | _ESCAPES_WHEN_CONFINED if is_confined else _ESCAPES
    variables = {
        name: _URL_USER.sub(r"\1\2", value)
        for name, value in os.environ.items()
        if name and name not in escapes and not is_secret_variable(name)
    }
    variables |= _NON_INTERACTIVE | (_CONFINED if is_confined else {})
    path = variables.get("PATH") or os.defpath
    own_folder = str(Path(sys.executable).parent)
    if shutil.which("rg", path=path) is None and shutil.which("rg", path=own_folder):
        path = f"{path}{os.pathsep}{own_folder}"
    return variables | {"PATH": path}
