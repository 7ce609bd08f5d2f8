"""How values are shown: by their names, tables in a few rows with all of them as CSV, figures as images."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ipykernel.displayhook import ZMQShellDisplayHook
from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

CSV_CELLS = 2_000_000
_ROWS, _COLUMNS, _WIDTH = 20, 20, 160
_CHARACTERS = 100_000
_PRESETS = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot"}


class NamedValues(ZMQShellDisplayHook):
    """A cell's value, told with the name that it was assigned to."""

    name = ""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        """The name stands in the metadata. Of a very long text the middle is left out: nobody asked to print it."""
        text = format_dict.get("text/plain", "")
        if len(text) > _CHARACTERS:
            left_out = f"[... {len(text) - _CHARACTERS:,} characters of this value left out; print what you need ...]"
            text = f"{text[: _CHARACTERS // 2]}\n{left_out}\n{text[-_CHARACTERS // 2 :]}"
            format_dict = {**format_dict, "text/plain": text}
        super().write_format_data(format_dict, {**(md_dict or {}), "name": self.name})

    def finish_displayhook(self) -> None:
        """Whatever is shown later in the same cell has no name."""
        super().finish_displayhook()
        self.name = ""


class LastName(ast.NodeTransformer):
    """Looks which name a cell's last line assigns to, and gives it to the hook that shows the value."""

    def __init__(self, hook: NamedValues) -> None:
        self._hook = hook

    def visit_Module(self, tree: ast.Module) -> ast.Module:
        """The tree as it is."""
        last = tree.body[-1] if tree.body else None
        targets = last.targets if isinstance(last, ast.Assign) else [getattr(last, "target", None)]
        is_named = isinstance(last, ast.Assign | ast.AnnAssign | ast.AugAssign) and len(targets) == 1
        self._hook.name = targets[0].id if is_named and isinstance(targets[0], ast.Name) else ""
        return tree


class Presets:
    """The usual short names of libraries (`pd`), imported when a cell uses one that it did not make itself."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace

    def before_cell(self, code: str) -> None:
        """Imports what the code names, and sets how it prints."""
        for name, module in _PRESETS.items():
            if name in code and name not in self._namespace and _uses(code, name) and find_spec(module.split(".")[0]):
                self._namespace[name] = import_module(module)
        if pandas := sys.modules.get("pandas"):
            _set_up_pandas(pandas)


def _uses(code: str, name: str) -> bool:
    try:
        nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name) and node.id == name]
    except SyntaxError:
        return False
    return bool(nodes) and all(isinstance(node.ctx, ast.Load) for node in nodes)


def _set_up_pandas(pandas: Any) -> None:
    options = pandas.options.display
    if options.max_rows == 60:  # nobody has set it
        options.max_rows, options.max_columns, options.width = _ROWS, _COLUMNS, _WIDTH


class _Csv(BaseFormatter):
    format_type = Unicode("text/csv")
    print_method = ObjectName("_repr_csv_")


def set_up_formats(shell: Any) -> None:
    """Tables get a short form and, where that is not all of them, CSV beside it; they need no HTML."""
    formatters = shell.display_formatter.formatters
    formatters["text/csv"] = csv = _Csv(parent=shell.display_formatter)
    for module in ("pandas", "pandas.core.frame"):
        formatters["text/plain"].for_type_by_name(module, "DataFrame", _printed(_short_frame))
        formatters["text/html"].for_type_by_name(module, "DataFrame", _nothing)
        csv.for_type_by_name(module, "DataFrame", _frame_as_csv)
    formatters["text/html"].for_type_by_name("polars.dataframe.frame", "DataFrame", _nothing)
    csv.for_type_by_name("polars.dataframe.frame", "DataFrame", _polars_as_csv)


def _printed(text_of: Callable[[Any], str]) -> Callable[[Any, Any, bool], None]:
    return lambda value, printer, _is_cycle: printer.text(text_of(value))


def _nothing(_value: Any) -> None:
    return None


def _short_frame(frame: Any) -> str:
    text: str = frame.to_string(max_rows=_ROWS, max_cols=_COLUMNS, line_width=_WIDTH, max_colwidth=60)
    if _is_whole(frame):
        return text
    text += f"\n[{frame.shape[0]:,} rows, {frame.shape[1]:,} columns]"
    if frame.size > CSV_CELLS:
        text += "\n[too large to be saved by itself; where it is needed: .to_csv(...) or .to_parquet(...)]"
    return text


def _is_whole(frame: Any) -> bool:
    """Whether the short form shows all of it."""
    return bool(frame.shape[0] <= _ROWS and frame.shape[1] <= _COLUMNS)


def _frame_as_csv(frame: Any) -> str | None:
    if _is_whole(frame) or frame.size > CSV_CELLS:
        return None
    has_plain_index = type(frame.index).__name__ == "RangeIndex"
    text: str = frame.to_csv(index=not has_plain_index)
    return text


def _polars_as_csv(frame: Any) -> str | None:
    text: str = frame.write_csv()
    return text if frame.height > 10 and frame.height * frame.width <= CSV_CELLS else None
