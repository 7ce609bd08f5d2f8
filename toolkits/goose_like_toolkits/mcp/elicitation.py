"""Questions of a server to the person: forms of single values, and addresses to visit."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from goose_like.core.errors import UsageError
from goose_like.core.events import Question
from goose_like.toolkit import Notifier

if TYPE_CHECKING:
    from goose_like.providers.json_answer import AnswerSchema

_MAX_FIELDS = 20
_MAX_TRIES = 3
_MAX_CHARACTERS = 2_000
_MAX_MESSAGE = 1_000
_MAX_SCHEMA = 10_000
_CONTROLS = re.compile(r"\\(?:u00|[bfr])|[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters in JSON with which a text could take over a screen, or show its words in another order."""

_WARNING = "The server gets what you type: never a password."
_YES = ("yes", "y", "ok", "accept")
_TRUE = ("yes", "y", "true", "1", "on")
_FALSE = ("no", "n", "false", "0", "off")

Value = str | int | float | bool | list[str]


class _WrongValueError(Exception):
    """An answer that a field does not take, with what it takes."""


class _Stop(Exception):
    """The person ends the form; `action` is what the server learns."""

    def __init__(self, action: str) -> None:
        super().__init__(action)
        self.action = action


class Elicitor:
    """Asks the person what a server wants to know. Where nobody is, the answer is no."""

    def __init__(self, server: str, notifier: Notifier) -> None:
        self._server = server
        self._notifier = notifier

    async def answer(self, params: Any) -> tuple[str, dict[str, Value] | None]:
        """Return `accept`, `decline` or `cancel`, and the values of a form."""
        message = params.message[:_MAX_MESSAGE]  # its end must not push out what goose-like adds
        try:
            if params.mode == "url":
                await self._ask_to_visit(message, params.url)
                return "accept", None
            return "accept", await self._ask_form(message, params.requested_schema)
        except _Stop as stop:
            return stop.action, None

    async def _ask_to_visit(self, message: str, url: str) -> None:
        """Show an address. Goose-like opens nothing itself: the person looks at the address first."""
        if urlsplit(url).scheme not in ("http", "https"):
            raise _Stop("decline")
        text = f"{message}\nOpen {url} in a browser, then answer yes. Answer no to refuse."
        answer = await self._ask(text)
        if answer.strip().lower() not in _YES:
            raise _Stop("decline")

    async def _ask_form(self, message: str, schema: Mapping[str, Any]) -> dict[str, Value]:
        """Ask for each field in turn."""
        fields = schema.get("properties") or {}
        required = schema.get("required") or ()
        has_wrong_field = not all(isinstance(field, Mapping) for field in fields.values())
        if has_wrong_field or len(fields) > _MAX_FIELDS:
            raise _Stop("cancel")
        if not fields:
            answer = await self._ask(f"{message}\nAnswer yes or no.")
            if answer.strip().lower() not in _YES:
                raise _Stop("decline")
            return {}
        form = _make_form(fields, required) if self._notifier.shows_forms else None
        if form:
            return await self._ask_at_once(message, form)
        values: dict[str, Value] = {}
        for number, (name, schema_of_field) in enumerate(fields.items(), 1):
            heading = f"{message}\n"
            if number == 1:
                heading += f"{_WARNING} /decline refuses.\n"
            if len(fields) > 1:
                heading += f"[{number} of {len(fields)}] "
            field = _Field(name, schema_of_field, is_required=name in required)
            value = await self._ask_field(heading, field)
            if value is not None:
                values[name] = value
        return values

    async def _ask_at_once(self, message: str, form: "AnswerSchema") -> dict[str, Value]:
        """Ask for all fields in one form."""
        answer = await self._ask(f"{_WARNING}\n{message}", form.schema)
        values, problems = form.parse(answer)
        if problems:
            raise _Stop("cancel")
        return {name: values[name] for name in form.schema["properties"] if name in values}

    async def _ask_field(self, heading: str, field: "_Field") -> Value | None:
        problem = ""
        for _ in range(_MAX_TRIES):
            answer = await self._ask(f"{heading}{field.describe()}{problem}")
            try:
                return field.read(answer.strip())
            except _WrongValueError as error:
                problem = f"\n{answer.strip()[:80]!r} does not fit: {error}"
        raise _Stop("cancel")

    async def _ask(self, text: str, form: dict[str, Any] | None = None) -> str:
        """Ask one question, and return the answer. `/decline` ends the form."""
        shown = f"the MCP server {self._server} asks: {text}"[:_MAX_CHARACTERS]
        question = Question(kind="text", subject=f"the MCP server {self._server}", text=shown, form=form)
        answer = await self._notifier.ask(question)
        if answer.by == "nobody" or (form and not answer.is_allowed):
            raise _Stop("decline")
        if answer.text.strip().lower() == "/decline":
            raise _Stop("decline")
        return answer.text


def _make_form(fields: Mapping[str, Any], required: Sequence[str]) -> "AnswerSchema | None":
    """Make a whole form, or None if its schema is wrong or large, or a text in it is no plain one."""
    from goose_like.providers.json_answer import AnswerSchema  # few questions are whole forms

    def list_problems(values: Any) -> Sequence[str]:
        try:
            for name in fields.keys() & values.keys():
                _check_format(str(values[name]), fields[name].get("format"))
        except _WrongValueError as error:
            return (str(error),)
        return ()

    schema = {"type": "object", "properties": dict(fields), "required": list(required)}
    text = json.dumps(schema, ensure_ascii=False)
    if len(text) > _MAX_SCHEMA or _CONTROLS.search(text):
        return None
    try:
        return AnswerSchema.read(schema, list_problems)
    except UsageError:
        return None


class _Field:
    """A field of a form."""

    def __init__(self, name: str, schema: Mapping[str, Any], *, is_required: bool) -> None:
        self.name = name
        self._schema = schema
        self._is_required = is_required
        self._kind = schema.get("type", "string")
        source = schema
        if self._kind == "array" and isinstance(schema.get("items"), Mapping):
            source = schema["items"]
        self._choices = _list_choices(source)

    def describe(self) -> str:
        """Describe the field for the person: its title, what it takes, and what an empty answer means."""
        lines = [str(self._schema.get("title") or self.name)]
        if self._schema.get("description"):
            lines[0] += f": {self._schema['description']}"
        for number, (value, title) in enumerate(self._choices.items(), 1):
            shown = value if title == value else f"{title} ({value})"
            lines.append(f"{number}. {shown}")
        if self._kind == "array":
            lines.append("Several answers: separate them by commas.")
        elif self._kind == "boolean":
            lines.append("Answer yes or no.")
        if "default" in self._schema:
            default = json.dumps(self._schema["default"], ensure_ascii=False)
            lines.append(f"Empty: {default}.")
        elif not self._is_required:
            lines.append("Empty: no answer.")
        return "\n".join(lines)

    def read(self, text: str) -> Value | None:
        """Read an answer; None if the field stays empty.

        Raises:
            _WrongValueError: the field does not take it.
        """
        if not text:
            if "default" in self._schema:
                default: Value = self._schema["default"]
                return default
            if self._is_required:
                raise _WrongValueError("it must not be empty (/decline refuses the whole question)")
            return None
        match self._kind:
            case "boolean":
                return _read_boolean(text)
            case "integer" | "number":
                return self._read_number(text)
            case "array":
                return [self._read_choice(part.strip()) for part in text.split(",") if part.strip()]
            case _:
                return self._read_text(text)

    def _read_number(self, text: str) -> int | float:
        try:
            value = int(text) if self._kind == "integer" else float(text)
        except ValueError:
            kind = "a whole number" if self._kind == "integer" else "a number"
            raise _WrongValueError(f"it must be {kind}") from None
        if not math.isfinite(value):
            raise _WrongValueError("it must be a number")
        least = self._schema.get("minimum")
        most = self._schema.get("maximum")
        if least is not None and value < least:
            raise _WrongValueError(f"it must be at least {least}")
        if most is not None and value > most:
            raise _WrongValueError(f"it must be at most {most}")
        return value

    def _read_text(self, text: str) -> str:
        if self._choices:
            return self._read_choice(text)
        least = self._schema.get("minLength", 0)
        most = self._schema.get("maxLength")
        if len(text) < least:
            raise _WrongValueError(f"it must have at least {least} characters")
        if most is not None and len(text) > most:
            raise _WrongValueError(f"it must have at most {most} characters")
        _check_format(text, self._schema.get("format"))
        return text

    def _read_choice(self, text: str) -> str:
        """Read a choice by its number, value or title."""
        values = list(self._choices)
        if not values or text in values:
            return text
        if text.isdecimal() and 1 <= int(text) <= len(values):
            return values[int(text) - 1]
        for value, title in self._choices.items():
            if text.lower() in (value.lower(), title.lower()):
                return value
        raise _WrongValueError(f"it must be one of {', '.join(values)}")


def _check_format(text: str, name: Any) -> None:
    """Check a text for one of the formats that forms may have. Raise _WrongValueError if it has another one."""
    match name:
        case "email":
            is_right = "@" in text[1:-1] and " " not in text
        case "uri":
            is_right = bool(urlsplit(text).scheme)
        case "date":
            is_right = _can_parse(date.fromisoformat, text)
        case "date-time":
            is_right = _can_parse(datetime.fromisoformat, text)
        case _:
            return
    if not is_right:
        raise _WrongValueError(f"it must have the format {name}")


def _can_parse(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _read_boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise _WrongValueError("it must be yes or no")


def _list_choices(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that a schema allows, with their titles."""
    titled = schema.get("oneOf") or schema.get("anyOf")
    if isinstance(titled, Sequence) and not isinstance(titled, str):
        choices = {}
        for each in titled:
            if isinstance(each, Mapping) and "const" in each:
                choices[str(each["const"])] = str(each.get("title") or each["const"])
        return choices
    values = [str(value) for value in schema.get("enum") or ()]
    names = [str(name) for name in schema.get("enumNames") or ()]
    names += values[len(names) :]
    return dict(zip(values, names, strict=False))
