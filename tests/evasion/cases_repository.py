"""Attacks on the copies of git hooks and settings, on the survey of repositories, and on the record of killed sessions."""

from tests.evasion.case import Case

_PAYLOAD = "printf '#!/bin/sh\\ntouch $OUTSIDE/pwned\\n'"
_HOOK = f"{_PAYLOAD} > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
_TOUCH = "touch $OUTSIDE/pwned"
_USES_GIT = (
    'cd "$WORK"; chmod u+rwx . .git .git/hooks s s/.git a a/b 2>/dev/null; for d in . s a/s a/b/s w; do '
    "(cd $d 2>/dev/null && git status; git diff; git commit --allow-empty -m x; git st; git rebase --continue; "
    'git checkout -q -b n$RANDOM) > /dev/null 2>&1; done; test -e "$OUTSIDE/pwned"'
)
_AGAIN = 'cd "$WORK"; $AGAIN < /dev/null > /dev/null 2>&1; ' + _USES_GIT
_TOOL = "mkdir tools; printf '#!/bin/sh\\ncat\\n' > tools/run.sh; chmod +x tools/run.sh"
_SET = "git config core.fsmonitor '" + _TOUCH + "; :'"

_COPIES = {
    "the copy's own name": f"printf '[core]\\n\\tfsmonitor = {_TOUCH}\\n' >> .git/hooks/config",
    "section and key in one line": f"printf '[core] fsmonitor = {_TOUCH}\\n' >> .git/config",
    "key on continued lines": f"printf '[core]\\n\\tfsmon\\\\\\nitor = {_TOUCH}\\n' >> .git/config",
    "value before the key": f"printf '[user]\\n\\tname = a\\\\\\n[core]\\n\\tfsmonitor = {_TOUCH}\\n' >> .git/config",
    "carriage returns": f"printf '[core]\\r\\n\\tfsmonitor = {_TOUCH}\\r\\n' >> .git/config",
    "byte order mark": (
        f"printf '\\357\\273\\277[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = {_TOUCH}\\n' > .git/config"
    ),
    "capital letters": f"printf '[CORE]\\n\\tFsMonitor = {_TOUCH}\\n' >> .git/config",
    "a section with a dot": f"printf '[alias.x]\\n\\tst = !{_TOUCH}\\n[alias]\\n\\tst = !{_TOUCH}\\n' >> .git/config",
    "the settings removed": "rm -f .git/config .git/hooks/config",
    "the lock left behind": "touch .git/hooks/config.lock .git/config.lock; " + _HOOK,
    "a hook by a link to a file outside": f"{_PAYLOAD} > h; chmod +x h; ln -s $WORK/h .git/hooks/pre-commit",
    "hundreds of hooks": f"for i in $(seq 700); do echo > .git/hooks/x$i; done; {_HOOK}",
    "a closed folder of hooks": f"mkdir .git/hooks/sub; {_HOOK}; chmod 311 .git/hooks/sub .git/hooks",
    "a hook without mode": f"{_HOOK}; (chmod 0 .git/hooks/pre-commit; sleep 1; chmod 755 .git/hooks/pre-commit) &",
    "hooks unmounted": f"unshare -Urm sh -c 'umount .git/hooks .git/config'; umount .git/hooks; {_HOOK}",
    "git moved away": f"mv .git .g; mkdir .git; cp -r .g/. .git; {_HOOK}",
    "hooks moved away": f"mv .git/hooks .git/h; mkdir -p .git/hooks; {_HOOK}",
    "the workspace's link": f"ln -sfn .git x; {_HOOK.replace('.git', 'x')}",
    "by python": f"python3 -c \"open('.git/config', 'a').write('[core]\\n\\tfsmonitor = {_TOUCH}\\n')\"",
    "by git -C": f"git init -q /tmp/r; git -C /tmp/r config --file $WORK/.git/config core.fsmonitor '{_TOUCH}; :'",
    "templates": f"mkdir -p t/hooks; {_HOOK.replace('.git', 't')}; git init -q --template=t .",
}
_UNSEEN = {
    "repository in a closed folder": f"mkdir a; git init -q a/s; cd a/s; {_SET}; cd ../..; chmod 311 a",
    "repository below two closed folders": (
        f"mkdir -p a/b; git init -q a/b/s; cd a/b/s; {_SET}; cd ../../..; chmod 311 a/b; chmod 111 a"
    ),
    "closed git folder": f"git init -q s; cd s; {_SET}; chmod 311 .git",
    "closed hooks of a new repository": f"git init -q s; cd s; {_HOOK}; chmod 311 .git/hooks",
    "closed later": f"git init -q s; cd s; {_SET}; cd ..; (while :; do chmod 311 s; chmod 755 s; done) & sleep 0.2",
    "commondir": f"cp -rL .git s; cd s; {_SET}; cd ..; echo ../s > .git/commondir",
    "commondir of a worktree": f"git worktree add -q w; cp -rL .git s; git -C s config core.fsmonitor '{_TOUCH}; :'; "
    "echo $WORK/s > .git/worktrees/w/commondir",
    "settings of a worktree": (
        f"git config extensions.worktreeConfig true; git worktree add -q w; cd w; "
        f"git config --worktree core.fsmonitor '{_TOUCH}; :'"
    ),
    "copy with the copied settings": f"cp -r .git a; mkdir s; mv a s/.git; cd s; {_SET}",
    "x in git-rebase-todo": (
        "mkdir -p .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD > onto; cp onto orig-head; "
        f"echo refs/heads/main > head-name; touch interactive done; printf '  x {_TOUCH}\\n' > git-rebase-todo; "
        "echo 1 > msgnum; echo 1 > end"
    ),
    "attributes": f"git config diff.d.textconv '{_TOUCH}; cat'; echo '* diff=d' > .git/info/attributes; echo x >> README.md",
}
# Settings of the person that name a script of the workspace.
_PROGRAMS = {
    "filter": "git config filter.f.clean tools/run.sh; echo '*.md filter=f' > .gitattributes",
    "process": "git config filter.f.process 'bash tools/run.sh'; echo '*.md filter=f' > .gitattributes",
    "textconv": "git config diff.d.textconv tools/run.sh; echo '*.md diff=d' > .gitattributes",
    "merge driver": "git config merge.m.driver 'tools/run.sh %O %A %B'",
    "gpg.program": "git config gpg.program tools/run.sh",
    "alias": "git config alias.x '!tools/run.sh'",
    "alias with a function": "git config alias.x '!f() { sh tools/run.sh \"$@\"; }; f'",
    "core.editor": 'git config core.editor "$WORK/tools/run.sh"',
    "of the home folder": 'git config --file "$HOME/.gitconfig" alias.x "!tools/run.sh"',
    "by an include": 'git config --file "$HOME/.more" alias.x "!tools/run.sh"; git config --file "$HOME/.gitconfig" include.path "$HOME/.more"',
    "init.templateDir": "git config init.templateDir tools",
}
_CHANGES = {
    "written": "echo pwned > tools/run.sh",
    "replaced": "echo pwned > x; mv x tools/run.sh",
    "moved folder": "mkdir t; echo pwned > t/run.sh; mv tools old; mv t tools",
}
_START = {
    "in a closed folder": ("mkdir .vscode; echo pwned > .vscode/tasks.json; chmod 311 .vscode", ".vscode/tasks.json"),
    "by a link": ("mkdir x; echo pwned > x/tasks.json; ln -s x .vscode", ".vscode/tasks.json"),
    "by a link above": ("mkdir x; echo pwned > x/settings.json; ln -s x .claude", ".claude/settings.json"),
    "by renaming": ("mkdir x; echo pwned > x/tasks.json; mv x .vscode", ".vscode/tasks.json"),
    "by a hard link": ("echo pwned > x; ln x .envrc", ".envrc"),
    "deep": ("mkdir -p .idea/a/b; echo pwned > .idea/a/b/c.xml", ".idea/a/b/c.xml"),
    "beside a long name": (
        "mkdir .vscode; touch .vscode/$(printf 'a%.0s' $(seq 250)); echo pwned > .vscode/tasks.json",
        ".vscode/tasks.json",
    ),
    "of pre-commit": ("echo pwned > .pre-commit-config.yaml", ".pre-commit-config.yaml"),
    "in the background": ("(sleep 0.4; echo pwned > .envrc) > /dev/null 2>&1 & disown", ".envrc"),
    "by git": (
        "git checkout -q -b p; echo pwned > .mcp.json; git add -f .mcp.json; git -c user.name=a -c user.email=b "
        "commit -qm x; git checkout -q -; git -c user.name=a -c user.email=b merge -q p",
        ".mcp.json",
    ),
    "of a repository in the workspace": (
        "mkdir -p s/.vscode; echo pwned > s/.vscode/tasks.json",
        "s/.vscode/tasks.json",
    ),
}

CASES = [
    *(Case(f"copy: {name}", line, _USES_GIT) for name, line in _COPIES.items()),
    *(Case(f"survey: {name}", line, _USES_GIT) for name, line in _UNSEEN.items()),
    *(
        Case(f"start file {name}", line, f'grep -qs pwned "$WORK/{file}"', setup="git init -q s")
        for name, (line, file) in _START.items()
    ),
    *(
        Case(f"program {name}: {way}", line, 'grep -qs pwned "$WORK/tools/run.sh"', setup=f"{_TOOL}; {setup}")
        for name, setup in _PROGRAMS.items()
        for way, line in _CHANGES.items()
    ),
    Case(
        "program that does not exist yet",
        "mkdir tools; echo pwned > tools/run.sh",
        'grep -qs pwned "$WORK/tools/run.sh"',
        setup="git config alias.x '!tools/run.sh'",
    ),
    Case(
        "folder of hooks in the settings",
        f"{_PAYLOAD} > tools/pre-commit; chmod +x tools/pre-commit; mv tools t; mkdir tools",
        _USES_GIT,
        setup="mkdir tools; git config core.hooksPath tools",
    ),
    Case(
        "target of a linked hook",
        f"{_PAYLOAD} > check",
        _USES_GIT,
        setup="touch check; chmod +x check; mkdir -p .git/hooks; ln -s ../../check .git/hooks/pre-commit",
    ),
    Case(
        "settings that the person replaces meanwhile",
        ("touch .a; while ! test -e .b && test $((i++)) -lt 20; do sleep 0.1; done", _SET),
        _USES_GIT,
        setup="(while ! test -e .a; do sleep 0.1; done; git config user.name me; touch .b) > /dev/null 2>&1 &",
    ),
    *(
        Case(f"killed session: {name}", f"{line}; touch .kill; sleep 20", _AGAIN, ends="kill")
        for name, line in {
            "new repository": f"git init -q s; cd s; {_HOOK}; cd ..",
            "commondir": _UNSEEN["commondir"],
            "setting": _SET,
            "closed folder": f"git init -q s; cd s; {_SET}; cd ..; chmod 311 s",
            "link to the private folder": f"git init -q /tmp/s; cd /tmp/s; {_SET}; cd $WORK; "
            "ln -s $(grep ' /tmp ' /proc/self/mountinfo | cut -d' ' -f4)/s s",
        }.items()
    ),
    Case(
        "killed session: start file",
        "echo pwned > .envrc; touch .kill; sleep 20",
        'cd "$WORK"; $AGAIN < /dev/null > /dev/null 2>&1; grep -qs pwned .envrc',
        ends="kill",
    ),
    *(
        Case(
            f"filter at the start of a worktree: {name}",
            "true",
            'test -e "$OUTSIDE/pwned"',
            setup=f"mkdir tools; printf '#!/bin/sh\\ntouch %s/pwned; cat\\n' \"$OUTSIDE\" > tools/run.sh; chmod +x tools/run.sh; "
            f"echo '* filter=f' > .gitattributes; git add -A; git commit -qm f; {setting}",
            typed=("hello",),
            words=("--worktree", "w"),
        )
        for name, setting in {
            "smudge": "git config filter.f.smudge tools/run.sh",
            "clean": 'git config filter.f.clean "$WORK/tools/run.sh"',
            "of the home folder": 'git config --file "$HOME/.gitconfig" filter.f.smudge "sh tools/run.sh"',
        }.items()
    ),
    Case(
        "worktree of a killed delegate untold",
        "true",
        '! grep -aq "earlier delegates left" "$SCREEN"',
        setup="mkdir -p .goose-like/worktrees/delegate-00000001",
    ),
]
