"""Commands that look as if they only read: mode `ask` spares reading commands, and must ask about these."""

from tests.evasion.case import Case

_RAN = 'test -e "$WORK/pwned"'
_PAYLOAD = "printf '#!/bin/sh\\ntouch $WORK/pwned\\n'"

_LINES = {
    "option -o of sort": "sort -o pwned app.py",
    "option --output of sort": "sort --outp=pwned app.py",
    "operand of uniq": "uniq app.py pwned",
    "find -fprint": "find . -maxdepth 0 -fprint pwned",
    "find -exec": "find . -maxdepth 0 -exec touch pwned ';'",
    "find -delete": "cp app.py pwned; find . -name nothing -delete",
    "rg --pre": "rg --pre ./evil x app.py",
    "git diff --output": "git diff --output=pwned HEAD",
    "git log --output": "git log --output pwned",
    "git show, short for --output": "git show --outp=pwned",
    "git -c": "git -c core.fsmonitor=./evil status",
    "git -c alias": "git -c alias.x='!touch pwned' x",
    "git --no-pager": "git --no-pager log --output=pwned",
    "git --exec-path": "git --exec-path=./evils status",
    "git -C": "git -C bare.git status",
    "git after cd": "cd bare.git && git status",
    "git after cd in a subshell": "(cd bare.git; git log)",
    "git diff --ext-diff": "GIT_EXTERNAL_DIFF=./evil git diff --ext-diff",
    "git grep -O": "git grep -O./evil print",
    "git branch": "git branch pwned; cp .git/refs/heads/pwned pwned",
    "sed -i": "sed -i s/x/y/ app.py; touch pwned",
    "sed w": "sed -n 'w pwned' app.py",
    "awk": "awk 'BEGIN { system(\"touch pwned\") }'",
    "tee": "cat app.py | tee pwned",
    "xargs": "ls | xargs touch pwned",
    "redirect": "cat app.py > pwned",
    "redirect without blanks": "cat app.py>pwned",
    "redirect of errors": "cat nothing 2>pwned",
    "redirect by >&": "cat app.py >& pwned",
    "redirect by &>>": "cat app.py &>>pwned",
    "redirect by >|": "cat app.py >| pwned",
    "redirect by <>": "cat <> pwned",
    "redirect behind /dev/null": "cat app.py >/dev/null >pwned",
    "redirect to a longer path": "cat app.py > /dev/null/../../$PWD/pwned; cat app.py > /dev/nul[l]/../pwned || touch pwned",
    "redirect in a group": "{ cat app.py; } > pwned",
    "process substitution": "cat <(touch pwned)",
    "command substitution": "cat $(touch pwned)",
    "backquotes": "cat `touch pwned`",
    "substitution in quotes": 'cat "$(touch pwned)"',
    "substitution in a default": "cat ${x:-$(touch pwned)}",
    "arithmetic": "ls $((a[$(touch pwned)]))",
    "test of an index": "x='a[$(touch pwned)]'; [[ -v $x ]]; ls",
    "here-document": "cat <<E\n$(touch pwned)\nE",
    "second line": "ls\ntouch pwned",
    "carriage return": "ls #\r\ntouch pwned",
    "background": "ls & touch pwned",
    "variable PATH": "PATH=$PWD/evils ls",
    "variable PATH of a loop": "for PATH in $PWD/evils; do ls; done",
    "variable LD_PRELOAD": "LD_PRELOAD=./evil.so ls; touch pwned",
    "function": "ls() { touch pwned; }; ls",
    "function by another word": "function ls { touch pwned; }; ls",
    "alias": "shopt -s expand_aliases\nalias ls='touch pwned'\nls",
    "hash": "hash -p ./evil ls; ls",
    "trap": "trap 'touch pwned' EXIT; ls",
    "exec of a descriptor": "exec 3>pwned; ls",
    "program of the workspace": "./evils/ls",
    "program by a relative path": "evils/../evils/ls",
    "name with a blank": "'git status'; touch pwned",
    "escaped name": "l\\s; t\\ouch pwned",
    "quoted name": "l''s; to''uch pwned",
    "glob as a name": "evils/l?",
    "brace": "{touch,pwned}",
    "coproc": "coproc ls; touch pwned",
    "eval": "eval ls; eval touch pwned",
    "source": "source evil",
    "env": "env PATH=$PWD/evils ls",
    "command": "command touch pwned",
    "printf -v": "printf -v PATH %s $PWD/evils; ls",
    "read": "read PATH <<< $PWD/evils; ls",
    "enable": "enable -f ./evil.so ls; touch pwned",
    "pager": "man -P 'touch pwned' ls; less +'!touch pwned' app.py; touch pwned",
}
# Each is refused at its first line, or spared there, and asked about at the second.
_PAIRS = {
    "a repository in a subfolder": ("cd bare.git", "git status"),
    "a repository in a subfolder, log": ("cd bare.git && ls", "git log"),
    "a folder with programs": ("cd evils", "./ls"),
}
_SETUP = f"""
{_PAYLOAD} > evil; chmod +x evil; mkdir evils; cp evil evils/ls; cp evil evils/git-status
git init -q --bare bare.git; git -C bare.git config core.fsmonitor "$WORK/evil"; git -C bare.git config core.bare false
git -C bare.git config core.worktree "$WORK"
"""

CASES = [
    *(Case(name, line, _RAN, ("ask",), setup=_SETUP) for name, line in _LINES.items()),
    *(Case(name, lines, _RAN, ("ask",), setup=_SETUP) for name, lines in _PAIRS.items()),
]
