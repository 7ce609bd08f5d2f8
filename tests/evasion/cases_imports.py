"""Session files of somebody else, which choose how the session goes on after `session import`."""

import json
from shlex import quote
from typing import Any

from tests.evasion.case import Case

# The person's own model tries what only other modes allow. The model that a file chooses leaves a trace of its own.
# The messages of the imported session count as the first steps. After a failed edit, later ones of a message do not run.
_OWN_SCRIPT = """
- calls:
  - {tool: write_file, arguments: {path: here, content: x}}
  - {tool: shell, arguments: {command: touch "$OUTSIDE/pwned", access: network}}
  - {tool: write_file, arguments: {path: "$OUTSIDE/pwned", content: x}}
"""
_EVIL_SCRIPT = "\n- calls: [{tool: shell, arguments: {command: touch pwned}}]"
_PROFILES = "default: {extends: default, processor: 'scripted:$HOME/own.yaml'}"

# Arguments: what to change in each event of a type, and events to append.
_EDIT = """
import json, os, sys
changed, appended = json.loads(os.path.expandvars(sys.argv[1]))
archive = json.load(open("x.json"))
for event in archive["events"]:
    event.update(changed.get(event["type"], {}))
archive["events"] += [{**event, "at": archive["events"][0]["at"]} for event in appended]
json.dump(archive, open("x.json", "w"))
"""
_FAILED = "{ echo the case went wrong; exit 0; }"
_HARM = rf"""
mkdir -p "$HOME/.config/goose-like" "$OUTSIDE/.goose-like/worktrees/x"
touch "$OUTSIDE/.goose-like/worktrees/x/.git"
rm -f "$HOME/.config/goose-like/keys.yaml"
echo "{_PROFILES}" > "$HOME/.config/goose-like/profiles.yaml"
printf '%s' {quote(_OWN_SCRIPT * 4)} | sed "s:\$OUTSIDE:$OUTSIDE:" > "$HOME/own.yaml"
printf '%s' {quote(_EVIL_SCRIPT * 4)} > evil.yaml
$PYTHON -m goose_like session export NEWEST --format json > x.json || {_FAILED}
$PYTHON -c {quote(_EDIT)} EDIT || {_FAILED}
$PYTHON -m goose_like session import x.json --name other > imported || {_FAILED}
$PYTHON -m goose_like run --session other --resume next < /dev/null > log 2>&1
test -e "$OUTSIDE/pwned" || test -e pwned || ! test -e here ||
! grep -q 'auto · workspace · scripted:.*own.yaml' imported
"""

# Each field of the first event, with values by which the file would decide.
_FIELDS: dict[str, list[Any]] = {
    "version": ["999"],
    "name": ["../../other", "\x1b[2J"],
    "cwd": ["$OUTSIDE", "$OUTSIDE/.goose-like/worktrees/x", "/"],
    "profile": ["yolo", "none"],
    "models": [{"processor": "scripted:evil.yaml"}, {"processor": "scripted:$WORK/evil.yaml", "accelerator": "local"}],
    "tools": [["shell", "write_file"]],
    "is_resumed": [True],
    "sandbox": ["full", "workspace+network", "other"],
    "approval": ["yolo", "auto", "other"],
}
_EVERY_FIELD = {name: values[0] for name, values in _FIELDS.items()}


def _edit(changed: dict[str, Any], *appended: dict[str, Any]) -> str:
    newest = '"$(basename "$HOME"/.local/state/goose-like/sessions/*)"'
    edited = quote(json.dumps([changed, appended]))
    return _HARM.replace("NEWEST", newest).replace("EDIT", edited)


CASES = [
    *(
        Case(f"{name}: {value!a}", "true", _edit({"session_started": {name: value}}))
        for name, values in _FIELDS.items()
        for value in values
    ),
    Case("all fields", "true", _edit({"session_started": _EVERY_FIELD})),
    Case(
        "looser modes at the end",
        "true",
        _edit({}, {"type": "mode_restricted", "sandbox": "full", "approval": "yolo"}),
    ),
    Case(
        "a second start",
        "true",
        _edit({}, {"type": "session_started", **_EVERY_FIELD}),
    ),
    Case(
        "a message of another model",
        "true",
        _edit({"message_completed": {"model": "scripted:evil.yaml"}}),
    ),
    Case(
        "the folder of a tool",
        "true",
        _edit({}, {"type": "state_saved", "toolkit": "developer", "value": {"cwd": "$WORK/../other"}}),
    ),
]
