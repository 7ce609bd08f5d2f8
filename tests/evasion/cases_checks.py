"""The check of a project's AGENTS.md: before the person confirms it, after it changed, and beyond the sandbox."""

from tests.evasion.case import CONNECTED, EVERY_MODE, WITHOUT_NETWORK, WROTE_OUTSIDE, Case

_TRUST = "$PYTHON -m goose_like trust add > /dev/null"
_RAN = f'test -e "$WORK/pwned" || {WROTE_OUTSIDE}'
_CHANGE = "echo x > changed"


def _bring(command: str) -> str:
    """Return a line that writes an AGENTS.md with this check. The names of the case have their values in it."""
    return f"printf 'verify: %s\\n' \"{command}\" > AGENTS.md"


_TOUCH = _bring("touch pwned $OUTSIDE/pwned")

CASES = [
    Case("before the person confirms", _CHANGE, _RAN, EVERY_MODE, setup=_TOUCH),
    Case(
        "another line than the confirmed one", _CHANGE, _RAN, EVERY_MODE, setup=f"{_bring('true')}; {_TRUST}; {_TOUCH}"
    ),
    Case(
        "confirmed in another folder", _CHANGE, _RAN, EVERY_MODE, setup=f"(cd $OUTSIDE; {_TOUCH}; {_TRUST}); {_TOUCH}"
    ),
    Case("written by the model", f"{_bring('touch pwned')}; {_CHANGE}", _RAN, EVERY_MODE),
    Case("confirmed, writes outside", _CHANGE, WROTE_OUTSIDE, EVERY_MODE, setup=f"{_TOUCH}; {_TRUST}"),
    Case(
        "confirmed, connects",
        _CHANGE,
        CONNECTED,
        WITHOUT_NETWORK,
        setup=f"{_bring('echo > /dev/tcp/127.0.0.1/$LISTENER')}; {_TRUST}",
    ),
]
