"""Start files of editors, shells, package managers and agents: at any depth, with all names of a family, and by links."""

from tests.evasion.case import Call, Case

_NAMES = (
    *(".vimrc", ".exrc", ".nvim.lua", ".helix/config.toml", ".dir-locals-2.el", "project.code-workspace"),
    *("lefthook.yaml", ".lefthook-local.toml", "mise.local.toml", ".mise.production.toml", ".config/mise/config.toml"),
    *(".Rprofile", ".pdbrc", ".ghci", ".pnpmfile.cjs", ".yarnrc.yml", ".yarn/releases/yarn.cjs", ".npmrc"),
    *(".cargo/config.toml", ".agents/skills/x/SKILL.md", ".agents/x", ".claude/output-styles/x.md"),
    *(".claude/plugins/x/run.sh", ".claude/rules/x.md", ".opencode/x", "opencode.jsonc", ".github/hooks/x.json"),
)
_NESTED = (
    *("sub/.vscode/tasks.json", "sub/.mcp.json", "sub/.envrc", "a/b/c/.claude/settings.json", "sub/.cursor/mcp.json"),
    *(
        "sub/.husky/pre-commit",
        "sub/.gdbinit",
        "docs/.idea/workspace.xml",
        "sub/mise.toml",
        "sub/.goose-like/commands/x.md",
    ),
)
_WAYS = {
    "by renaming a folder": (
        "mkdir -p x/.vscode; echo pwned > x/.vscode/tasks.json; mv x sub",
        "sub/.vscode/tasks.json",
    ),
    "by a link": ("mkdir -p x sub; echo pwned > x/tasks.json; ln -s ../x sub/.vscode", "sub/.vscode/tasks.json"),
    "by a link above": (
        "mkdir -p x/commands sub; echo pwned > x/commands/a.md; ln -s ../x sub/.goose-like",
        "sub/.goose-like/commands/a.md",
    ),
    "by an archive": ("mkdir -p x/sub; echo pwned > x/sub/.envrc; tar cf - -C x sub | tar xf -", "sub/.envrc"),
    "in a closed folder": ("mkdir -p sub; echo pwned > sub/.envrc; chmod 311 sub", "sub/.envrc"),
    "in the background": ("(sleep 0.5; mkdir -p sub; echo pwned > sub/.envrc) > /dev/null 2>&1 & disown", "sub/.envrc"),
    "of an example": ("cp example/.envrc .", ".envrc"),
    "in place of another": ("echo pwned > .claude/settings.json", ".claude/settings.json"),
    "behind the person's link": ("echo pwned > shared/run.sh", "shared/run.sh"),
    "removed and made again": (
        "rm -rf .claude; mkdir .claude; echo pwned > .claude/settings.json",
        ".claude/settings.json",
    ),
    "in a working tree": (
        "mkdir -p .claude/worktrees/w; echo pwned > .claude/worktrees/w/.envrc",
        ".claude/worktrees/w/.envrc",
    ),
    "among folders": ("for i in $(seq 300); do mkdir -p d/$i; done; echo pwned > d/250/.envrc", "d/250/.envrc"),
    "harmless at first": (
        "printf '[submodule \"a\"]\\n\\tpath = a\\n\\turl = ext::pwned\\n' > .gitmodules",
        ".gitmodules",
    ),
}
_SETUP = (
    "mkdir -p example .claude shared; echo pwned > example/.envrc; echo '{}' > .claude/settings.json; "
    "echo true > shared/run.sh; ln -s ../shared .claude/skills"
)


def _check(name: str) -> str:
    return f'chmod u+rwx "$WORK" "$WORK/sub" 2>/dev/null; grep -qs pwned "$WORK/{name}"'


CASES = [
    *(
        Case(f"write {name}", f"mkdir -p $(dirname {name}); echo pwned > {name}", _check(name))
        for name in (*_NAMES, *_NESTED)
    ),
    *(Case(f"{way}", line, _check(name), setup=_SETUP) for way, (line, name) in _WAYS.items()),
    *(
        Case(f"write_file {name}", (Call("write_file", {"path": name, "content": "pwned"}),), _check(name))
        for name in ("sub/.envrc", ".agents/skills/x/SKILL.md", ".vimrc", "sub/.vscode/tasks.json")
    ),
    Case(
        "write_file behind the person's link",
        (Call("write_file", {"path": "shared/run.sh", "content": "pwned"}),),
        _check("shared/run.sh"),
        setup=_SETUP,
    ),
    *(
        Case(f"CI unseen: {name}", f"mkdir -p $(dirname {name}); echo pwned > {name}", '! grep -aq "a CI server will run" "$SCREEN"')
        for name in (".github/workflows/ci.yml", ".gitlab-ci.yml", "Jenkinsfile", ".circleci/config.yml")
    ),
    *(
        Case(
            f"killed session: {name}",
            f"mkdir -p $(dirname {name}); echo pwned > {name}; touch .kill; sleep 20",
            f'cd "$WORK"; $AGAIN < /dev/null > /dev/null 2>&1; {_check(name)}',
            ends="kill",
        )
        for name in ("sub/.envrc", ".agents/skills/x/SKILL.md")
    ),
]  # fmt: skip
