"""Task files: a kickoff message and a list of tasks, in Markdown or YAML, with Jinja variables."""

import re
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping
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
        return "\n".join([self.kickoff_message, "", "The plan:", *(f"- {task}" for task in self.tasks)])


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
            if match[1] in values:
                raise UsageError(f"--args {text!r}: {match[1]!r} is given twice; give it once")
            values[match[1]] = match[2].strip()
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
        # Parse first and fill in the values afterwards, so that no character of a value counts as YAML.
        source = read_yaml(file, {file: text})
        parsed = validate(TaskFile, source.data, source, "the plan")
        kickoff, *tasks = (_fill_in(each, file, arguments, text) for each in (parsed.kickoff_message, *parsed.tasks))
    else:
        kickoff, tasks = _parse_markdown(_fill_in(text, file, arguments, text), file)
    if not kickoff.strip() or not tasks:
        missing = "tasks: give a list whose lines begin with '-'" if kickoff.strip() else "text before its tasks"
        raise UsageError(f"the plan {path!r} has no {missing}")
    return TaskFile(kickoff_message=kickoff.strip(), tasks=tuple(" ".join(task.split()) for task in tasks))


def _fill_in(text: str, file: Path, arguments: Mapping[str, str], whole: str) -> str:
    """Fill in the variables of a text. Each argument must be a variable of the `whole` file."""
    environment = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    try:
        with _limit_memory():
            known = find_undeclared_variables(environment.parse(whole))
            if unknown := sorted(arguments.keys() - known):
                variables = f"it has {', '.join(sorted(known))}" if known else "it has none"
                raise UsageError(f"{file} has no variable {unknown[0]!r}; {variables}")
            return _render(environment.from_string(text), arguments)
    except MemoryError:
        raise UsageError(f"{file}: its template takes too much memory; write it without long loops") from None
    except TemplateSyntaxError as error:
        raise UsageError(f"{file}, line {error.lineno}: {error.message}; see Jinja's template syntax") from None
    except RecursionError:
        raise UsageError(f"{file}: an expression of a variable nests too deep; write it flatter") from None
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        names = f"given were {', '.join(sorted(arguments))}" if arguments else "none were given"
        raise UsageError(f"{file}: {error}; {names}: --args NAME=VALUE") from None


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


def _parse_markdown(text: str, file: Path) -> tuple[str, list[str]]:
    groups = list(_TASKS.finditer(text))
    if not groups:
        return text, []
    if rest := text[groups[-1].end() :].strip():
        line = rest.partition("\n")[0]
        raise UsageError(f"{file}, after its tasks: {line!r} is neither one nor stands before them; move it up")
    return text[: groups[-1].start()], _TASK.split(groups[-1][0])[1:]
