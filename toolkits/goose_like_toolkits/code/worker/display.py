"""Display of values: names, short tables with a CSV copy, and preset short names of libraries."""

import ast
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ipykernel.displayhook import ZMQShellDisplayHook
from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

from .code_names import find_names

_CSV_CELLS = 2_000_000
_ROWS = 20
_COLUMNS = 20
_WIDTH = 160
_CHARACTERS = 100_000
_PRESETS = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot"}


class NamedDisplayHook(ZMQShellDisplayHook):
    """A display hook that sends the name to which a cell's last line assigns, in the metadata."""

    name = ""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        """Add the name to the metadata, and shorten a very long text."""
        text = format_dict.get("text/plain", "")
        left_out = len(text) - _CHARACTERS
        if left_out > 0:
            note = f"[... {left_out:,} characters of this value left out; print what you need ...]"
            start = text[: _CHARACTERS // 2]
            end = text[-_CHARACTERS // 2 :]
            format_dict = {**format_dict, "text/plain": f"{start}\n{note}\n{end}"}
        metadata = {**(md_dict or {}), "name": self.name}
        super().write_format_data(format_dict, metadata)

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
        self._hook.name = ""
        if isinstance(tree, ast.Module):
            match tree.body[-1:]:
                case [ast.Assign(targets=[ast.Name(name)])]:
                    self._hook.name = name
                case [ast.AnnAssign(target=ast.Name(name)) | ast.AugAssign(target=ast.Name(name))]:
                    self._hook.name = name
        return tree


def import_presets(namespace: dict[str, Any], code: str) -> None:
    """Import the libraries that the code reads by a short name (`pd`) and does not bind, and shorten their tables."""
    read, bound = find_names(code, _PRESETS)
    for name in read - bound - namespace.keys():
        module = _PRESETS[name]
        package, _, _ = module.partition(".")
        if find_spec(package):
            namespace[name] = import_module(module)
    pandas = sys.modules.get("pandas")
    if pandas:
        options = pandas.options.display
        if options.max_rows == 60:  # the default: the user has not set it
            options.max_rows = _ROWS
            options.max_columns = _COLUMNS
            options.width = _WIDTH


class _CsvFormatter(BaseFormatter):
    format_type = Unicode("text/csv")
    print_method = ObjectName("_repr_csv_")


def set_up_formats(shell: Any) -> None:
    """Show data frames as short text, with all rows as CSV if the text leaves rows out, and never as HTML."""
    formatters = shell.display_formatter.formatters
    csv = _CsvFormatter(parent=shell.display_formatter)
    formatters["text/csv"] = csv
    plain = formatters["text/plain"]
    html = formatters["text/html"]
    for module in ("pandas", "pandas.core.frame"):
        plain.for_type_by_name(module, "DataFrame", _print_frame)
        html.for_type_by_name(module, "DataFrame", _hide)
        csv.for_type_by_name(module, "DataFrame", _format_csv)
    html.for_type_by_name("polars.dataframe.frame", "DataFrame", _hide)
    csv.for_type_by_name("polars.dataframe.frame", "DataFrame", _format_polars_csv)


def _print_frame(frame: Any, printer: Any, _is_cycle: bool) -> None:
    printer.text(_shorten_frame(frame))


def _hide(_value: Any) -> None:
    return None


def _shorten_frame(frame: Any) -> str:
    text: str = frame.to_string(max_rows=_ROWS, max_cols=_COLUMNS, line_width=_WIDTH, max_colwidth=60)
    if _is_short(frame):
        return text
    rows, columns = frame.shape
    text += f"\n[{rows:,} rows, {columns:,} columns]"
    if frame.size > _CSV_CELLS:
        text += "\n[too large to save automatically; save it with .to_csv(...) or .to_parquet(...) if you need it]"
    return text


def _is_short(frame: Any) -> bool:
    rows, columns = frame.shape
    return bool(rows <= _ROWS and columns <= _COLUMNS)


def _format_csv(frame: Any) -> str | None:
    if _is_short(frame) or frame.size > _CSV_CELLS:
        return None
    has_plain_index = type(frame.index).__name__ == "RangeIndex"
    text: str = frame.to_csv(index=not has_plain_index)
    return text


def _format_polars_csv(frame: Any) -> str | None:
    if frame.height <= 10 or frame.height * frame.width > _CSV_CELLS:
        return None
    text: str = frame.write_csv()
    return text
