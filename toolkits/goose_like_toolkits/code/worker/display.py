"""Display of values: names, short tables with a CSV copy, and preset short names of libraries."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ipykernel.displayhook import ZMQShellDisplayHook
from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

from .code_names import find_names

_CSV_CELLS = 2_000_000
_ROWS, _COLUMNS, _WIDTH = 20, 20, 160
_CHARACTERS = 100_000
_PRESETS = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot"}


class NamedDisplayHook(ZMQShellDisplayHook):
    """A display hook that sends the name to which a cell's last line assigns, in the metadata."""

    name = ""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        """Add the name to the metadata, and shorten a very long text."""
        text = format_dict.get("text/plain", "")
        if len(text) > _CHARACTERS:
            note = f"[... {len(text) - _CHARACTERS:,} characters of this value left out; print what you need ...]"
            text = f"{text[: _CHARACTERS // 2]}\n{note}\n{text[-_CHARACTERS // 2 :]}"
            format_dict = {**format_dict, "text/plain": text}
        super().write_format_data(format_dict, {**(md_dict or {}), "name": self.name})

    def finish_displayhook(self) -> None:
        """Forget the name: later values of the same cell have none."""
        super().finish_displayhook()
        self.name = ""


class LastNameFinder(ast.NodeTransformer):
    """A transformer that tells the display hook the name to which a cell's last line assigns."""

    def __init__(self, hook: NamedDisplayHook) -> None:
        self._hook = hook

    def visit(self, tree: ast.AST) -> ast.AST:
        """Return the tree unchanged."""
        last = tree.body[-1] if isinstance(tree, ast.Module) and tree.body else None
        targets = last.targets if isinstance(last, ast.Assign) else [getattr(last, "target", None)]
        is_named = isinstance(last, ast.Assign | ast.AnnAssign | ast.AugAssign) and len(targets) == 1
        self._hook.name = targets[0].id if is_named and isinstance(targets[0], ast.Name) else ""
        return tree


def import_presets(namespace: dict[str, Any], code: str) -> None:
    """Import the libraries that the code reads by a short name (`pd`) and does not bind, and shorten their tables."""
    read, bound = find_names(code, _PRESETS)
    for name in read - bound - namespace.keys():
        if find_spec(_PRESETS[name].partition(".")[0]):
            namespace[name] = import_module(_PRESETS[name])
    if pandas := sys.modules.get("pandas"):
        options = pandas.options.display
        if options.max_rows == 60:  # the default: the user has not set it
            options.max_rows, options.max_columns, options.width = _ROWS, _COLUMNS, _WIDTH


class _CsvFormatter(BaseFormatter):
    format_type = Unicode("text/csv")
    print_method = ObjectName("_repr_csv_")


def set_up_formats(shell: Any) -> None:
    """Show data frames as short text, with all rows as CSV if the text leaves rows out, and never as HTML."""
    formatters = shell.display_formatter.formatters
    formatters["text/csv"] = csv = _CsvFormatter(parent=shell.display_formatter)
    for module in ("pandas", "pandas.core.frame"):
        formatters["text/plain"].for_type_by_name(module, "DataFrame", _as_printer(_shorten_frame))
        formatters["text/html"].for_type_by_name(module, "DataFrame", _hide)
        csv.for_type_by_name(module, "DataFrame", _format_csv)
    formatters["text/html"].for_type_by_name("polars.dataframe.frame", "DataFrame", _hide)
    csv.for_type_by_name("polars.dataframe.frame", "DataFrame", _format_polars_csv)


def _as_printer(format_value: Callable[[Any], str]) -> Callable[[Any, Any, bool], None]:
    return lambda value, printer, _is_cycle: printer.text(format_value(value))


def _hide(_value: Any) -> None:
    return None


def _shorten_frame(frame: Any) -> str:
    text: str = frame.to_string(max_rows=_ROWS, max_cols=_COLUMNS, line_width=_WIDTH, max_colwidth=60)
    if _is_short(frame):
        return text
    text += f"\n[{frame.shape[0]:,} rows, {frame.shape[1]:,} columns]"
    if frame.size > _CSV_CELLS:
        text += "\n[too large to save automatically; save it with .to_csv(...) or .to_parquet(...) if you need it]"
    return text


def _is_short(frame: Any) -> bool:
    return bool(frame.shape[0] <= _ROWS and frame.shape[1] <= _COLUMNS)


def _format_csv(frame: Any) -> str | None:
    if _is_short(frame) or frame.size > _CSV_CELLS:
        return None
    has_plain_index = type(frame.index).__name__ == "RangeIndex"
    text: str = frame.to_csv(index=not has_plain_index)
    return text


def _format_polars_csv(frame: Any) -> str | None:
    text: str = frame.write_csv()
    return text if frame.height > 10 and frame.height * frame.width <= _CSV_CELLS else None
