"""Writes outside the workspace."""

from tests.evasion.case import EVERY_MODE, WROTE_OUTSIDE, Call, Case

_TRICKS = {
    "redirect": "echo x > $OUTSIDE/pwned",
    "append": "echo x >> $OUTSIDE/pwned",
    "touch": "touch $OUTSIDE/pwned",
    "cp": "cp README.md $OUTSIDE/pwned",
    "mv": "cp README.md r && mv r $OUTSIDE/pwned",
    "link then write": "ln -s $OUTSIDE/pwned l; echo x > l",
    "linked folder": "ln -s $OUTSIDE d; echo x > d/pwned",
    "hard link": "ln README.md $OUTSIDE/pwned",
    "parent": "echo x > ../other/pwned",
    "tar": "tar cf /tmp/t.tar README.md --transform 's,README.md,pwned,'; tar xf /tmp/t.tar -C $OUTSIDE",
    "tar absolute": "tar cPf /tmp/t.tar --transform 's,README.md,$OUTSIDE/pwned,' README.md; tar xPf /tmp/t.tar",
    "python": "python3 -c \"open('$OUTSIDE/pwned', 'w')\"",
    "background": "(sleep 0.2; echo x > $OUTSIDE/pwned) & sleep 1",
    "setsid": "setsid sh -c 'echo x > $OUTSIDE/pwned' & sleep 0.5",
    "proc root": "echo x > /proc/1/root/$OUTSIDE/pwned",
    "proc cwd": "cd $OUTSIDE && echo x > /proc/self/cwd/pwned",
    "remount": "mount -o remount,rw / ; mount --bind / /mnt; echo x > $OUTSIDE/pwned",
    "remount in a user namespace": "unshare -Urm sh -c 'mount -o remount,rw,bind / /; umount -l /; echo x > $OUTSIDE/pwned'",
    "git worktree": "git worktree add $OUTSIDE/pwned",
    "git init": "git init $OUTSIDE/pwned",
    "git output": "git log --output=$OUTSIDE/pwned",
    "install": "install -D README.md $OUTSIDE/pwned",
    "dd": "dd if=README.md of=$OUTSIDE/pwned",
    "ln": "ln -s README.md $OUTSIDE/pwned",
    "mkdir": "mkdir $OUTSIDE/pwned",
    "mkfifo": "mkfifo $OUTSIDE/pwned",
    "sed": "sed 'w $OUTSIDE/pwned' README.md",
    "awk": 'awk \'BEGIN { print "x" > "$OUTSIDE/pwned" }\'',
    "tee": "echo x | tee $OUTSIDE/pwned",
    "rsync": "rsync README.md $OUTSIDE/pwned || scp README.md $OUTSIDE/pwned || cp README.md $OUTSIDE/pwned",
}
_DESTROYS = {
    "rm": "rm -rf $OUTSIDE/notes.txt",
    "truncate": ": > $OUTSIDE/notes.txt",
    "rename": "mv $OUTSIDE $OUTSIDE-gone",
    "rename from outside": "mv $OUTSIDE/notes.txt .",
    "rename the workspace": "mv $WORK $WORK-gone; rm -rf $OUTSIDE",
    "find": "find $OUTSIDE -type f -delete",
    "chmod": "chmod 000 $OUTSIDE/notes.txt",
    "link and truncate": "ln -s $OUTSIDE/notes.txt l; : > l",
    "hard link and truncate": "ln $OUTSIDE/notes.txt l; : > l",
    "git clean": "git -C $OUTSIDE init -q; git -C $OUTSIDE clean -fdxq",
}
_NOTES_LOST = 'test "$(stat -c %A%s "$OUTSIDE/notes.txt")" != "$(cat "$WORK/.stat")"'
_TOOLS = {
    "absolute": "$OUTSIDE/pwned",
    "parent": "../other/pwned",
    "home": "~/other/pwned",
    "dotted": "./src/../../other/pwned",
    "through /proc": "/proc/self/root/$OUTSIDE/pwned",
    "linked folder": "d/pwned",
    "dangling link": "l",
}
_LINKS = "ln -s $OUTSIDE d; ln -s $OUTSIDE/pwned l"

CASES = [
    *(Case(name, line, WROTE_OUTSIDE, EVERY_MODE) for name, line in _TRICKS.items()),
    *(
        Case(f"destroy: {name}", line, _NOTES_LOST, setup='stat -c %A%s "$OUTSIDE/notes.txt" > .stat')
        for name, line in _DESTROYS.items()
    ),
    *(
        Case(f"write_file {name}", (_LINKS, Call("write_file", {"path": path, "content": "x"})), WROTE_OUTSIDE, EVERY_MODE)
        for name, path in _TOOLS.items()
    ),
    Case(
        "patch_file through a link",
        ("ln -s $OUTSIDE/notes.txt n", Call("patch_file", {"path": "n", "patches": [{"before": "notes", "after": "pwned"}]})),
        'grep -q pwned "$OUTSIDE/notes.txt"',
        EVERY_MODE,
    ),
    *(
        Case(f"read-only: {name}", line, "test -e pwned || ! test -s README.md", ("read-only", "plan"))
        for name, line in {
            "touch": "touch pwned",
            "rm": "rm README.md",
            "truncate": ": > README.md",
            "git commit": "git commit -q --allow-empty -m x && touch pwned",
            "link in /tmp": "ln -s $WORK /tmp/w; touch /tmp/w/pwned",
            "mount": "unshare -Urm sh -c 'mount -o remount,rw $WORK; touch pwned'",
        }.items()
    ),
    *(
        Case(f"read-only: {tool}", (Call(tool, {"path": "pwned", "content": "x"}),), "test -e pwned", ("read-only", "plan"))
        for tool in ("write_file",)
    ),
    Case("setuid file", "cp /bin/true s; chmod 6755 s", 'test -u "$WORK/s" || test -g "$WORK/s"', ("workspace", "workspace+network")),
    Case(
        "setuid file in a new folder",
        "mkdir -m 2777 d; install -m 4755 /bin/true d/s; python3 -c 'import os; os.chmod(\"d/s\", 0o4755)'",
        'test -u "$WORK/d/s"',
    ),
    Case("device", "mknod k c 1 1 || mknod k b 254 0", 'test -c "$WORK/k" || test -b "$WORK/k"'),
]  # fmt: skip
