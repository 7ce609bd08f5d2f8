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

_MAX_VALUES = 100_000
_MAX_REPEATS = 10_000
_MAX_DEPTH = 100
_VALUES_PER_CHARACTER = 4  # at most: `[:,:]` has a value, a pair of empty ones and their mapping per colon
_MAX_ERROR_CHARACTERS = 500
_TOO_DEEP = "it nests too deep; write it flatter"
_TAG = "tag:yaml.org,2002:"
_TEXT, _MAPPING, _MERGE = f"{_TAG}str", f"{_TAG}map", f"{_TAG}merge"

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may have been built without libyaml


class StandardLoader(_SafeLoader):  # type: ignore[misc]  # PyYAML has no types
    """PyYAML's safe loader, faster for texts and mappings of texts. Use it through `compose_document`."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Build the value of a node. PyYAML's own method records nodes to find those that contain themselves."""
        if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
            return node.value
        is_plain_mapping = node.tag == _MAPPING and isinstance(node, yaml.MappingNode)
        if is_plain_mapping and all(key.tag == _TEXT for key, _ in node.value):  # no merge of other mappings
            return {self.construct_object(key, deep): self.construct_object(value, deep) for key, value in node.value}
        return super().construct_object(node, deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge other mappings into this one. PyYAML 6.0.4 takes the first of equal keys where the last must win."""
        has_merge = any(key.tag == _MERGE for key, _ in node.value)
        super().flatten_mapping(node)
        if has_merge:
            pairs = {(key.tag, str(key.value)): (key, value) for key, value in node.value}
            node.value = [*pairs.values()]


class YamlError(ValueError):
    """A text that is invalid, too large or too deep. `line` counts from 1; None means that the place is unknown."""

    def __init__(self, text: str, line: int | None = None) -> None:
        # PyYAML quotes tags, anchors and keys of any length.
        super().__init__(text if len(text) <= _MAX_ERROR_CHARACTERS else text[:_MAX_ERROR_CHARACTERS] + "...")
        self.line = line


class ConfigLoader(StandardLoader):
    """A loader with the scalars of YAML 1.2, and no values that JSON lacks, such as `!!binary` and `!!set`."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}
    yaml_constructors = {
        tag: construct
        for tag, construct in StandardLoader.yaml_constructors.items()
        if tag is None or tag.removeprefix(_TAG) in ("null", "bool", "int", "float", "str", "seq", "map")
    }


class _ConfigDumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    yaml_implicit_resolvers = ConfigLoader.yaml_implicit_resolvers

    def represent_str(self, data: str) -> Any:
        """Quote a text whose line breaks the reader would fold into spaces or other breaks."""
        return self.represent_scalar(f"{_TAG}str", data, '"' if re.search("[\x85\u2028\u2029]", data) else None)


_ConfigDumper.add_representer(str, _ConfigDumper.represent_str)


def parse_document(text: str) -> tuple[Any, yaml.Node | None]:
    """Parse a text into plain values and the node that has their lines. An empty document gives None twice."""
    loader, node = compose_document(text, ConfigLoader)
    reject_repeated_keys(node)
    with convert_yaml_errors(text):
        return None if node is None else loader.construct_document(node), node


def format_document(data: Any) -> str:
    """Format plain values as YAML that `parse_document` reads back unchanged."""
    return str(yaml.dump(data, Dumper=_ConfigDumper, allow_unicode=True, sort_keys=False, width=10_000))


def compose_document(text: str, loader_type: Any) -> tuple[Any, yaml.Node | None]:
    """Parse a text into a loader and its top node. An empty document has no node."""
    with convert_yaml_errors(text):
        _check_depth(text)
        loader = loader_type(text)
        node = loader.get_single_node()
    if "*" not in text and len(text) < _MAX_VALUES // _VALUES_PER_CHARACTER:
        return loader, node
    seen: set[int] = set()
    for count, each in enumerate(_iterate_nodes(node)):
        seen.add(id(each))
        if count == _MAX_VALUES:
            raise YamlError(f"it has more than {_MAX_VALUES:,} values, aliases counted, or nests too deep", 1)
        if count - len(seen) == _MAX_REPEATS:
            raise YamlError(f"its aliases repeat more than {_MAX_REPEATS:,} values", 1)
    return loader, node


@contextmanager
def convert_yaml_errors(text: str) -> Iterator[None]:
    """Turn each error that PyYAML raises in the block into a `YamlError` about the text."""
    try:
        yield
    except YamlError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # At the end of the text libyaml reports one line too many.
        line = min(mark.line + 1, max(len(text.splitlines()), 1)) if mark else 1
        problem = f"this is not valid YAML: {error.problem or error.context}"
        raise YamlError(_TOO_DEEP if "nesting depth" in problem else problem, line) from error
    except Exception as error:  # PyYAML lets some of its own errors escape: `!!bool x` is a KeyError
        raise YamlError(f"{type(error).__name__}: {' '.join(str(error).split())}") from error


def get_line(node: yaml.Node) -> int:
    """Return the line on which a node begins, counted from 1."""
    return int(node.start_mark.line) + 1


def find_line(node: yaml.Node, path: Sequence[Any]) -> int:
    """Return the line of the key or item at a path, or of its nearest existing parent."""
    return [line for line, _ in follow_path(node, path)][-1]


def follow_path(node: yaml.Node | None, path: Sequence[Any]) -> Iterator[tuple[int, yaml.Node]]:
    """Yield the line and the value of a node, then of each key or item of the path, as far as they exist."""
    if node is None:
        return
    yield get_line(node), node
    for key in path:
        if isinstance(node, yaml.MappingNode):
            # A merge puts its keys first, so the last of equal keys is the one that the mapping itself has.
            pair = next((pair for pair in reversed(node.value) if pair[0].value == str(key)), None)
            if pair is None:
                return
            line, node = get_line(pair[0]), pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = get_line(node)
        else:
            return
        yield line, node


def _check_depth(text: str) -> None:
    # libyaml composes nodes by recursion in C. A deep document would overflow the stack and kill the process.
    if sum(map(text.count, "[{-?:")) <= _MAX_DEPTH:
        return  # each collection needs one of these characters
    depth = 0
    for event in yaml.parse(text, Loader=StandardLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise YamlError(_TOO_DEEP, 1)


def _iterate_nodes(top: yaml.Node | None) -> Iterator[yaml.Node]:
    """Yield each node. A node with aliases comes once for each of them."""
    waiting = [] if top is None else [top]
    while waiting:
        yield (node := waiting.pop())
        if isinstance(node, yaml.MappingNode):
            waiting += [child for pair in node.value for child in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def reject_repeated_keys(top: yaml.Node | None) -> None:
    """Raise YamlError if a mapping has a key twice."""
    for node in _iterate_nodes(top):
        seen: set[tuple[str, str]] = set()
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        for key in (key for key, _ in pairs if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                raise YamlError(f"this is not valid YAML: found duplicate key {key.value!r}; remove one", get_line(key))
            seen.add((key.tag, key.value))


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
