"""Recipes: files are loaded into a `Recipe`, and values of its parameters make a `FilledRecipe` of it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import yaml

from goose_like.config.foreign_text import parse_json
from goose_like.config.paths import describe_read_error, expand_home, home_folder, read_user_file, shorten_home
from goose_like.config.yaml_reader import (
    ConfigLoader,
    YamlError,
    compose_document,
    convert_yaml_errors,
    follow_path,
    iterate_nodes,
    reject_repeated_keys,
)
from goose_like.config.yaml_source import YamlSource, validate
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import ProfileError, UsageError
from goose_like.core.spelling import did_you_mean

from .content import Parameter, RecipeContent, RecipeOutline, SubRecipe, list_unknown_keys
from .template import Filling, check_renders, fill_template, find_templates, find_variables

RECIPE_FOLDER = "recipe_dir"
"""The parameter that every recipe has: the folder of its file."""

_MAX_BYTES = 256_000
_MAX_FILES = 20
_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")

ReadFile = Callable[[str], str]
"""A function that returns the text of the file that the value of a parameter names."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe whose parameters have no values yet. `outline` is its content with the variables as they are written.

    `texts` are the file and the templates that it extends or includes, by their paths from its folder. Nothing else is
    read later, so a person judges exactly these texts. With `is_sub` it is a sub recipe, and has none of its own.
    """

    file: Path
    texts: Mapping[str, str]
    outline: RecipeOutline
    warnings: tuple[str, ...] = ()
    is_sub: bool = False

    @property
    def label(self) -> str:
        """The path of the file, for a message."""
        return shorten_home(str(self.file))

    @property
    def named_folder(self) -> Path | None:
        """The folder of the recipe, if its text names it: other files lie there. The home folder is none to show."""
        whole = "\n".join(self.texts.values())
        uses_folder = re.search(rf"\b{RECIPE_FOLDER}\b", whole)
        folder = self.file.parent
        if not uses_folder or home_folder().is_relative_to(folder):
            return None
        return folder

    def list_missing(self, given: Mapping[str, str]) -> list[Parameter]:
        """List the parameters that have no value: somebody should be asked."""
        missing = []
        for parameter in self.outline.parameters:
            has_value = parameter.key in given or parameter.default is not None
            if not has_value and parameter.requirement != "optional":
                missing.append(parameter)
        return missing

    def fill(
        self, given: Mapping[str, str], read_file: ReadFile | None = None, *, keeps_missing: bool = False
    ) -> "FilledRecipe":
        """Fill in the values of parameters, and load the sub recipes.

        A `user_prompt` without a value stays in the text as it is written, with a warning. `keeps_missing` does so with
        all parameters, to show a recipe. `read_file` reads the file of a parameter, by default as the person.

        Raises:
            UsageError: a value is missing or wrong, or the recipe is wrong with these values.
        """
        self._check_names(given)
        warnings = list(self.warnings)
        missing = self.list_missing(given)
        required = [parameter for parameter in missing if parameter.requirement == "required"]
        if required and not keeps_missing:
            raise UsageError(_describe_missing(required))
        if not keeps_missing:
            for parameter in missing:
                warnings.append(f"{parameter.key} has no value, and stays in the text as {{{{ {parameter.key} }}}}")
        values = {}
        for parameter in self.outline.parameters:
            if parameter.key in given:
                text = given[parameter.key]
                values[parameter.key] = _read_value(parameter, text, read_file or _read_as_person)
        return self.fill_values(values, warnings)

    def fill_values(self, values: Mapping[str, Any], warnings: Sequence[str] = ()) -> "FilledRecipe":
        """Fill in values that are read already, and the defaults. Other parameters stay as they are written."""
        filled: dict[str, Any] = {RECIPE_FOLDER: str(self.file.parent)}
        for parameter in self.outline.parameters:
            if parameter.default is not None:
                filled[parameter.key] = _read_default(parameter)
            elif parameter.requirement == "optional":
                filled[parameter.key] = ""
        filled |= values
        try:
            source, content = self._parse_content(filled)
        except ProfileError:
            samples = {}  # the name of a variable is no number
            for parameter in self.outline.parameters:
                if parameter.input_type == "number" and parameter.key not in filled:
                    samples[parameter.key] = "1"
            if not samples:
                raise
            source, content = self._parse_content(filled | samples)
        subs = []
        if not self.is_sub:
            for sub in content.sub_recipes:
                file = self.file.parent / sub.path
                subs.append((sub, load_recipe(file, is_sub=True)))
        return FilledRecipe(self, source, content, values, tuple(subs), tuple(warnings))

    def _parse_content(self, values: Mapping[str, Any]) -> tuple[YamlSource, RecipeContent]:
        source = _parse(self.file, self.texts, values)
        return source, validate(RecipeContent, source.data, source, "the recipe")

    def _check_names(self, given: Mapping[str, str]) -> None:
        known = [parameter.key for parameter in self.outline.parameters]
        for key in given:
            if key not in known:
                hint = did_you_mean(key, known)
                raise UsageError(f"{self.label} has no parameter {key!r}; {hint}")


@dataclass(frozen=True, slots=True)
class FilledRecipe:
    """A recipe with the values of its parameters. `subs` are its sub recipes, which the model may run.

    `source` leads to the lines of the content. `values` are those that somebody gave.
    """

    recipe: Recipe
    source: YamlSource
    content: RecipeContent
    values: Mapping[str, Any]
    subs: tuple[tuple[SubRecipe, Recipe], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The message that starts the work."""
        return self.content.prompt.strip() or self.content.instructions.strip()

    @property
    def instructions(self) -> str:
        """The text for the system prompt. Without a prompt, the instructions are the message."""
        return self.content.instructions.strip() if self.content.prompt.strip() else ""


def load_recipe(file: Path, texts: Mapping[str, str] | None = None, *, is_sub: bool = False) -> Recipe:
    """Load a recipe with the files that its template names, or from `texts`, which somebody has read before.

    `is_sub` makes it a sub recipe.

    Raises:
        UsageError: it cannot be read, or is no recipe. The text names the file and the line.
    """
    if texts is None:
        texts = _read_texts(file)
    templates = {name: find_templates(_get_label(file, name), text) for name, text in texts.items()}
    check_renders(file.name, templates, shorten_home(str(file)))
    source = _parse(file, texts, {RECIPE_FOLDER: str(file.parent)})
    outline = validate(RecipeOutline, source.data, source, "the recipe")
    _check_parameters(file, texts, outline)
    warnings = []
    for key in list_unknown_keys(source.data):
        warnings.append(f"{source.locate(key)}: the key {key!r} has no effect")
    if is_sub and source.data.get("sub_recipes"):
        warnings.append(f"{source.locate('sub_recipes')}: the sub recipes of a sub recipe are not run")
    return Recipe(file, texts, outline, tuple(warnings), is_sub)


def write_values(values: Mapping[str, Any]) -> dict[str, str]:
    """Write values of parameters as texts, as somebody types them. A null is no value."""
    texts = {}
    for key, value in values.items():
        if value is None:
            continue
        texts[key] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return texts


def _get_label(file: Path, name: str) -> str:
    """Return the path of one of the files of a recipe, for a message."""
    return shorten_home(str(file.parent / name))


def _read_texts(file: Path) -> dict[str, str]:
    """Read a recipe and all that its template extends or includes. These lie in the folder of the recipe."""
    texts: dict[str, str] = {}
    waiting = [file.name]
    folder = file.parent.resolve()
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        label = _get_label(file, name)
        path = file.parent / name
        if texts and not _is_below(PurePath(name), path, folder):
            raise UsageError(f"{label}: a template takes files of its own folder only, and none that is hidden")
        try:
            text = read_user_file(path, _MAX_BYTES)
        except (OSError, ValueError) as error:
            raise UsageError(f"{label} can't be read: {describe_read_error(error)}") from error
        texts[name] = text.removeprefix("\ufeff").replace("\r\n", "\n")
        waiting += find_templates(label, texts[name])
        if len(texts) > _MAX_FILES:
            raise UsageError(f"{label}: more than {_MAX_FILES} files for one recipe")
    return texts


def _is_below(name: PurePath, path: Path, folder: Path) -> bool:
    if name.is_absolute() or any(part.startswith(".") for part in name.parts):
        return False
    return path.resolve().is_relative_to(folder)


def _check_parameters(file: Path, texts: Mapping[str, str], outline: RecipeOutline) -> None:
    """Check that each variable is a parameter, and that no parameter is there twice."""
    keys = [parameter.key for parameter in outline.parameters]
    for key in keys:
        if keys.count(key) > 1:
            raise UsageError(f"{_get_label(file, file.name)}: the parameter {key!r} is there twice; remove one")
    known = [*keys, RECIPE_FOLDER]
    for name, text in texts.items():
        label = _get_label(file, name)
        for variable, line in find_variables(label, text).items():
            if variable not in known:
                example = f"{{{{ '{{{{{variable}}}}}' }}}}"
                hint = did_you_mean(variable, known)
                raise UsageError(
                    f"{label}, line {line}: no parameter {variable!r}; {hint}; "
                    f"add it to `parameters`, or for the text itself write {example}"
                )


def _parse(file: Path, texts: Mapping[str, str], values: Mapping[str, Any]) -> YamlSource:
    """Fill in the template of a recipe and read its YAML or JSON."""
    name = file.name
    label = _get_label(file, name)
    filling = fill_template(name, texts, values)
    line_counts = {filling.text.count("\n"), texts[name].count("\n")}
    has_other_lines = len(texts) > 1 or len(line_counts) > 1
    if has_other_lines:
        label += " (filled in)"
    try:
        data, node = _read_yaml(filling, is_json=file.suffix == ".json")
    except YamlError as error:
        place = f"{label}, line {error.line}" if error.line else label
        raise UsageError(f"{place}: {error}") from error
    if isinstance(data, dict) and isinstance(data.get("recipe"), dict):  # as the desktop program writes it
        *_, (_, node) = follow_path(node, ("recipe",))
        data = data["recipe"]
    return YamlSource(name, Path(label), data, lambda: node)


def _read_yaml(filling: Filling, *, is_json: bool) -> tuple[Any, yaml.Node | None]:
    """Read the text of a filling, and put the values in place of their marks."""
    text = filling.text
    if is_json:
        # JSON is YAML, but for tabs and characters that are written as two.
        text = _SURROGATES.sub(_join_surrogates, text.replace("\t", " "))
    loader, node = compose_document(text, ConfigLoader)
    if node is None:
        return {}, None
    for part in iterate_nodes(node):
        if not isinstance(part, yaml.ScalarNode):
            continue
        value = filling.resolve(part.value)
        if value == part.value:
            continue
        part.value = value
        is_plain = part.style is None  # so `{{ count }}` may be a number
        if is_plain:
            part.tag = loader.resolve(yaml.ScalarNode, value, (True, False))
    reject_repeated_keys(node)
    with convert_yaml_errors(text):
        return loader.construct_document(node), node


def _join_surrogates(match: re.Match[str]) -> str:
    return str(json.loads(f'"{match[0]}"'))


def _read_as_person(name: str) -> str:
    return read_user_file(expand_home(name))


def _read_value(parameter: Parameter, text: str, read_file: ReadFile) -> Any:
    """Return the value of a parameter for the template. Numbers and booleans stay texts, as in goose."""
    match parameter.input_type:
        case "number":
            try:
                float(text)
            except ValueError:
                raise _describe_wrong(parameter, "a number", text) from None
        case "boolean":
            text = text.lower()
            if text not in ("true", "false"):
                raise _describe_wrong(parameter, "true or false", text)
        case "select":
            if text not in parameter.options:
                raise _describe_wrong(parameter, f"one of {', '.join(parameter.options)}", text)
        case "file":
            try:
                return read_file(text)
            except (OSError, ValueError) as error:
                reason = describe_read_error(error)
                raise UsageError(f"{parameter.key}: {text} can't be read: {reason}") from error
        case "object" | "array":
            return _read_json(parameter, text)
    return text


def _read_default(parameter: Parameter) -> Any:
    """Return the default for the template. Authors write texts such as an empty one also for numbers."""
    default = parameter.default or ""
    if parameter.input_type in ("object", "array"):
        return _read_json(parameter, default)
    return default


def _read_json(parameter: Parameter, text: str) -> Any:
    kind: type = dict
    if parameter.input_type == "array":
        kind = list
    try:
        value = parse_json(text)
    except ValueError:
        value = None
    if not isinstance(value, kind):
        raise _describe_wrong(parameter, f"JSON for an {parameter.input_type}", text)
    return value


def _describe_wrong(parameter: Parameter, expected: str, text: str) -> UsageError:
    return UsageError(f"{parameter.key}: expected {expected}, not {text!r:.80}")


def _describe_missing(parameters: list[Parameter]) -> str:
    lines = ["some parameters have no value; give them:"]
    for parameter in parameters:
        lines.append(f"  --param {parameter.key}=...  {parameter.description}".rstrip())
    return "\n".join(lines)
