"""ClassDict: a dict whose values are attributes too."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

_WHOLE = (str, int, float, type(None), bytes, bytearray, memoryview)  # what is one value


class ClassDict(dict[str, Any]):
    """A dict with text keys. `it.key` is `it["key"]`; a key that there is not reads as None."""

    def __init__(self, /, **kwargs: Any) -> None:
        super().__init__()
        for key, value in kwargs.items():
            self[key] = ClassDict.convert(value)

    def __getattr__(self, item: str) -> Any:
        if item not in self and item.startswith("__") and item.endswith("__"):
            raise AttributeError(item)  # protocols of Python are not keys that happen to be missing
        return self.get(item)

    def __setattr__(self, key: str, value: Any) -> None:
        self[key] = value

    def __delattr__(self, item: str) -> None:
        try:
            del self[item]
        except KeyError:
            raise AttributeError(f"there is no {item!r} to delete; there are {_listed(self)}") from None

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"a key of a ClassDict is text, not {key!r}: quote it where it is written")
        super().__setitem__(key, value)

    def __getstate__(self) -> None:
        """Nothing beside the items, which are copied and pickled as a dict's."""

    def __copy__(self) -> Self:
        made = self.__class__.__new__(self.__class__)
        made.update(self)
        return made

    def __deepcopy__(self, memodict: dict[int, Any]) -> Self:
        made = self.__class__.__new__(self.__class__)
        memodict[id(self)] = made
        for key, value in self.items():
            made[key] = copy.deepcopy(value, memodict)
        return made

    def hasattr(self, item: str) -> bool:
        """Whether the key is there, even if its value is None."""
        return item in self

    def update_nested(self, other: Mapping[str, Any]) -> None:
        """Takes the other's values: mappings are merged level by level, everything else replaces what was there."""
        for key, value in other.items():
            mine = self.get(key)
            if isinstance(value, Mapping) and isinstance(mine, Mapping):
                merged = ClassDict.convert(mine)
                merged.update_nested(value)
                self[key] = merged
            else:
                self[key] = ClassDict.convert(value) if isinstance(value, Mapping | list) else value

    def flatten(
        self, parent_key: str = "", sep: str = ".", keep_none: bool = False, keep_container_type: bool = False
    ) -> dict[str, Any]:
        """The leaves under keys such as `a.b.0`; see `flatten_dict`."""
        return flatten_dict(self, parent_key, sep, keep_none, keep_container_type)

    @staticmethod
    def convert(obj: Any) -> Any:
        """The value with a ClassDict for each mapping and a list for each sequence, at every level.

        A ClassDict is changed in place and stays itself.

        Raises:
            ValueError: when it holds itself.
            TypeError: when a key is not text.
        """
        return _converted(obj, ())


def _converted(obj: Any, above: tuple[int, ...]) -> Any:
    if isinstance(obj, _WHOLE):
        return obj
    if isinstance(obj, Mapping):
        within = _inside(obj, above)
        made = obj if isinstance(obj, ClassDict) else ClassDict()
        for key, value in list(obj.items()):
            made[key] = _converted(value, within)
        return made
    if isinstance(obj, Sequence):
        within = _inside(obj, above)
        return [_converted(value, within) for value in obj]
    return set(obj) if isinstance(obj, set) else obj


def _inside(obj: Any, above: tuple[int, ...]) -> tuple[int, ...]:
    if id(obj) in above:
        raise ValueError(f"a {type(obj).__name__} holds itself, {len(above)} levels down: such a value can't be used")
    return (*above, id(obj))


def flatten_dict(
    d: Mapping[str, Any],
    parent_key: str = "",
    sep: str = ".",
    keep_none: bool = False,
    keep_container_type: bool = False,
) -> dict[str, Any]:
    """The leaves of nested mappings, lists and tuples in one dict; keys are joined by `sep`, places count from 0.

    Args:
        keep_none: Leaves that are None are there too.
        keep_container_type: So is each container under its own key, as the name of its type.
    """
    return dict(_leaves(d, parent_key, sep, keep_none, keep_container_type))


def _leaves(
    d: Mapping[str, Any], parent_key: str, sep: str, keep_none: bool, keep_container_type: bool
) -> Iterator[tuple[str, Any]]:
    for key, value in d.items():
        path = f"{parent_key}{sep}{key}" if parent_key else key
        inner = {str(place): item for place, item in enumerate(value)} if isinstance(value, list | tuple) else value
        if isinstance(inner, Mapping):
            if keep_container_type:
                yield path, str(type(value))
            yield from _leaves(inner, path, sep, keep_none, keep_container_type)
        elif keep_none or value is not None:
            yield path, value


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(map(str, names)) or "none"
