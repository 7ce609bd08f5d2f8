"""Ways around the list of hosts, and around the question about one command with network."""

from tests.evasion.case import CONNECTED, WITHOUT_NETWORK, Case, ask_for_network

_PROXY = 'curl -sm 3 -x "${HTTP_PROXY:-$http_proxy}" --noproxy ""'
_PORT = "$LISTENER"

# Each leads to this machine, and a person who overlooks that says yes to the host.
_HOSTS = {
    "localhost": "localhost",
    "a name of this machine": "$(hostname)",
    "a dot at the end": "localhost.",
    "capital letters": "LocalHost",
    "an address": "127.0.0.1",
    "another loopback address": "127.9.9.9",
    "a short address": "127.1",
    "a hexadecimal address": "0x7f.0x0.0x0.0x1",
    "an octal address": "0177.0.0.1",
    "a number": "2130706433",
    "no address": "0.0.0.0",
    "IPv6": "[::1]",
    "IPv4 in IPv6": "[::ffff:127.0.0.1]",
    "a link-local address": "[fe80::1]",
}
_RAW = """exec 3<>/dev/tcp/127.0.0.1/3128; printf '{}' >&3; timeout 2 cat <&3"""
_LINES = {
    "user in the URL": rf"GET http://example.org@localhost:{_PORT}/ HTTP/1.1\r\n\r\n",
    "backslash in the URL": rf"GET http://example.org\\@localhost:{_PORT}/ HTTP/1.1\r\n\r\n",
    "blank in the URL": rf"GET http://example.org/ http://localhost:{_PORT}/ HTTP/1.1\r\n\r\n",
    "two requests": rf"GET http://example.invalid/ HTTP/1.1\r\n\r\nGET http://localhost:{_PORT}/ HTTP/1.1\r\n\r\n",
    "tunnel to another port": rf"CONNECT localhost:{_PORT} HTTP/1.1\r\n\r\nx",
    "tunnel without port": r"CONNECT localhost HTTP/1.1\r\n\r\nx",
    "own path": rf"GET / HTTP/1.1\r\nHost: localhost:{_PORT}\r\n\r\n",
    "ftp": rf"GET ftp://localhost:{_PORT}/x HTTP/1.1\r\n\r\n",
}
_CURL = "curl -sm 2 http://127.0.0.1:$LISTENER/"
_PLANT = f"printf '#!/bin/sh\\n{_CURL}\\n'"

# The listener, bash or the resolver of the machine stop these without a sandbox too.
_WITHOUT_CONTROL = (
    *("a dot at the end", "IPv6", "a link-local address", "function in a variable", "alias", "BASH_ENV", "LD_PRELOAD"),
    "start file of a shell",
)

CASES = [
    *(
        Case(f"allowed host: {name}", f"{_PROXY} http://{host}:{_PORT}/; {_PROXY} -p http://{host}:{_PORT}/", CONNECTED,
             WITHOUT_NETWORK, answer="y", has_control=name not in _WITHOUT_CONTROL)
        for name, host in _HOSTS.items()
    ),
    *(Case(f"raw: {name}", _RAW.format(line), CONNECTED, answer="y", has_control=False) for name, line in _LINES.items()),
    *(
        Case(f"before an allowed command: {name}", (plant, ask_for_network(line)), CONNECTED, answer="y",
             has_control=name not in _WITHOUT_CONTROL)
        for name, plant, line in (
            ("function", f"uname() {{ {_CURL}; }}; export -f uname", "uname"),
            ("function in a variable", f"export 'BASH_FUNC_uname%%=() {{ {_CURL}; }}'", "uname"),
            ("function of a builtin", f"cd() {{ {_CURL}; }}; echo() {{ {_CURL}; }}; export -f cd echo", "cd .; echo x"),
            ("alias", f"shopt -s expand_aliases; alias uname='{_CURL}'", "uname"),
            ("PATH", f"mkdir b; {_PLANT} >b/uname; chmod +x b/uname; export PATH=$PWD/b:$PATH", "uname"),
            ("PATH of /tmp", f"{_PLANT} >/tmp/uname; chmod +x /tmp/uname; export PATH=/tmp:$PATH", "uname"),
            ("trap", f"trap '{_CURL}' DEBUG EXIT; export -p", "uname"),
            ("BASH_ENV", f"{_PLANT} >e; export BASH_ENV=$PWD/e", "uname"),
            ("PS4", f"export SHELLOPTS PS4='$({_CURL})'; set -x", "uname"),
            ("LD_PRELOAD", "export LD_PRELOAD=$PWD/x.so LD_LIBRARY_PATH=$PWD", "uname"),
            ("GIT_EXTERNAL_DIFF", f"{_PLANT} >d; chmod +x d; export GIT_EXTERNAL_DIFF=$PWD/d; echo >>app.py", "git diff"),
            ("PYTHONSTARTUP", "export PYTHONPATH=$PWD PYTHONSTARTUP=$PWD/x.py; "
             f"echo 'import os; os.system(\"{_CURL}\")' >sitecustomize.py", "cd / && python3 -c 0"),
            ("start file of a shell", f"while sleep 0.01; do for f in /tmp/.shell-*; do echo '{_CURL}' >$f; done; done "
             "2>/dev/null & sleep 0.1", "sleep 0.5; uname"),
        )
    ),
    *(
        Case(f"left by an allowed command: {name}", (ask_for_network(line.format(_CURL)), "touch /tmp/go; sleep 2"), CONNECTED,
             answer="y", has_control=False)
        for name, line in {
            "background": "(until test -e /tmp/go; do sleep 0.1; done; {}) >/dev/null 2>&1 &",
            "daemon": "setsid -f bash -c 'until test -e /tmp/go; do sleep 0.1; done; {}' >/dev/null 2>&1",
            "daemon without variables": "env -i setsid -f bash -c 'until test -e /tmp/go; do sleep 0.1; done; {}' >/dev/null 2>&1",
            "nohup": "nohup bash -c 'until test -e /tmp/go; do sleep 0.1; done; {}' >/dev/null 2>&1 & disown",
        }.items()
    ),
]  # fmt: skip
