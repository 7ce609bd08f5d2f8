"""The extra `components`: whether what it brings is there."""

from importlib.util import find_spec

from goose_like.core.errors import UsageError

_NEEDED = {"yaml": "PyYAML", "jsonschema": "jsonschema"}  # python-gnupg is asked for where something is signed


def require_extra() -> None:
    """
    Raises:
        UsageError: a library is missing.
    """
    for module, name in _NEEDED.items():
        if find_spec(module) is None:
            raise UsageError(f"components need {name}, which is not installed: pip install 'goose-like[components]'")
