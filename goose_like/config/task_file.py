"""Task files: a kickoff message and a list of tasks, in Markdown or YAML, with Jinja variables."""

import re
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import SandboxedEnvironment

from goose_like.core.errors import UsageError
from goose_like.core.message import FrozenModel

from .paths import describe_read_error, read_user_file
from .yaml_source import read_yaml, validate

# A comma separates two arguments if a name follows. Values may contain commas, and `http://` is no name.
_SEPARATOR = re.compile(r",(?=\s*[^\W\d]\w*\s*(?:=|:(?!//)))")
_ARGUMENT = re.compile(r"\s*([^\W\d]\w*)\s*[=:](.*)", re.DOTALL)
_MAX_BYTES = 1_000_000  # the plan is a message to the model
_MAX_MEMORY_BYTES = 256 << 20
_TASK = re.compile(r"^-(?!-)[ \t]*", re.MULTILINE)
_TASKS = re.compile(rf"({_TASK.pattern}\S.*\n?([ \t]+\S.*\n?)*)+", re.MULTILINE)
"""Lines that begin with one `-`, each with the indented lines below it."""


class TaskFile(FrozenModel):
    """A kickoff message for the model and the tasks of its plan, each in one line."""

    kickoff_message: str
    tasks: tuple[str, ...]

    @property
    def first_message(self) -> str:
        """The kickoff message with the tasks below it, as the model reads them."""
        plan = [f"- {task}" for task in self.tasks]
        return "\n".join([self.kickoff_message, "", "The plan:", *plan])


def parse_arguments(texts: Iterable[str]) -> dict[str, str]:
    """Parse texts such as `name=value,other:value` into values by name.

    Raises:
        UsageError: An argument has no name, or a name appears twice.
    """
    values: dict[str, str] = {}
    for text in texts:
        for argument in _SEPARATOR.split(text):
            match = _ARGUMENT.fullmatch(argument)
            if not match:
                raise UsageError(f"--args {text!r}: {argument!r} has no name; write NAME=VALUE, others after a comma")
            name, value = match.groups()
            if name in values:
                raise UsageError(f"--args {text!r}: {name!r} is given twice; give it once")
            values[name] = value.strip()
    return values


def read_task_file(path: str, arguments: Mapping[str, str]) -> TaskFile:
    """Read a task file and fill in its variables.

    A `.yaml` file has the keys `kickoff_message` and `tasks`. In any other file, which is Markdown, the last group of
    lines that begin with `-` are the tasks, and the text before them is the kickoff message.

    Raises:
        UsageError: The file cannot be read, has no message or tasks, or its variables differ from the arguments.
    """
    file = Path(path)
    try:
        text = read_user_file(file, _MAX_BYTES, allows_pipes=True)
    except (OSError, ValueError) as error:
        reason = describe_read_error(error)
        raise UsageError(f"the plan {path!r} can't be read: {reason}; give a Markdown or YAML file") from None
    if file.suffix.lower() in (".yaml", ".yml"):
        kickoff, tasks = _parse_yaml(text, file, arguments)
    else:
        filled = _fill_in(text, file, arguments, text)
        kickoff, tasks = _parse_markdown(filled, file)
    kickoff = kickoff.strip()
    if not kickoff:
        raise UsageError(f"the plan {path!r} has no text before its tasks")
    if not tasks:
        raise UsageError(f"the plan {path!r} has no tasks: give a list whose lines begin with '-'")
    one_line_tasks = [" ".join(task.split()) for task in tasks]
    return TaskFile(kickoff_message=kickoff, tasks=tuple(one_line_tasks))


def _fill_in(text: str, file: Path, arguments: Mapping[str, str], whole: str) -> str:
    """Fill in the variables of a text. Each argument must be a variable of the `whole` file."""
    environment = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    try:
        with _limit_memory():
            known = find_undeclared_variables(environment.parse(whole))
            _check_known(arguments, known, file)
            return _render(environment.from_string(text), arguments)
    except MemoryError:
        raise UsageError(f"{file}: its template takes too much memory; write it without long loops") from None
    except TemplateSyntaxError as error:
        raise UsageError(f"{file}, line {error.lineno}: {error.message}; see Jinja's template syntax") from None
    except RecursionError:
        raise UsageError(f"{file}: an expression of a variable nests too deep; write it flatter") from None
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        given = "none were given"
        if arguments:
            given = f"given were {', '.join(sorted(arguments))}"
        raise UsageError(f"{file}: {error}; {given}: --args NAME=VALUE") from None


def _check_known(arguments: Mapping[str, str], known: Set[str], file: Path) -> None:
    """Check that each argument is a variable of the file."""
    unknown = sorted(arguments.keys() - known)
    if not unknown:
        return
    variables = ", ".join(sorted(known)) or "none"
    raise UsageError(f"{file} has no variable {unknown[0]!r}; it has {variables}")


def _render(template: Template, arguments: Mapping[str, str]) -> str:
    """Fill in a template. Raise MemoryError if the text gets too long."""
    pieces = []
    characters = 0
    for piece in template.generate(arguments):
        pieces.append(piece)
        characters += len(piece)
        if characters > _MAX_BYTES:
            raise MemoryError
    return "".join(pieces)


@contextmanager
def _limit_memory() -> Iterator[None]:
    """Let this process take only so much more memory: a short template can ask for all of it, as by `"a" * 10**10`."""
    if sys.platform != "linux":
        yield
        return
    former = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    wanted = pages * resource.getpagesize() + _MAX_MEMORY_BYTES
    is_tighter = former[0] == resource.RLIM_INFINITY or wanted < former[0]
    if is_tighter:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, former)


def _parse_yaml(text: str, file: Path, arguments: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the kickoff message and the tasks of a YAML file, with the values of its variables."""
    # Parse first and fill in the values afterwards, so that no character of a value counts as YAML.
    source = read_yaml(file, {file: text})
    parsed = validate(TaskFile, source.data, source, "the plan")
    kickoff = _fill_in(parsed.kickoff_message, file, arguments, text)
    tasks = [_fill_in(task, file, arguments, text) for task in parsed.tasks]
    return kickoff, tasks


def _parse_markdown(text: str, file: Path) -> tuple[str, list[str]]:
    """Return the text before the last group of tasks, and these tasks."""
    groups = list(_TASKS.finditer(text))
    if not groups:
        return text, []
    last = groups[-1]
    rest = text[last.end() :].strip()
    if rest:
        line, _, _ = rest.partition("\n")
        raise UsageError(f"{file}, after its tasks: {line!r} is neither one nor stands before them; move it up")
    _, *tasks = _TASK.split(last[0])
    return text[: last.start()], tasks
