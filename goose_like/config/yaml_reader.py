"""The YAML reader of goose_like: composes documents within bounds, finds the line of each value, and writes YAML.

All YAML goes through `compose_document`. Two loaders decide how plain scalars are read: `ConfigLoader` follows
YAML 1.2, where `yes` is text. `StandardLoader` is PyYAML's own, where `yes` is a boolean; it is for files that other
programs read with PyYAML too.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import yaml

from .yaml_error import YamlError as YamlError

_MAX_VALUES = 100_000
_MAX_REPEATS = 10_000
_MAX_DEPTH = 100
_VALUES_PER_CHARACTER = 4  # at most: `[:,:]` has a value, a pair of empty ones and their mapping per colon
_TOO_DEEP = "it nests too deep; write it flatter"
_TAG = "tag:yaml.org,2002:"
_TEXT = f"{_TAG}str"
_MAPPING = f"{_TAG}map"
_MERGE = f"{_TAG}merge"
_JSON_TYPES = ("null", "bool", "int", "float", "str", "seq", "map")

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may have been built without libyaml


class StandardLoader(_SafeLoader):  # type: ignore[misc]  # PyYAML has no types
    """PyYAML's safe loader, faster for texts and mappings of texts. Use it through `compose_document`."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Build the value of a node. PyYAML's own method records nodes to find those that contain themselves."""
        if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
            return node.value
        if node.tag != _MAPPING or not isinstance(node, yaml.MappingNode):
            return super().construct_object(node, deep)
        has_other_keys = any(key.tag != _TEXT for key, _ in node.value)  # such as a merge of other mappings
        if has_other_keys:
            return super().construct_object(node, deep)
        mapping = {}
        for key, value in node.value:
            name = self.construct_object(key, deep)
            mapping[name] = self.construct_object(value, deep)
        return mapping

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge other mappings into this one. PyYAML 6.0.4 takes the first of equal keys where the last must win."""
        has_merge = any(key.tag == _MERGE for key, _ in node.value)
        super().flatten_mapping(node)
        if has_merge:
            pairs = {}
            for key, value in node.value:
                pairs[key.tag, str(key.value)] = (key, value)
            node.value = list(pairs.values())


class ConfigLoader(StandardLoader):
    """A loader with the scalars of YAML 1.2, and no values that JSON lacks, such as `!!binary` and `!!set`."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}
    yaml_constructors = {
        tag: construct
        for tag, construct in StandardLoader.yaml_constructors.items()
        if tag is None or tag.removeprefix(_TAG) in _JSON_TYPES
    }


class _ConfigDumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    yaml_implicit_resolvers = ConfigLoader.yaml_implicit_resolvers

    def represent_str(self, data: str) -> Any:
        """Quote a text whose line breaks the reader would fold into spaces or other breaks."""
        has_other_breaks = re.search("[\x85\u2028\u2029]", data)
        style = '"' if has_other_breaks else None
        return self.represent_scalar(_TEXT, data, style)


_ConfigDumper.add_representer(str, _ConfigDumper.represent_str)


def parse_document(text: str) -> tuple[Any, yaml.Node | None]:
    """Parse a text into plain values and the node that has their lines. An empty document gives None twice."""
    loader, node = compose_document(text, ConfigLoader)
    reject_repeated_keys(node)
    if node is None:
        return None, None
    with convert_yaml_errors(text):
        return loader.construct_document(node), node


def format_document(data: Any) -> str:
    """Format plain values as YAML that `parse_document` reads back unchanged."""
    return str(yaml.dump(data, Dumper=_ConfigDumper, allow_unicode=True, sort_keys=False, width=10_000))


def compose_document(text: str, loader_type: Any) -> tuple[Any, yaml.Node | None]:
    """Parse a text into a loader and its top node. An empty document has no node."""
    with convert_yaml_errors(text):
        _check_depth(text)
        loader = loader_type(text)
        node = loader.get_single_node()
    has_aliases = "*" in text
    if has_aliases or len(text) >= _MAX_VALUES // _VALUES_PER_CHARACTER:
        _check_values(node)
    return loader, node


def _check_values(top: yaml.Node | None) -> None:
    """Check that a document has not too many values. One with aliases counts for each of them."""
    seen: set[int] = set()
    for count, node in enumerate(iterate_nodes(top)):
        seen.add(id(node))
        if count == _MAX_VALUES:
            raise YamlError(f"it has more than {_MAX_VALUES:,} values, aliases counted, or nests too deep", 1)
        repeat_count = count - len(seen)
        if repeat_count == _MAX_REPEATS:
            raise YamlError(f"its aliases repeat more than {_MAX_REPEATS:,} values", 1)


@contextmanager
def convert_yaml_errors(text: str) -> Iterator[None]:
    """Turn each error that PyYAML raises in the block into a `YamlError` about the text."""
    try:
        yield
    except YamlError:
        raise
    except yaml.MarkedYAMLError as error:
        raise _convert_error(error, text) from error
    except Exception as error:  # PyYAML lets some of its own errors escape: `!!bool x` is a KeyError
        problem = " ".join(str(error).split())
        raise YamlError(f"{type(error).__name__}: {problem}") from error


def _convert_error(error: yaml.MarkedYAMLError, text: str) -> YamlError:
    """Return the error with its line. At the end of the text, libyaml reports one line too many."""
    line = 1
    mark = error.problem_mark or error.context_mark
    if mark:
        last_line = max(len(text.splitlines()), 1)
        line = min(mark.line + 1, last_line)
    problem = str(error.problem or error.context)
    if "nesting depth" in problem:
        return YamlError(_TOO_DEEP, line)
    return YamlError(f"this is not valid YAML: {problem}", line)


def get_line(node: yaml.Node) -> int:
    """Return the line on which a node begins, counted from 1."""
    return int(node.start_mark.line) + 1


def find_line(node: yaml.Node, path: Sequence[Any]) -> int:
    """Return the line of the key or item at a path, or of its nearest existing parent."""
    lines = [line for line, _ in follow_path(node, path)]
    return lines[-1]


def follow_path(node: yaml.Node | None, path: Sequence[Any]) -> Iterator[tuple[int, yaml.Node]]:
    """Yield the line and the value of a node, then of each key or item of the path, as far as they exist."""
    if node is None:
        return
    yield get_line(node), node
    for key in path:
        child = _find_child(node, key)
        if child is None:
            return
        line, node = child
        yield line, node


def _find_child(node: yaml.Node, key: Any) -> tuple[int, yaml.Node] | None:
    """Return the line and the value of a key or an item of a node."""
    if isinstance(node, yaml.MappingNode):
        # A merge puts its keys first, so the last of equal keys is the one that the mapping itself has.
        for name, value in reversed(node.value):
            if name.value == str(key):
                return get_line(name), value
    elif isinstance(node, yaml.SequenceNode) and isinstance(key, int):
        if key < len(node.value):
            item = node.value[key]
            return get_line(item), item
    return None


def _check_depth(text: str) -> None:
    # libyaml composes nodes by recursion in C. A deep document would overflow the stack and kill the process.
    if sum(map(text.count, "[{-?:")) <= _MAX_DEPTH:
        return  # each collection needs one of these characters
    depth = 0
    for event in yaml.parse(text, Loader=StandardLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_DEPTH:
            raise YamlError(_TOO_DEEP, 1)


def iterate_nodes(top: yaml.Node | None) -> Iterator[yaml.Node]:
    """Yield each node. A node with aliases comes once for each of them."""
    waiting = [] if top is None else [top]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, yaml.MappingNode):
            for pair in node.value:
                waiting += pair
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def reject_repeated_keys(top: yaml.Node | None) -> None:
    """Raise YamlError if a mapping has a key twice."""
    for node in iterate_nodes(top):
        if not isinstance(node, yaml.MappingNode):
            continue
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            identity = (key.tag, key.value)
            if identity in seen:
                raise YamlError(f"this is not valid YAML: found duplicate key {key.value!r}; remove one", get_line(key))
            seen.add(identity)


_SCALARS = {
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "float": (
        r"[-+]?[0-9][0-9_]*(\.[0-9_]*([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)"
        r"|[-+]?\.[0-9_]+([eE][-+][0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+0123456789.",
    ),
    "int": (r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", "-+0123456789"),
    "merge": ("<<", "<"),
    "null": ("|~|null|Null|NULL", ["", "~", "n", "N"]),
}
"""Tags of YAML 1.2, the pattern of their plain scalars, and the characters with which these begin."""

for _name, (_pattern, _first) in _SCALARS.items():
    ConfigLoader.add_implicit_resolver(_TAG + _name, re.compile(f"({_pattern})\\Z"), list(_first))
