"""Agent files: Markdown files that define a kind of subagent, also those written for other agents."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel

from .paths import OTHER_AGENTS, config_folder, describe_read_error, read_user_file
from .trust import AGENTS, load_trusted_project
from .yaml_source import read_yaml, validate

_FRONT_MATTER = re.compile(r"---[ \t]*\n(?P<front>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# Other agents read these values as plain text: `description: Use this: always` is no YAML.
_PLAIN_VALUE = re.compile(r"^(name|description|tools|model):[ \t]+(?![\[\"'|>])(\S.*?)[ \t]*$(?!\n[ \t]+\S)", re.M)


def _split_names(value: object) -> object:
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


class AgentFile(FrozenModel):
    """A kind of subagent. `tools` are names of tools, also of other agents; None means all. `model` may be empty."""

    name: str
    description: str
    tools: Annotated[tuple[str, ...] | None, BeforeValidator(_split_names)] = None
    model: str = ""
    prompt: str = ""


def load_agent_files(cwd: Path) -> tuple[dict[str, AgentFile], list[str]]:
    """Read the agent files of the person and of the trusted project around a folder.

    Return them by name, and a sentence for each file that cannot be used. The person's file wins over a project's.
    """
    found: dict[str, AgentFile] = {}
    problems: list[str] = []
    for file, text in _list_files(cwd):
        try:
            agent = parse_agent_file(file, _read_file(file) if text is None else text)
        except GooseLikeError as error:
            problems.append(f"skipped: {error}")
        else:
            found.setdefault(agent.name, agent)
    return found, problems


def _list_files(cwd: Path) -> Iterator[tuple[Path, str | None]]:
    """Yield each file with its text. The text of a person's file is None."""
    for file in sorted((config_folder() / AGENTS).glob("*.md")):
        yield file, None
    if project := load_trusted_project(cwd):
        for folder in (AGENTS, *OTHER_AGENTS):
            for name, text in sorted(project.files.items()):
                if name.startswith(f"{folder}/"):
                    yield project.get_path(name), text


def _read_file(file: Path) -> str:
    try:
        return read_user_file(file)
    except (OSError, ValueError) as error:
        raise GooseLikeError(f"{file}: can't be read: {describe_read_error(error)}") from error


def parse_agent_file(file: Path, text: str) -> AgentFile:
    """Parse an agent file. Keys that only other agents know have no effect.

    Raises:
        GooseLikeError: the file has no front matter, or a value is missing or wrong.
    """
    text = text.replace("\r\n", "\n")
    match = _FRONT_MATTER.match(text)
    if not match:
        raise GooseLikeError(f"{file}: an agent file starts with ---, its name and description, and another ---")
    plain = _PLAIN_VALUE.sub(_quote_value, match["front"])
    source = read_yaml(file, {file: f"\n{plain}"})  # line 1 of the front matter is line 2 of the file
    data = source.data
    if isinstance(data, dict):
        known = AgentFile.model_fields.keys() - {"prompt"}
        kept = {key: value for key, value in data.items() if key in known and value is not None}
        data = {"name": file.stem, **kept, "prompt": text[match.end() :].strip()}
    return validate(AgentFile, data, source, "the front matter")


def _quote_value(match: re.Match[str]) -> str:
    return f"{match[1]}: {json.dumps(match[2], ensure_ascii=False)}"
