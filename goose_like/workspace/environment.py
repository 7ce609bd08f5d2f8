"""The variables that commands see: those of the person, without secrets, and made for a reader without a terminal."""

import os
import re
import shutil
import sys
from pathlib import Path

_SECRET_WORDS = {
    *("KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "AUTHTOKEN", "SECRET", "SECRETS"),
    *("PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "AUTH", "JWT", "PAT", "PASS"),
}
# Written without an underscore, as in OPENAIKEY; KEY alone would be a MONKEY's, too.
_SECRET_ENDINGS = ("APIKEY", "AIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD")
_SECRET_NAMES = {"PGPASSFILE", "MYSQL_PWD", "KUBECONFIG", "BW_SESSION"}
_SECRET_NAMES_BEGIN = "OP_SESSION_"

# Who one is to a server: all of it for the web, where a name alone may be a token, else a name with its password.
_URL_USER = re.compile(r"(https?://)[^/\s?#]*@|(://)[^/\s@:]*:[^/\s]*@", re.IGNORECASE)

# Sockets through which a command could have something done for it outside the sandbox, or bother the person.
_DOORS = {
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS", "GPG_AGENT_INFO"),
    *("GNOME_KEYRING_CONTROL", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "XAUTHORITY"),
    *("VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "DOCKER_HOST", "BASH_ENV", "ENV", "PROMPT_COMMAND"),
}
_DOORS_WHEN_CONFINED = {"XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "TMUX"}

_NO_EDITOR = "echo 'there is no editor here; give the text on the command line, e.g. git commit -m' >&2; false"

_QUIET = {
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
    "PYTHONUNBUFFERED": "1",  # what a program said before its time was up is worth more than its speed
}

# The person's caches are read-only in the sandbox, which these tools do not take.
_CONFINED = {
    **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), "/tmp"),
    "GOCACHE": "/tmp/.cache/go-build",
    "UV_CACHE_DIR": "/tmp/.cache/uv",
    "npm_config_cache": "/tmp/.cache/npm",
}


def is_secret(name: str) -> bool:
    """By whole words between underscores: OPENAI_API_KEY is one, KEYBOARD_LAYOUT and MONKEYS are none."""
    name = name.upper()
    if name in _SECRET_NAMES or name.startswith(_SECRET_NAMES_BEGIN):
        return True
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in name.split("_"))


def environment(*, is_confined: bool) -> dict[str, str]:
    """The variables of a command: no secrets, no user and password in a URL. `rg` is on the PATH in any case."""
    doors = _DOORS | _DOORS_WHEN_CONFINED if is_confined else _DOORS
    kept = {
        name: _URL_USER.sub(r"\1\2", value)
        for name, value in os.environ.items()
        if name and name not in doors and not is_secret(name)
    }
    kept |= _QUIET | (_CONFINED if is_confined else {})
    path = kept.get("PATH") or os.defpath
    ours = str(Path(sys.executable).parent)
    if shutil.which("rg", path=path) is None and shutil.which("rg", path=ours):
        path = f"{path}{os.pathsep}{ours}"
    return kept | {"PATH": path}
