"""Planned work from a file: what to begin with, and the tasks; Markdown or YAML, filled in by Jinja."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import SandboxedEnvironment
from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from goose_like.core.errors import UsageError
from goose_like.core.events import Task
from goose_like.core.message import FrozenModel

# Between two arguments stands a comma that a name follows: a value may have commas, and `http://` is no name.
_BETWEEN = re.compile(r",(?=\s*[^\W\d]\w*\s*(?:=|:(?!//)))")
_ARGUMENT = re.compile(r"\s*([^\W\d]\w*)\s*[=:](.*)", re.DOTALL)
_TASK = re.compile(r"-\s+(.+)")


@dataclass(frozen=True, slots=True)
class TaskFile:
    """What a file plans. `first` is what the model is told: the kickoff message, and the tasks below it."""

    kickoff: str
    tasks: tuple[Task, ...]

    @property
    def first_message(self) -> str:
        return "\n".join([self.kickoff, "", "The plan:", *(f"- {task.description}" for task in self.tasks)])


class _PlanFile(FrozenModel):
    kickoff_message: str
    tasks: list[str]


def parse_arguments(given: Iterable[str]) -> dict[str, str]:
    """The values by name, from texts like `name=value,other:value`.

    Raises:
        UsageError: one has no name, or a name is given twice.
    """
    values: dict[str, str] = {}
    for text in given:
        for argument in _BETWEEN.split(text):
            found = _ARGUMENT.fullmatch(argument)
            if not found:
                raise UsageError(f"--args {text!r}: {argument!r} has no name; write NAME=VALUE, others after a comma")
            if found[1] in values:
                raise UsageError(f"--args {text!r}: {found[1]!r} is given twice; give it once")
            values[found[1]] = found[2].strip()
    return values


def read_task_file(path: str, arguments: Mapping[str, str]) -> TaskFile:
    """The plan in a file: YAML with `kickoff_message` and `tasks` by its name, else Markdown.

    In Markdown the last group of lines that begin with `-` are the tasks, and what stands before it is the kickoff.

    Raises:
        UsageError: the file can't be read, is no plan, or its variables and the arguments are not the same.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the plan {path!r} can't be read: {error}; give a Markdown or YAML file") from None
    is_yaml = file.suffix.lower() in (".yaml", ".yml")
    kickoff, tasks = _of_yaml(text, file) if is_yaml else _of_markdown(_filled(text, file, arguments, text), file)
    if is_yaml:  # a value is put into what was read, so that none of its characters are YAML
        kickoff = _filled(kickoff, file, arguments, text)
        tasks = [_filled(task, file, arguments, text) for task in tasks]
    if not kickoff.strip() or not tasks:
        missing = "tasks: give a list whose lines begin with '-'" if kickoff.strip() else "text before its tasks"
        raise UsageError(f"the plan {path!r} has no {missing}")
    return TaskFile(kickoff.strip(), tuple(Task(description=" ".join(task.split())) for task in tasks))


def _filled(text: str, file: Path, arguments: Mapping[str, str], whole: str) -> str:
    """The text with the values in it. `whole` is all of the file, whose variables the arguments may name."""
    environment = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    try:
        known = find_undeclared_variables(environment.parse(whole))
        if unknown := sorted(arguments.keys() - known):
            has = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise UsageError(f"{file} has no variable {unknown[0]!r}; {has}")
        return environment.from_string(text).render(arguments)
    except TemplateSyntaxError as error:
        raise UsageError(f"{file}, line {error.lineno}: {error.message}; see Jinja's template syntax") from None
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        given = f"given were {', '.join(sorted(arguments))}" if arguments else "none were given"
        raise UsageError(f"{file}: {error}; {given}: --args NAME=VALUE") from None


def _of_markdown(text: str, file: Path) -> tuple[str, list[str]]:
    lines = text.rstrip().split("\n")
    end = next((number for number in range(len(lines), 0, -1) if _TASK.match(lines[number - 1])), 0)
    if not end:
        return text, []
    start = end
    while start and (_TASK.match(lines[start - 1]) or (lines[start - 1][:1].isspace() and lines[start - 1].strip())):
        start -= 1
    while not _TASK.match(lines[start]):
        start += 1
    tasks: list[str] = []
    for line in lines[start:]:
        if found := _TASK.match(line):
            tasks.append(found[1])
        elif line[:1].isspace():
            tasks[-1] += f" {line.strip()}"
        elif line.strip():
            raise UsageError(f"{file}, after its tasks: {line!r} is neither one nor stands before them; move it up")
    return "\n".join(lines[:start]), tasks


def _of_yaml(text: str, file: Path) -> tuple[str, list[str]]:
    try:
        plan = _PlanFile.model_validate(YAML(typ="safe", pure=True).load(text))
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"{file}{line}: {getattr(error, 'problem', None) or error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        told = f"{file}: {where}: {first['msg'].lower()}"
        raise UsageError(f"{told}; a plan has `kickoff_message`, a text, and `tasks`, a list of texts") from None
    return plan.kickoff_message, plan.tasks
