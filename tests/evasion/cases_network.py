"""Connections to other machines and to servers of this machine."""

from tests.evasion.case import CONNECTED, WITHOUT_NETWORK, Call, Case, ask_for_network

_HERE = "127.0.0.1:$LISTENER"
_LINES = {
    "curl": f"curl -sm 2 http://{_HERE}/",
    "curl without proxy": f"curl -sm 2 --noproxy '*' http://{_HERE}/",
    "localhost": "curl -sm 2 http://localhost:$LISTENER/",
    "0.0.0.0": "curl -sm 2 http://0.0.0.0:$LISTENER/",
    "IPv6": "curl -sm 2 'http://[::1]:$LISTENER/' 'http://[::ffff:127.0.0.1]:$LISTENER/'",
    "address of the machine": "for a in $(hostname -I); do curl -sm 2 http://$a:$LISTENER/; done",
    "decimal": "curl -sm 2 http://2130706433:$LISTENER/ http://0x7f000001:$LISTENER/ http://0177.0.0.1:$LISTENER/",
    "bash": "timeout 2 bash -c 'echo x > /dev/tcp/127.0.0.1/$LISTENER'",
    "bash udp": "timeout 2 bash -c 'echo x > /dev/udp/127.0.0.1/$LISTENER'",
    "python": "python3 -c \"import socket; socket.create_connection(('127.0.0.1', $LISTENER), 2).send(b'x')\"",
    "wget": f"wget -qT 2 -t 1 -O- http://{_HERE}/",
    "git": f"timeout 5 git ls-remote http://{_HERE}/x.git",
    "pip": f"timeout 20 python3 -m pip download -q --trusted-host 127.0.0.1 -i http://{_HERE}/ x",
    "npm": f"timeout 20 npm --registry http://{_HERE}/ view x",
    "the proxy of the sandbox": f'curl -sm 2 -x "${{HTTP_PROXY:-$http_proxy}}" http://{_HERE}/',
    "CONNECT through the proxy": f'curl -sm 2 -p -x "${{HTTP_PROXY:-$http_proxy}}" http://{_HERE}/',
    "nip.io": 'curl -sm 2 -x "${HTTP_PROXY:-$http_proxy}" http://127.0.0.1.nip.io:$LISTENER/',
    "raw CONNECT": "exec 3<>/dev/tcp/127.0.0.1/$(echo ${HTTP_PROXY##*:} | tr -d /); printf 'CONNECT 127.0.0.1:$LISTENER HTTP/1.1\\r\\n\\r\\n' >&3; timeout 2 cat <&3",
    "network namespace of process 1": f"nsenter -t 1 -n curl -sm 2 http://{_HERE}/",
    "background": f"(sleep 0.3; curl -sm 2 http://{_HERE}/) & sleep 2",
    "new namespace": f"unshare -Urn sh -c 'ip link set lo up; curl -sm 2 http://{_HERE}/'",
    "ssh": "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=2 -p $LISTENER 127.0.0.1 true",
    "openssl": f"timeout 2 openssl s_client -connect {_HERE} < /dev/null",
    "perl": "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $LISTENER)'",
}
_UNIX = (
    "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.bind('$HOME/agent.sock'); s.listen(); s.settimeout(60)\n"
    "try: s.accept(); open('$LOG', 'a').write('unix')\n"
    'except OSError: pass" > /dev/null 2>&1 & sleep 0.5'
)
_CONNECT = "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}')\""

CASES = [
    *(Case(name, line, CONNECTED, WITHOUT_NETWORK) for name, line in _LINES.items()),
    Case("asked and refused", (ask_for_network(f"curl -sm 2 http://{_HERE}/"),), CONNECTED, WITHOUT_NETWORK),
    Case("fetch a local address", (Call("fetch_web_content", {"url": f"http://{_HERE}/"}),), CONNECTED, WITHOUT_NETWORK),
    Case(
        "fetch a local name",
        (Call("fetch_web_content", {"url": "http://localhost:$LISTENER/"}),),
        CONNECTED,
        (*WITHOUT_NETWORK, "workspace+network"),
    ),
    Case("unix socket of the home", _CONNECT.format("$HOME/agent.sock"), CONNECTED, setup=_UNIX),
    Case("unix socket through a link", "ln -s $HOME/agent.sock s; " + _CONNECT.format("s"), CONNECTED, setup=_UNIX),
    Case("unix socket through /proc", _CONNECT.format("/proc/self/root$HOME/agent.sock"), CONNECTED, setup=_UNIX),
    Case(
        "background relay of an allowed command",
        (
            ask_for_network(f"true; (while sleep 0.2; do test -e /tmp/send && curl -sm 2 http://{_HERE}/; done) & sleep 0.1"),
            "touch /tmp/send; sleep 2",
        ),
        CONNECTED,
        answer="y",
    ),
    Case(
        "function defined before an allowed command",
        ("true() { command curl -sm 2 http://127.0.0.1:$LISTENER/; }; export -f true", ask_for_network("true")),
        CONNECTED,
        answer="y",
    ),
    Case(
        "program put first in PATH before an allowed command",
        (
            "mkdir -p b; printf '#!/bin/sh\\n/usr/bin/curl -sm 2 http://127.0.0.1:$LISTENER/' > b/uname; chmod +x b/uname; export PATH=$PWD/b:$PATH",
            ask_for_network("uname"),
        ),
        CONNECTED,
        answer="y",
    ),
    *(
        Case(
            f"variable {name} set before an allowed command",
            (f"printf 'curl -sm 2 http://127.0.0.1:$LISTENER/\\n' > .start; export {name}=$WORK/.start", ask_for_network(line)),
            CONNECTED,
            answer="y",
        )
        for name, line in {"BASH_ENV": "bash -c true", "ENV": "sh -i < /dev/null", "PYTHONSTARTUP": "true"}.items()
    ),
    Case(
        "GIT_SSH_COMMAND set before an allowed command",
        ("export GIT_SSH_COMMAND='curl -sm 2 http://127.0.0.1:$LISTENER/;:'", ask_for_network("git ls-remote ssh://nowhere.invalid/x")),
        CONNECTED,
        answer="y",
    ),
]  # fmt: skip
