"""Restrictions that a resumed session forgets."""

from tests.evasion.case import Call, Case, Mode

_SCRIPT = "$HOME/next.yaml"
_WRITE_SCRIPT = (
    "for i in 1 2 3 4 5 6; do echo '- calls: [{tool: shell, arguments: {command: touch pwned}}, "
    "{tool: write_file, arguments: {path: pwned2, content: x}}]'; done > \"" + _SCRIPT + '"'
)
_GOOSE = "$PYTHON -m goose_like"
_MODEL = f'--model "scripted:{_SCRIPT}"'
_EVENTS = "$HOME/.local/state/goose-like/sessions/*/events.jsonl"
_WROTE = 'test -e "$WORK/pwned" || test -e "$WORK/pwned2"'
_STRICT: tuple[Mode, ...] = ("read-only", "plan", "ask")

_RESUMES = {
    "run --resume": f"{_GOOSE} run --resume {_MODEL} next",
    "run --resume with a profile": f"{_GOOSE} run --resume --profile default {_MODEL} next",
    "run --resume on a terminal": f"yes n | script -qec '{_GOOSE} run --resume {_MODEL} next' /dev/null",
    "fork": f"{_GOOSE} session fork; {_GOOSE} run --resume {_MODEL} next",
}

CASES = [
    *(
        Case(name, "true", f"{_WRITE_SCRIPT}; {{ {line}; }} < /dev/null > /dev/null 2>&1; {_WROTE}", _STRICT)
        for name, line in _RESUMES.items()
    ),
    Case(
        "run --resume after SIGKILL",
        "sleep 30",
        f"{_WRITE_SCRIPT}; {{ {_RESUMES['run --resume']}; }} < /dev/null > /dev/null 2>&1; {_WROTE}",
        ("read-only", "plan"),
        setup=f"(until grep -qs tool_call {_EVENTS}; do sleep 0.2; done; touch .kill) > /dev/null 2>&1 &",
        ends="kill",
    ),
    Case(
        "a process of an earlier turn during /review, untold",
        (Call("process", {"action": "start", "command": "sleep 60; touch pwned"}),),
        '! grep -aq "processes of earlier turns still run" "$SCREEN"',
        setup="echo x >> app.py",
        typed=("hello", "/review"),
    ),
]  # fmt: skip
