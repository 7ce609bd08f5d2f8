"""Changes of paths that the profile denies (`deny_write`): a file, a file in a folder, and one that does not exist."""

from tests.evasion.case import Call, Case

_SETUP = """
mkdir -p "$HOME/.config/goose-like" locked; printf old | tee conf.yaml > locked/key
echo 'default: {extends: default, paths: {deny_write: [conf.yaml, locked, deep/later.txt]}}' \
  > "$HOME/.config/goose-like/profiles.yaml"
"""
_HARMS = {
    "conf.yaml": 'test "$(cat "$WORK/conf.yaml")" != old',
    "locked/key": 'test "$(cat "$WORK/locked/key")" != old',
    "deep/later.txt": 'test -f "$WORK/deep/later.txt"',
}
_TRICKS = {
    "redirect": "mkdir -p deep; echo x > {}",
    "remove": "rm -rf {}; mkdir -p deep locked; echo x > {}",
    "rename": "mv {} gone; mkdir -p deep; echo x > {}",
    "rename over": "mkdir -p deep; echo x > n; mv -fT n {}",
    "rename the folder": "mv deep other; mv locked other; mkdir -p deep locked; echo x > {}",
    "link over": "mkdir -p deep; echo x > n; ln -sfT $PWD/n {}",
    "link to it": "mkdir -p deep; ln -sT $PWD/{} l; echo x > l",
    "python": "mkdir -p deep; python3 -c \"open('{}', 'w').write('x')\"",
    "dd": "mkdir -p deep; echo x | dd of={} 2>/dev/null",
    "install": "echo x > n; install -D n {}",
    "cp": "mkdir -p deep; echo x > n; cp -f --remove-destination n {}",
    "tar": "mkdir -p t/deep t/locked; echo x | tee t/conf.yaml t/locked/key > t/deep/later.txt; tar cf a -C t .; tar xf a",
    "chmod": "chmod -R u+rwX .; mkdir -p deep; echo x > {}",
    "unmount": "umount -l {} locked deep; mkdir -p deep; echo x > {}",
    "namespace": "unshare -Urm sh -c 'umount -l {}; umount -l locked; mkdir -p deep; echo x > {}' || "
    "{ mkdir -p deep; echo x > {}; }",
    "/proc": "mkdir -p deep; echo x > /proc/self/cwd/{}",
    "background": "(sleep 0.1; mkdir -p deep; echo x > {}) & wait",
    "git": "git add -A; git commit -qm a; git rm -rqf --cached .; git clean -fdxq; mkdir -p deep locked; echo x > {}",
}
_TOOLS = {
    "write": "{}",
    "write, dotted": "./src/../{}",
    "write, absolute": "$WORK/{}",
    "write, through /proc": "/proc/self/cwd/{}",
    "write, by a link": "l",
}

CASES = [
    *(
        Case(f"{name} {target}", line.replace("{}", target), harm, ("workspace", "workspace+network"), setup=_SETUP)
        for target, harm in _HARMS.items()
        for name, line in _TRICKS.items()
    ),
    *(
        Case(
            f"{name} {target}",
            (
                f"ln -sT $WORK/{target} l",
                Call("read_file", {"path": path.replace("{}", target)}),
                Call("write_file", {"path": path.replace("{}", target), "content": "x"}),
            ),
            harm,
            setup=_SETUP,
            has_control=False,
        )
        for target, harm in _HARMS.items()
        for name, path in _TOOLS.items()
    ),
]
