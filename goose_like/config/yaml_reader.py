"""The YAML reader of goose_like: composes documents within bounds, keeps the line of each value, and writes YAML.

All YAML goes through `compose_document`. Two loaders decide how plain scalars are read: `ConfigLoader` follows
YAML 1.2, where `yes` is text. `StandardLoader` is PyYAML's own, where `yes` is a boolean; it is for files that other
programs read with PyYAML too.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

MAX_VALUES = 1_000_000
"""The default limit of values in one document. An alias counts each time it is used."""

_MAX_DEPTH = 100
_SAFE_LENGTH = 3_000
"""A text with fewer characters cannot nest deep enough to overflow the stack of the C parser."""

_TAG = "tag:yaml.org,2002:"

StandardLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's safe loader; the slow one where PyYAML was built without libyaml."""


class YamlError(ValueError):
    """A text that cannot be read. `line` counts from 1; without a line the text is no YAML text at all."""

    def __init__(self, text: str, line: int | None = None) -> None:
        super().__init__(text)
        self.line = line


class YamlMapping(dict[Any, Any]):
    """A mapping with its own line and the line of each key. Lines count from 1."""

    line = 1
    child_lines: dict[Any, int]


class YamlList(list[Any]):
    """A list with its own line and the line of each item. Lines count from 1."""

    line = 1
    child_lines: list[int]


class _ConfigDumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    yaml_implicit_resolvers: dict[str, list[Any]] = {}

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        # Other styles would fold the line ends that only Unicode knows.
        style = '"' if {*text} & {"\x85", "\u2028", "\u2029"} else None
        return self.represent_scalar(f"{_TAG}str", text, style=style)


class ConfigLoader(StandardLoader):  # type: ignore[misc]  # PyYAML has no types
    """A loader with the scalars of YAML 1.2 that keeps lines and rejects repeated keys."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}


def parse_document(text: str) -> Any:
    """Parse a text into `YamlMapping`, `YamlList` and scalars. An empty document gives None.

    Raises:
        YamlError: The text is invalid YAML, or a value is impossible, such as February 30.
    """
    loader, node = compose_document(text, ConfigLoader)
    try:
        return None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise _convert_error(error, text) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError(" ".join(str(error).split())) from error


def format_document(data: Any) -> str:
    """Format plain values as YAML that `parse_document` reads back unchanged."""
    text = yaml.dump(data, Dumper=_ConfigDumper, allow_unicode=True, sort_keys=False, width=10_000)
    return str(text)


def compose_document(text: str, loader_type: Any, max_values: int = MAX_VALUES) -> tuple[Any, yaml.Node | None]:
    """Parse a text into a loader and its top node. An empty document has no node.

    Raises:
        YamlError: The text is invalid YAML, has more than `max_values` values or nests too deep.
    """
    try:
        # libyaml composes nodes by recursion in C. A deep document would overflow the stack and kill the process.
        if _may_be_deep(text) and _is_deep(text):
            raise YamlError("it nests too deep; write it flatter", 1)
        loader = loader_type(text)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _convert_error(error, text) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlError(" ".join(str(error).split())) from error
    if node is not None and not _is_within_limits(node, max_values):
        raise YamlError(f"it has more than {max_values:,} values, aliases counted, or nests too deep", 1)
    return loader, node


def get_line(node: yaml.Node) -> int:
    """Return the line on which a node begins, counted from 1."""
    return int(node.start_mark.line) + 1


def find_line(node: yaml.Node, path: Sequence[Any]) -> int:
    """Return the line of the key or item at a path, or of its nearest existing parent."""
    line = get_line(node)
    for key in path:
        if isinstance(node, yaml.MappingNode):
            # A merge puts its keys first, so the last of equal keys is the one that the mapping itself has.
            pair = next((pair for pair in reversed(node.value) if pair[0].value == str(key)), None)
            if pair is None:
                break
            line, node = get_line(pair[0]), pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = get_line(node)
        else:
            break
    return line


def _convert_error(error: yaml.MarkedYAMLError, text: str) -> YamlError:
    mark = error.problem_mark or error.context_mark
    # At the end of the text libyaml reports one line too many.
    line = min(mark.line + 1, max(len(text.splitlines()), 1)) if mark else 1
    return YamlError(f"this is no valid YAML: {error.problem or error.context}", line)


def _may_be_deep(text: str) -> bool:
    # Each level needs a bracket, or is indented further than the level around it.
    if len(text) <= _SAFE_LENGTH:
        return False
    return text.count("[") + text.count("{") + 2 * max(map(len, text.splitlines()), default=0) > _SAFE_LENGTH


def _is_deep(text: str) -> bool:
    depth = 0
    for event in yaml.parse(text, Loader=StandardLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            return True
    return False


def _is_within_limits(node: yaml.Node, max_values: int) -> bool:
    count, waiting = 0, [(node, 0)]
    while waiting:
        parent, depth = waiting.pop()
        count += 1
        if count > max_values or depth > _MAX_DEPTH:
            return False
        if isinstance(parent, yaml.MappingNode):
            waiting += [(child, depth + 1) for pair in parent.value for child in pair]
        elif isinstance(parent, yaml.SequenceNode):
            waiting += [(child, depth + 1) for child in parent.value]
    return True


def _construct_int(loader: Any, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node).replace("_", "")
    return int(text, {"0b": 2, "0o": 8, "0x": 16}.get(text.lstrip("+-")[:2], 10))


def _construct_mapping(loader: Any, node: yaml.Node) -> Iterator[YamlMapping]:
    data = YamlMapping()
    data.line, data.child_lines = get_line(node), {}
    yield data
    if isinstance(node, yaml.MappingNode):
        _reject_repeated_keys(node)
    data.update(loader.construct_mapping(node))  # also merges what `<<` names into the node
    data.child_lines = {loader.construct_object(key): get_line(key) for key, _ in node.value}


def _reject_repeated_keys(node: yaml.MappingNode) -> None:
    seen: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"found duplicate key {key.value!r}; remove one", key.start_mark
                )
            seen.add((key.tag, key.value))


def _construct_list(loader: Any, node: yaml.SequenceNode) -> Iterator[YamlList]:
    data = YamlList()
    data.line, data.child_lines = get_line(node), [get_line(item) for item in node.value]
    yield data
    data.extend(loader.construct_sequence(node))


_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    (
        "float",
        r"[-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
        r"|[-+]?\.[0-9_]+([eE][-+][0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("int", r"[-+]?0b[0-1_]+|[-+]?0o?[0-7_]+|[-+]?[0-9_]+|[-+]?0x[0-9a-fA-F_]+", "-+0123456789"),
    ("merge", "<<", "<"),
    ("null", "~|null|Null|NULL", "~nN"),
    ("null", "", [""]),
    (
        "timestamp",
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+)"
        r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]*)?([ \t]*(Z|[-+][0-9]{1,2}(:[0-9]{2})?))?",
        "0123456789",
    ),
)
"""Tags of YAML 1.2, the pattern of their plain scalars, and the characters with which these begin."""

for _name, _pattern, _first in _SCALARS:
    for _class in (ConfigLoader, _ConfigDumper):
        _class.add_implicit_resolver(_TAG + _name, re.compile(f"({_pattern})\\Z"), list(_first))
_ConfigDumper.add_representer(str, _ConfigDumper.represent_text)
for _type, _represent in ((dict, yaml.SafeDumper.represent_dict), (list, yaml.SafeDumper.represent_list)):
    _ConfigDumper.add_multi_representer(_type, _represent)
for _name, _construct in (("int", _construct_int), ("map", _construct_mapping), ("seq", _construct_list)):
    ConfigLoader.add_constructor(_TAG + _name, _construct)
