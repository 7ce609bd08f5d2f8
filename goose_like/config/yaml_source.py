"""Configuration read from YAML files, with the file and line of each value for error messages."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import ProfileError
from goose_like.core.pattern import compile_later
from goose_like.core.spelling import did_you_mean

from .paths import describe_read_error, read_user_file
from .shipped_yaml import parse_shipped
from .yaml_error import YamlError

M = TypeVar("M", bound=BaseModel)

_MAX_ENTRIES = 200
_MAX_ERRORS = 20

# The text of a value in an error: bounded, however large or often repeated its parts are.
_VALUES = Repr()
_VALUES.maxlevel = 4
_VALUES.maxlist = 20
_VALUES.maxdict = 20
_VALUES.maxstring = 200
_VALUES.maxother = 200
_MAX_VALUE_CHARACTERS = 80

_KINDS = {"model_type": "a mapping", "dict_type": "a mapping", "tuple_type": "a list", "string_type": "text"}
"""What is expected, by the type of a pydantic error."""

_EXPECTATION = compile_later(r"\w+ should (?:be|have|match) (.*?)(?: after validation, not \d+)?")

_OTHER_KEYS = {
    "model": "processor",
    "main_model": "processor",
    "small_model": "accelerator",
    "fast_model": "accelerator",
    "tools": "toolkits",
    "extensions": "toolkits",
    "mode": "approval",
    "permission_mode": "approval",
    "base": "extends",
    "inherits": "extends",
}
"""Keys of other agents, and ours for the same, where a spelling does not tell."""

USER_MESSAGE = "user_message"
"""The type of a pydantic error with a message for users, which must not quote a value that may be a secret."""


def _find_no_node() -> None:
    """Return no node, for data that come from no file."""


@dataclass(frozen=True, slots=True)
class YamlSource:
    """A named part of a YAML file.

    `find_top` returns the node of the whole file, which has its lines, and `keys` lead from there to the part. Only
    errors need lines, so that a file is parsed for them when one is raised. `bases` are what it extends, nearest first.
    """

    name: str
    file: Path
    data: Any
    find_top: Callable[[], Any] = _find_no_node
    keys: tuple[str, ...] = ()
    bases: tuple["YamlSource", ...] = ()
    error: ProfileError | None = None
    is_project: bool = False

    def split(self, content: str) -> Iterator["YamlSource"]:
        """Yield the value of each key as a source with the key as its name.

        Raises:
            ProfileError: The data is no mapping. The text quotes `content`, for example "names to profiles, e.g. ...".
        """
        if not isinstance(self.data, Mapping):
            raise ProfileError(f"{self.file}: this file maps {content}")
        if len(self.data) > _MAX_ENTRIES:
            raise ProfileError(f"{self.file}: this file has more than {_MAX_ENTRIES} entries; use several files")
        for key, value in self.data.items():
            yield YamlSource(str(key), self.file, value, self.find_top, (*self.keys, str(key)))

    def locate(self, *path: str | int) -> str:
        """Format `file, line N` of the value at a path, or of its nearest parent, here or in a base."""
        owner = self._find_owner(path)
        lines = owner.find_lines(path)
        if not lines:
            return str(owner.file)
        return f"{owner.file}, line {lines[-1]}"

    def _find_owner(self, path: tuple[str | int, ...]) -> "YamlSource":
        """Return the source that decides the value at a path, or else the one that has most keys of the path."""
        sources = (self, *self.bases)
        for source in sources:
            if source._decides(path):
                return source
        return max(sources, key=lambda source: len(source.find_lines(path)))

    def find_lines(self, path: tuple[str | int, ...]) -> list[int]:
        """Return the line of the whole part, then the line of each key of the path that exists in this file."""
        return [line for line, _ in self._follow(path)]

    def _decides(self, path: tuple[str | int, ...]) -> bool:
        nodes = [node for _, node in self._follow(path)]
        if not nodes:
            return False
        has_whole_path = len(nodes) > len(path)
        # A mapping without the next key leaves the value to the bases. Any other value replaces theirs.
        return has_whole_path or nodes[-1].id != "mapping"

    def _follow(self, path: tuple[str | int, ...]) -> list[tuple[int, Any]]:
        """Return the line and the node of this part, then of each key of the path, as far as they exist."""
        from .yaml_reader import follow_path

        found = list(follow_path(self.find_top(), self.keys))
        if len(found) <= len(self.keys):
            return []
        _, node = found[-1]
        return list(follow_path(node, path))


@lru_cache(maxsize=16)
def _find_node(text: str) -> Any:
    """Return the node of a text that was read before."""
    from .yaml_reader import parse_document

    return parse_document(text)[1]


def read_yaml(file: Path, drafts: Mapping[Path, str] = {}, *, is_shipped: bool = False) -> YamlSource:
    """Read a YAML file, or the text that `drafts` has instead. An empty file gives an empty mapping.

    With `is_shipped` it is that of a package, whose values are kept. Others may hold secrets.

    Raises:
        ProfileError: The file cannot be read or is invalid. The text names the file and the line.
    """
    text = drafts.get(file)
    if text is None:
        try:
            text = read_user_file(file)
        except (OSError, ValueError) as error:
            raise ProfileError(f"{file}: can't be read: {describe_read_error(error)}; correct or remove it") from error
    data = _parse(file, text, is_shipped=is_shipped)
    return YamlSource(file.stem, file, data, partial(_find_node, text))


def _parse(file: Path, text: str, *, is_shipped: bool) -> Any:
    if not text:
        return {}
    parse = parse_shipped if is_shipped else _parse_own
    try:
        data = parse(text)
    except YamlError as error:
        place = f"{file}, line {error.line}" if error.line else str(file)
        raise ProfileError(f"{place}: {error}") from error
    return data


def _parse_own(text: str) -> Any:
    from .yaml_reader import parse_document  # many people have no YAML of their own

    data, node = parse_document(text)
    return {} if node is None else data


def validate(kind: type[M], data: Any, source: YamlSource, whole: str, more_keys: Iterable[str] = ()) -> M:
    """Validate data from a source as a pydantic model. `whole` is its name in errors, for example "the profile".

    Raises:
        ProfileError: The data is invalid. The text has one line for each invalid value, in the order of the file.
            For an unknown key it suggests a key of the model, or one of `more_keys`.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        fields = error.errors(include_url=False)
        more_count = len(fields) - _MAX_ERRORS  # aliases can repeat an error a hundred thousand times
        del fields[_MAX_ERRORS:]
        fields.sort(key=lambda field: source.find_lines(field["loc"]))
        lines = []
        for field in fields:
            place = source.locate(*field["loc"])
            if field["type"] == "extra_forbidden":
                text = _describe_unknown_key(field["loc"], kind, more_keys)
            else:
                text = describe_field_error(field, whole)
            lines.append(f"{place}: {text}")
        if more_count > 0:
            lines.append(f"{source.file}: {more_count:,} more errors")
        raise ProfileError("\n".join(lines)) from error


def _describe_unknown_key(path: Sequence[str | int], kind: type[BaseModel], more_keys: Iterable[str]) -> str:
    *parents, key = map(str, path)
    known = set(_list_known_keys(kind, parents))
    if not parents:
        known.update(more_keys)
    hint = did_you_mean(key, known)
    meant = _OTHER_KEYS.get(key)
    if meant in known:
        hint = f"did you mean {meant!r}?"
    name = ".".join([*parents, key])
    return f"unknown key {name!r}; {hint}"


def _list_known_keys(kind: Any, path: Sequence[str]) -> Iterator[str]:
    """Yield the keys of all models that a type allows at a path."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if kind.__pydantic_root_model__:
            path = ["root", *path]
        fields = {field.alias or name: field for name, field in kind.model_fields.items()}
        if not path:
            yield from fields
        elif field := fields.get(path[0]):
            yield from _list_known_keys(field.annotation, path[1:])
    is_container = get_origin(kind) in (tuple, list, dict, Mapping)
    path_in_parts = path[1:] if is_container else path
    for part in get_args(kind):
        yield from _list_known_keys(part, path_in_parts)


def describe_field_error(field: Mapping[str, Any], whole: str) -> str:
    """Describe one error of pydantic without its place, for example `limits.steps: expected text, not 3`."""
    name = ".".join(map(str, field["loc"])) or whole
    if field["type"] == USER_MESSAGE:
        return f"{name}: {field['msg'][:500]}"
    if field["type"] == "missing":
        return f"{name}: this key is missing"
    if field["type"] == "value_error":  # of a check of ours, which says all
        return f"{name}: {field['msg'].removeprefix('Value error, ')}"
    expected = _KINDS.get(field["type"]) or _read_expectation(field["msg"])
    return f"{name}: expected {expected}, not {shorten_value(field['input'])}"


def _read_expectation(message: str) -> str:
    """Return what a message of pydantic expects, such as `at least 1 item`."""
    expectation = _EXPECTATION.fullmatch(message)
    if expectation is None:
        return message
    return expectation[1]


def shorten_value(value: object) -> str:
    """Return a value as an error shows it: on one line that is not long."""
    text = _VALUES.repr(value)
    if len(text) > _MAX_VALUE_CHARACTERS:
        return text[: _MAX_VALUE_CHARACTERS - 3] + "..."
    return text
