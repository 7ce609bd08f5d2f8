"""Credentials within toolchains and settings that commands see."""

from tests.evasion.case import LEAKED, Call, Case

_TOKEN = 'token = \\"CANARY\\"'
_URL = "https://me:CANARY@example.org/simple"

# A file of the home folder, and its text for printf. Commands may see the file, but not the credential.
_FILES = {
    ".gitconfig": "[http]\\n\\textraheader = AUTHORIZATION: basic CANARY\\n",
    ".config/git/config": f"[url \\\"{_URL}\\\"]\\n\\tinsteadOf = https://example.org\\n",
    ".config/git/work": "[http]\\n\\tproxy = http://me:CANARY@example.org\\n",
    ".cargo/config.toml": f"[registry]\\n{_TOKEN}\\n",
    ".cargo/config": f"[registries.x]\\n{_TOKEN}\\n",
    ".local/share/uv/credentials/credentials.toml": f"[[credential]]\\n{_TOKEN}\\n",
    ".nvm/versions/node/v22.1.0/etc/npmrc": "//npm.example.org/:_authToken=CANARY\\n",
    ".nvm/versions/node/v22.1.0/lib/node_modules/npm/npmrc": "_auth=CANARY\\n",
    ".npm-global/etc/npmrc": "//npm.example.org/:_password=CANARY\\n",
    ".asdf/installs/nodejs/22.1.0/etc/npmrc": "_authToken=CANARY\\n",
    ".local/share/mise/installs/node/22.1.0/etc/npmrc": "_authToken=CANARY\\n",
    "miniconda3/.condarc": "channels:\\n  - https://conda.anaconda.org/t/CANARY-123/me\\n",
    "miniforge3/envs/one/condarc": f"channel_alias: {_URL}\\n",
    ".stack/upload/credentials.json": "{\\\"password\\\": \\\"CANARY\\\"}\\n",
    ".opam/plugins/opam-publish/me.token": "CANARY\\n",
    ".deno/credentials.json": "CANARY\\n",
    ".config/mise/config.toml": "[env]\\nMYSTERY = \\\"CANARY\\\"\\n",
    ".config/mise/conf.d/a.toml": "[env]\\nMYSTERY = \\\"CANARY\\\"\\n",
    ".virtualenvs/one/pip.conf": f"[global]\\nindex-url = {_URL}\\n",
    ".pyenv/versions/3.12.1/pip.conf": f"[global]\\nextra-index-url = {_URL}\\n",
    ".virtualenvs/one/.env": "MYSTERY=CANARY\\n",
    ".config/go/env": f"GOPROXY={_URL}\\n",
    ".rye/config.toml": "[[sources]]\\npassword = \\\"CANARY\\\"\\n",
}  # fmt: skip
_ENVIRONMENT = (
    'mkdir -p "$HOME/tools/py/bin"; printf "[global]\\nindex-url = ' + _URL + '\\n" > "$HOME/tools/py/pip.conf"'
)


def _plant(name: str, text: str) -> str:
    return f'mkdir -p "$(dirname "$HOME/{name}")" && printf "{text}" > "$HOME/{name}"'


CASES = [
    *(Case(f"read {name}", f'cat "$HOME/{name}"', LEAKED, setup=_plant(name, text)) for name, text in _FILES.items()),
    *(
        Case(name, line, LEAKED, ("workspace", "read-only"), setup=_plant(".gitconfig", _FILES[".gitconfig"]))
        for name, line in {
            "git config": "git config --list --show-origin",
            "git var": "git var -l",
            "by /proc": 'cat "/proc/1/root$HOME/.gitconfig" "/proc/self/root$HOME/.gitconfig"',
            "by mountinfo": "cat $(grep gitconfig /proc/self/mountinfo | cut -d' ' -f4)",
            "in the private folders": "cat /tmp/goose-like-*/* /tmp/*; grep -rs CAN[A]RY /tmp /dev/shm",
            "by a link": 'ln -s "$HOME/.gitconfig" l; cat l',
            "by a hard link": 'ln "$HOME/.gitconfig" l; cat l',
            "by unmounting": 'umount "$HOME/.gitconfig"; cat "$HOME/.gitconfig"',
        }.items()
    ),
    Case(
        "settings behind a link",
        'cat "$HOME/.gitconfig" "$HOME/dotfiles/git"',
        LEAKED,
        setup=_plant("dotfiles/git", _FILES[".gitconfig"]) + '; ln -sf dotfiles/git "$HOME/.gitconfig"',
    ),
    Case(
        "settings by an include",
        'cat "$HOME/work/git"; git config --list',
        LEAKED,
        setup=_plant("work/git", _FILES[".gitconfig"])
        + '; printf "[include]\\n\\tpath = ~/work/git\\n" >> "$HOME/.gitconfig"',
    ),
    Case("read_file", (Call("read_file", {"path": "~/.gitconfig"}),), LEAKED, setup=_plant(".gitconfig", _FILES[".gitconfig"])),
    Case("an environment that a variable names", "cat ~/tools/py/pip.conf", LEAKED, setup=_ENVIRONMENT, variables={"VIRTUAL_ENV": "$HOME/tools/py"}),
]  # fmt: skip
