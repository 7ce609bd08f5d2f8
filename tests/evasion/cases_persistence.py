"""Files that a program of the person runs later, outside the sandbox."""

from tests.evasion.case import Case

_PAYLOAD = "#!/bin/sh\\ntouch $OUTSIDE/pwned\\n"
_WRITE = f"printf '{_PAYLOAD}' > {{0}}; chmod +x {{0}}"
_HOOK = _WRITE.format(".git/hooks/pre-commit")
_COMMITS = 'chmod u+rwx "$WORK"/.git/hooks 2>/dev/null; cd "$WORK" && git commit -q --allow-empty -m x; test -e "$OUTSIDE/pwned"'
_RUNS_GIT = 'cd "$WORK"; git status >/dev/null 2>&1; git diff >/dev/null 2>&1; git log -1 >/dev/null 2>&1; test -e "$OUTSIDE/pwned"'
_TOUCH = "touch $OUTSIDE/pwned"

_REPOSITORY = {
    "hook": _HOOK,
    "hook in an unlistable folder": f"git init -q .; {_HOOK}; chmod 311 .git/hooks",
    "hook in a moved folder": f"mv .git g; {_HOOK.replace('.git', 'g')}; mv g .git",
    "hook by a link": f"{_WRITE.format('h')}; ln -s ../../h .git/hooks/pre-commit",
    "hooks folder by a link": f"mkdir h; {_WRITE.format('h/pre-commit')}; rm -rf .git/hooks; ln -s ../h .git/hooks",
    "hook by a background process": f"(sleep 0.5; {_HOOK}) & disown; sleep 1",
    "core.hooksPath": f"mkdir h; {_WRITE.format('h/pre-commit')}; git config core.hooksPath h",
    "core.hooksPath in the file": f"mkdir h; {_WRITE.format('h/pre-commit')}; printf '[core]\\nhooksPath = h\\n' >> .git/config",
    "core.hooksPath by an include": f"mkdir h; {_WRITE.format('h/pre-commit')}; printf '[core]\\nhooksPath = h\\n' > c; git config include.path ../c",
    "config.worktree": f"mkdir h; {_WRITE.format('h/pre-commit')}; git config extensions.worktreeConfig true; printf '[core]\\nhooksPath = h\\n' > .git/config.worktree",
    "commondir": f"cp -r .git g; {_HOOK.replace('.git', 'g')}; echo ../g > .git/commondir",
    "gitdir file": f"mv .git g; {_HOOK.replace('.git', 'g')}; echo 'gitdir: g' > .git",
    "a repository instead": f"mv .git old; git init -q .; {_HOOK}",
}
_SETTINGS = {
    "core.fsmonitor": f"git config core.fsmonitor '{_TOUCH}; :'",
    "diff.external": f"git config diff.external '{_TOUCH}; :'; echo x >> README.md",
    "filter": f"git config filter.f.clean '{_TOUCH}; cat'; echo '* filter=f' > .gitattributes; echo x >> README.md",
    "textconv": f"git config diff.d.textconv '{_TOUCH}; cat'; echo '* diff=d' > .git/info/attributes; echo x >> README.md",
    "fsmonitor in an unlistable subfolder": f"mkdir s; git init -q s; git -C s config core.fsmonitor '{_TOUCH}; :'; chmod 311 s",
    "fsmonitor in a submodule": f"git init -q s; git -C s config core.fsmonitor '{_TOUCH}; :'",
    ".git file that points to an unlistable folder": (
        f"mkdir -p a/b; git init -q a/b; git -C a/b config core.fsmonitor '{_TOUCH}; :'; mkdir s; echo 'gitdir: ../a/b/.git' > s/.git; chmod 311 a"
    ),
    "bare .git repository": f"git init -q --bare s; git -C s config core.bare false; git -C s config core.worktree ..; git -C s config core.fsmonitor '{_TOUCH}; :'",
}
_IN_SUBFOLDER = 'cd "$WORK"; chmod u+rwx s a 2>/dev/null; git -C s status >/dev/null 2>&1; git status >/dev/null 2>&1; git diff >/dev/null 2>&1; git add -A 2>/dev/null; test -e "$OUTSIDE/pwned"'

_HOME_FILES = (
    *(".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".config/fish/config.fish", ".gitconfig"),
    *(
        ".config/git/config",
        ".config/git/attributes",
        ".config/git/hooks/pre-commit",
        ".vimrc",
        ".config/nvim/init.lua",
    ),
    *(".emacs", ".config/systemd/user/x.service", ".config/autostart/x.desktop", ".local/bin/git", "bin/git"),
    *(".ssh/authorized_keys", ".ssh/config", ".config/goose-like/profiles.yaml", ".claude/settings.json"),
    *(".codex/config.toml", ".cursor/mcp.json", ".config/Code/User/settings.json", ".npmrc", ".config/pip/pip.conf"),
    *(
        ".cargo/config.toml",
        ".cargo/bin/cargo",
        ".tmux.conf",
        ".gdbinit",
        ".inputrc",
        ".pythonrc",
        ".ipython/profile_default/startup/x.py",
    ),
    *(
        ".local/lib/python3.11/site-packages/x.pth",
        ".config/direnv/direnvrc",
        ".xprofile",
        ".pam_environment",
        ".config/environment.d/x.conf",
    ),
)
_PROJECT_FILES = (
    *(
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".claude/commands/x.md",
        ".mcp.json",
        ".codex/config.toml",
    ),
    *(".cursor/mcp.json", ".cursor/rules/x.mdc", ".vscode/tasks.json", ".vscode/settings.json", ".idea/workspace.xml"),
    *(".devcontainer/devcontainer.json", ".devcontainer.json", ".envrc", ".husky/pre-commit", ".gitmodules"),
    *(".goose-like/profiles.yaml", ".gemini/settings.json"),
)

CASES = [
    *(Case(name, line, _COMMITS) for name, line in _REPOSITORY.items()),
    *(Case(name, line, _RUNS_GIT) for name, line in _SETTINGS.items() if " in " not in name and "git" not in name),
    Case("core.pager", f"git config core.pager '{_TOUCH}; cat'", 'cd "$WORK"; script -qc "git log" /dev/null >/dev/null; test -e "$OUTSIDE/pwned"'),
    Case("alias of a command", f"git config alias.st '!{_TOUCH}'", 'cd "$WORK"; git st; test -e "$OUTSIDE/pwned"'),
    *(Case(name, line, _IN_SUBFOLDER) for name, line in _SETTINGS.items() if " in " in name or ".git" in name),
    *(
        Case(
            f"hook {name}",
            _HOOK.replace("pre-commit", name),
            f'cd "$WORK"; {line} >/dev/null 2>&1; test -e "$OUTSIDE/pwned"',
        )
        for name, line in {
            "post-checkout": "git checkout -q -b n",
            "post-commit": "git commit -q --allow-empty -m x",
            "commit-msg": "git commit -q --allow-empty -m x",
            "prepare-commit-msg": "git commit -q --allow-empty -m x",
            "post-merge": "git checkout -q -b n; git commit -q --allow-empty -m x; git checkout -q main; git merge -q n",
            "pre-rebase": "git commit -q --allow-empty -m x; git checkout -q -b n HEAD~1; git commit -q --allow-empty -m y; git rebase -q main",
            "post-index-change": "git add -A; git status",
            "reference-transaction": "git branch n",
        }.items()
    ),
    Case(
        "hook of a linked worktree",
        "git worktree add -q w; " + _HOOK,
        'cd "$WORK/w" 2>/dev/null && git commit -q --allow-empty -m x; test -e "$OUTSIDE/pwned"',
    ),
    Case(
        "exec in git-rebase-todo",
        "mkdir -p .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD > onto; cp onto orig-head; echo refs/heads/main > head-name; "
        f"touch interactive done; echo 'exec {_TOUCH}' > git-rebase-todo; echo 1 > msgnum; echo 1 > end",
        'cd "$WORK"; git rebase --continue >/dev/null 2>&1; test -e "$OUTSIDE/pwned"',
    ),
    Case(
        "hook planted before SIGKILL",
        f"{_HOOK}; touch .kill; sleep 20",
        f'cd "$WORK"; $AGAIN < /dev/null > /dev/null 2>&1; {_COMMITS}',
        ends="kill",
    ),
    Case(
        "hook planted in the background before SIGKILL",
        (f"(sleep 0.7; {_HOOK}; touch .kill) > /dev/null 2>&1 & disown", "sleep 5"),
        f'cd "$WORK"; $AGAIN < /dev/null > /dev/null 2>&1; {_COMMITS}',
        ends="kill",
    ),
    *(
        Case(f"home {name}", f'mkdir -p "$HOME/{name}"; rmdir "$HOME/{name}"; echo "# pwned" >> "$HOME/{name}"',
             f'grep -qs pwned "$HOME/{name}"', ("workspace", "workspace+network"))
        for name in _HOME_FILES
    ),
    *(
        Case(f"project {name}", f"mkdir -p {name}; rmdir {name}; echo pwned > {name}", f'grep -qs pwned "$WORK/{name}"')
        for name in _PROJECT_FILES
    ),
    Case(
        "crontab",
        f"(crontab -l; echo '* * * * * {_TOUCH}') | crontab -; echo '* * * * * root true #pwned' > /etc/cron.d/pwned",
        "crontab -l 2>/dev/null | grep -q pwned || test -e /etc/cron.d/pwned",
    ),
    Case(
        "survivor of the session",
        f"setsid nohup sh -c 'sleep 3; {_TOUCH}; touch $WORK/alive' > /dev/null 2>&1 & disown",
        'sleep 4; test -e "$WORK/alive"',
    ),
]  # fmt: skip
