"""The parser of config.yaml: a definition, and a diagnostic for each problem."""

from pydantic import ValidationError

from goose_like.config.yaml_source import describe_field_error
from goose_like.sdk.diagnostics import Diagnostic, ParseResult

from .config_file import Definition
from .document import Document, Place, format_place
from .grammar import CommandReader


def parse_definition(document: Document) -> ParseResult[Definition]:
    """Parse a document. With a diagnostic that is no warning there is no value."""
    problems: list[Diagnostic] = []

    def report(place: Place, text: str, is_warning: bool = False) -> None:
        problems.append(document.diagnose(place, f"{format_place(place)}: {text}", is_warning=is_warning))

    commands = CommandReader(report, document.get_text).read(document.data.get("commands"))
    definition = None
    try:
        data = {**document.data, "commands": commands, "data": document.data}
        definition = Definition.model_validate(data)
    except ValidationError as error:
        for field in error.errors(include_url=False):
            text = describe_field_error(field, "the component")
            problems.append(document.diagnose(field["loc"], text))
    if definition and definition.as_plugin:
        names = {"title": definition.info.title, "description": definition.description}
        for key, name in names.items():
            if not name:
                report(("info", key), "this is missing, and a plugin is known by it")
    is_wrong = any(not each.is_warning for each in problems)
    found = tuple(sorted(dict.fromkeys(problems), key=lambda each: each.sort_key))
    return ParseResult[Definition](value=None if is_wrong else definition, diagnostics=found)
