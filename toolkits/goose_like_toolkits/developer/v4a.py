"""V4A, the format of patches that OpenAI's models were trained on, read as patches of `patch_file`.

    *** Update File: a.py
    @@ class Greeter
     def greet():
    -    return "hi"
    +    return "hello"

A line after `@@` stands somewhere before the lines of its hunk. Source: OpenAI's guide on `apply_patch`.
"""

from collections.abc import Sequence
from dataclasses import field

from goose_like.core.dataclass import dataclass
from goose_like.core.text_file import normalize_newlines

from .patching import Patch

_HEADS = ("*** Update File:", "*** Add File:", "*** Delete File:")
_ENVELOPE = ("*** Begin Patch", "*** End Patch", "*** End of File")


@dataclass(slots=True)
class _Hunk:
    """The lines of a hunk before and after it, and the lines that stand before these in the file."""

    anchors: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    @property
    def is_started(self) -> bool:
        return bool(self.before or self.after)

    def add(self, line: str) -> None:
        """Add a line with its mark. Models leave out the space of an empty line.

        Raises:
            ValueError: the line has no mark.
        """
        mark = line[:1] or " "
        if mark not in " +-":
            raise ValueError(
                f"each line of a V4A diff begins with ' ', '+', '-' or '@@', and this one does not: {line}"
            )
        if mark != "+":
            self.before.append(line[1:])
        if mark != "-":
            self.after.append(line[1:])

    def build_patch(self) -> Patch:
        before = self.before
        after = self.after
        if not before and self.anchors:  # new lines right after the anchor
            before = self.anchors[-1:]
            after = [*before, *after]
        end = "" if after else "\n"  # all lines go, with the newline of the last one
        return Patch(before="\n".join(before) + end, after="\n".join(after), anchors=tuple(self.anchors))


def read_v4a(value: object) -> object:
    """Return the patches of a V4A text for one file. Any other value returns as it is.

    Raises:
        ValueError: the text is no V4A diff of one file.
    """
    if not isinstance(value, str) or not value.startswith("*** "):
        return value
    lines = normalize_newlines(value).removesuffix("\n").split("\n")
    heads = [line for line in lines if line.startswith(_HEADS)]
    if len(heads) != 1:
        raise ValueError(
            "a call changes one file: give one `*** Update File: PATH`, `*** Add File:` or `*** Delete File:`"
        )
    body = [line for line in lines if line not in _ENVELOPE and line not in heads]
    if heads[0].startswith("*** Delete"):
        return [Patch(before="", after="", operation="delete")]
    if heads[0].startswith("*** Add"):
        added = [line.removeprefix("+") for line in body]
        return [Patch(before="", after="".join(f"{line}\n" for line in added), operation="create")]
    return [hunk.build_patch() for hunk in _split_hunks(body)]


def _split_hunks(lines: Sequence[str]) -> list[_Hunk]:
    hunks = [_Hunk()]
    for line in lines:
        if not line.startswith("@@"):
            hunks[-1].add(line)
            continue
        if hunks[-1].is_started:
            hunks.append(_Hunk())
        anchor = line.removeprefix("@@").removeprefix(" ")
        if anchor.strip():
            hunks[-1].anchors.append(anchor)
    return [hunk for hunk in hunks if hunk.is_started]
