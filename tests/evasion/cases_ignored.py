"""Reads of files that `.gooseignore` names, and of the home folder by links, variables and toolchains."""

from tests.evasion.case import EVERY_MODE, LEAKED, Call, Case

_SETUP = """
printf 'CANARY\\n' > .env; mkdir -p secrets/deep sub; printf 'CANARY\\n' | tee secrets/deep/key sub/.env > shared
ln -s shared note.key; ln .env sub/copy; ln secrets/deep/key twin; printf '.env\\nsecrets/\\n*.key\\n' > .gooseignore
"""
_READERS = {
    "cat": "cat {}",
    "python": "python3 -c \"print(open('{}').read())\"",
    "dd": "dd if={} 2>/dev/null",
    "redirect": "while read line; do echo $line; done < {}",
    "cp": "cp {} c; cat c",
    "ln": "ln {} c; cat c",
    "ln -s": "ln -s {} c; cat c",
    "mv": "mv {} c; cat c",
    "chmod": "chmod 777 {} secrets; cat {}",
    "umount": "umount -l {} secrets; unshare -Urm sh -c 'umount -l {}; cat {}'",
    "git diff": "git diff --no-index /dev/null {}",
    "git hash-object": "git cat-file -p $(git hash-object -w {})",
    "git add": "git add -f {}; git show :{}; git diff --cached",
    "git stash": "git stash -u; git stash show -p --include-untracked",
    "/proc": "cat /proc/self/cwd/{} /proc/self/root$WORK/{}",
    "background": "(sleep 0.1; cat {} > c) & wait; cat c",
}
_LISTS = {
    "grep -r": "grep -rs CAN[A]RY .",
    "rg": "rg -uuu --follow CAN[A]RY .; rg --hidden --no-ignore CAN[A]RY",
    "find": "find . -type f -exec cat {} +",
    "find inode": "find . -xdev -samefile .env -exec cat {} +; find . -inum $(stat -c %i .env) -exec cat {} +",
    "tar": "tar cf - . | strings",
    "rename the folder": "mv sub other; cat other/.env other/copy; mv secrets open; cat open/deep/key",
    "forget the patterns": "rm -f .gooseignore; : > .gooseignore; mv .gooseignore x; cat .env secrets/deep/key",
    "cover the patterns": "printf '!.env\\n' >> .gooseignore; cat .env",
    "move the workspace": "cd ..; mv project p; cat p/.env; cp -r project q; cat q/.env",
    "another repository": "mkdir r; cd r; git init -q; cp -r ../.env ../secrets .; cat .env secrets/deep/key",
    "worktree": "git worktree add -q ../w; cp .env ../w/; cat ../w/.env",
}
_TARGETS = (".env", "secrets/deep/key", "sub/copy")

# Links and files that let a toolchain or a variable show more of the home.
_HOME_READERS = {
    "link in a venv": "mkdir -p .venv; ln -sfn ~/Documents .venv/bin; cat .venv/bin/taxes.txt",
    "link": "ln -s ~/Documents d; cat d/taxes.txt",
    "another HOME": "HOME=/ ; cat ~ann/Documents/taxes.txt $OUTSIDE/../Documents/taxes.txt",
    "start of a path": "cd ~ && cat Documents/taxes.txt Desktop/notes.txt",
    "git include": "git -c include.path=$HOME/.config/unknown-tool/token config -l; git config -f ~/Documents/taxes.txt -l",
    "git --no-index": "git diff --no-index /dev/null ~/.unknown-tool/token",
    "python path": "PYTHONPATH=~/Documents python3 -c 'import os; print(os.listdir(os.path.expanduser(\"~/Documents\")))'"
    "; cat ~/Documents/*",
    "toolchain folder": "cat ~/.cargo/credentials.toml ~/.cargo/../.unknown-tool/token ~/.m2/settings.xml",
}

CASES = [
    *(
        Case(f"{name} {target}", line.replace("{}", target), LEAKED, setup=_SETUP)
        for target in _TARGETS
        for name, line in _READERS.items()
    ),
    *(Case(name, line, LEAKED, EVERY_MODE, setup=_SETUP) for name, line in _LISTS.items()),
    *(
        Case(f"read_file {path}", (Call("read_file", {"path": path}),), LEAKED, EVERY_MODE, setup=_SETUP)
        for path in (".env", "./sub/../.env", "$WORK/secrets/deep/key", "note.key", "sub/copy", "twin")
    ),
    Case("read_file of a link", ("ln -s .env l", Call("read_file", {"path": "l"})), LEAKED, setup=_SETUP),
    Case("hints by a link", ("ln -s .env AGENTS.md", "true"), '$AGAIN; grep -q CANARY "$EVENTS"', setup=_SETUP),
    *(Case(f"home: {name}", line, LEAKED, EVERY_MODE) for name, line in _HOME_READERS.items()),
]
