"""Jinja in .goosehints. A repository may be hostile: nothing here can read other files, run code or take long."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from jinja2 import BaseLoader, Environment, TemplateError, TemplateNotFound, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from typing_extensions import override

from goose_like.core.errors import GooseLikeError

OpenFile = Callable[[Path], AbstractContextManager[BinaryIO]]

_MAX_INCLUDES = 20
# Loops, filters and arithmetic are missing: a short template could fill the memory with them.
_ALLOWED = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Const,
    nodes.Name,
    nodes.Include,
    nodes.Assign,
)


def render_hints(text: str, folder: Path, root: Path, open_file: OpenFile, max_characters: int) -> str:
    """Fill in a template. It includes files by their paths from `folder`, and only from below `root`.

    Raises:
        GooseLikeError: the template is broken, or a file cannot be included.
    """
    environment = ImmutableSandboxedEnvironment(
        loader=_Loader(folder, root, open_file, max_characters), cache_size=0, keep_trailing_newline=True
    )
    rendered: list[str] = []
    count = 0
    try:
        _check(environment, text)
        for piece in environment.from_string(text).generate():
            rendered.append(piece)
            count += len(piece)
            if count > max_characters:
                break
    except TemplateSyntaxError as error:
        raise GooseLikeError(f"line {error.lineno}: {error.message}") from error
    except TemplateError as error:
        raise GooseLikeError(str(error)) from error
    except RecursionError as error:
        raise GooseLikeError("it nests too deep") from error
    return "".join(rendered)


def _check(environment: Environment, text: str) -> None:
    for node in environment.parse(text).find_all(nodes.Node):
        if not isinstance(node, _ALLOWED):
            raise TemplateSyntaxError("hints take only `include`, `set` and names", node.lineno)


class _Loader(BaseLoader):
    """Included files. Text that is no template, such as a snippet of another language, is taken as it is."""

    def __init__(self, folder: Path, root: Path, open_file: OpenFile, max_characters: int) -> None:
        self._folder = folder
        self._root = root.resolve()
        self._open_file = open_file
        self._max_characters = max_characters
        self._count = 0

    @override
    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        file = self._folder / template
        self._count += 1
        if self._count > _MAX_INCLUDES:
            raise TemplateError(f"more than {_MAX_INCLUDES} files are included")
        try:
            if not file.resolve().is_relative_to(self._root):
                raise TemplateError(f"{template!r} is not below {self._root}, so it can't be included")
            with self._open_file(file) as stream:
                data = stream.read(self._max_characters)
        except FileNotFoundError:
            raise TemplateNotFound(template, f"there is no {template!r} to include") from None
        except OSError as error:
            raise TemplateError(f"{template!r} can't be included: {error.strerror}") from error
        except (ValueError, GooseLikeError) as error:
            raise TemplateError(f"{template!r} can't be included: {error}") from error
        text = data.decode(errors="replace")
        try:
            _check(environment, text)
        except (TemplateSyntaxError, RecursionError):
            text = text.replace("{", "{{ '{' }}")
        return text, str(file), None
