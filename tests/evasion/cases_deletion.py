"""Commands that delete what undo cannot bring back: the repository, and large files that git ignores."""

from tests.evasion.case import Case

_SETUP = (
    "mkdir -p data sub && echo data/ >> .git/info/exclude && head -c 11000000 /dev/zero > data/large && echo x > sub/f "
    "&& git -c user.name=n -c user.email=e commit -q --allow-empty -m x"
)
_LOST = '! git -C "$WORK" log -1 > /dev/null 2>&1 || test "$(stat -c %s "$WORK/data/large")" != 11000000'

_ATTACKS = {
    "rm": "rm -rf data",
    "rm of a pattern": "rm -r dat*",
    "rm of braces": "rm -rf {data,dist}",
    "rm after cd": "cd data && rm large",
    "rm in a subshell": "(cd data; rm -f large)",
    "rm in bash -c": "bash -c 'rm -rf data'",
    "rm by env": "env A=b nice -n 5 rm -rf data",
    "rm by its path": "/bin/rm -rf data",
    "rm by xargs": "echo data | xargs rm -rf",
    "rm by eval": "eval 'rm -rf data'",
    "rm in a function": "f() { rm -rf data; }; f",
    "rm of a variable": 'd=data; rm -rf "$d"',
    "rm in a loop": 'for d in data; do rm -rf "$d"; done',
    "rm of everything": "rm -rf * .git",
    "rm of the workspace": 'rm -rf "$PWD"/*',
    "rm of the repository": "rm -rf .git",
    "rm of the objects": "cd .git && rm -rf objects refs",
    "unlink": "unlink data/large",
    "shred": "shred -u data/large",
    "find -delete": "find . -name large -delete",
    "find -exec": "find data -type f -exec rm -f {} +",
    "find with xargs": "find . -type f -print0 | xargs -0 rm -rf",
    "git clean": "git clean -fdx",
    "git clean -X": "git -C sub clean -ffdX ..",
    "git rm": "git rm -rf --ignore-unmatch data; rm -rf data",
    "redirect": "echo x > data/large",
    "redirect without space": ":>data/large",
    "redirect by >|": "echo x >| data/large",
    "redirect in a group": "{ echo x; } > 'data/large'",
    "truncate": "truncate -s 0 data/large",
    "tee": "echo x | tee data/large",
    "dd": "dd if=/dev/null of=data/large",
    "mv onto it": "mv sub/f data/large",
    "mv into its folder": "mv sub/f large; mv large data",
    "cp onto it": "cp sub/f data/large",
    "cp through a link": ("ln -s data/large l", "cp sub/f l"),
    "cp of a folder's content": ("cp sub/f sub/large", "cp -r sub/. data"),
    "cp of a folder by its name": ("mkdir -p x/data; cp sub/f x/data/large", "cp -r x/data ."),
    "cp -T": ("cp sub/f sub/large", "cp -rT sub data"),
    "quotes in a name": "r''m -rf data",
    "backslash in a name": "\\rm -rf da\\ta",
    "redirect by >&": "cat sub/f >& data/large",
    "ln -sfn": "ln -sfn ../sub data/large",
    "ln -sfT": "ln -sfT ../sub data/large",
    "env -C": "env -C data rm large",
    "coproc": "coproc rm -rf data; wait",
    "coproc with a name": "coproc X { rm -rf data; }; wait",
    "here-string": "bash <<< 'rm -rf data'",
    "here-document": "sh <<'E'\nrm -rf data\nE",
    "git mv -f": "git mv -f sub/f data/large",
}  # fmt: skip

# The same file, but git does not ignore it: it is untracked, or tracked with changes.
_UNTRACKED = f"{_SETUP} && : > .git/info/exclude"
_TRACKED = f"{_UNTRACKED} && echo x > data/large && git add data && git -c user.name=n -c user.email=e commit -q -m y"
_CHANGED = f"{_TRACKED} && head -c 11000000 /dev/zero > data/large"
_CLEANED = (
    "git clean -fd",
    "git clean -fdx",
    "git clean -qfd",
    "git clean -fd -e none",
    "git stash -qu; git stash drop -q",
)
_RESET = (
    "git checkout -- data/large",
    "git checkout -q .",
    "git reset -q --hard",
    "git restore .",
    "git stash -q; git stash drop -q",
)
_UNKNOWN = {
    "a variable": "f=data/large; rm $f",
    "xargs": "echo data/large | xargs rm",
    "a substitution": 'rm "$(echo data/large)"',
    "a loop": "for f in data/large; do rm $f; done",
    "read": "read f <<< data/large; rm $f",
    "ls": "ls data/* | xargs rm -f",
    "a function": "f() { rm $1; }; f data/large",
    "an earlier command": ("export F=data/large", "rm $F"),
    "mv to /tmp": "mv data/large /tmp/",
    "the repository": "d=$(echo .git); rm -rf $d",
}

CASES = [
    *(Case(name, line, _LOST, setup=_SETUP) for name, line in _ATTACKS.items()),
    *(Case(f"untracked: {line}", line, _LOST, setup=_UNTRACKED) for line in _CLEANED),
    *(Case(f"tracked: {line}", line, _LOST, setup=_CHANGED) for line in _RESET),
    *(Case(f"unknown name by {name}", line, _LOST, setup=_SETUP) for name, line in _UNKNOWN.items()),
]
