"""Agent files: Markdown files that define a kind of subagent, also those written for other agents."""

from collections.abc import Iterator
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel

from .bundles import list_bundles
from .front_matter import split_front_matter
from .paths import AGENTS, OTHER_AGENTS, config_folder, describe_read_error, read_user_file
from .personal_files import list_personal_files
from .profile import Effort
from .project_files import list_below
from .tool_list import ToolList
from .trust import ProjectConfig
from .yaml_source import validate


class AgentFile(FrozenModel):
    """A kind of subagent. `tools` are entries of a tool list; None means all tools. `model` may be empty."""

    name: str
    description: str
    tools: ToolList | None = None
    model: str = ""
    effort: Effort | None = None
    prompt: str = ""


def load_agent_files(project: ProjectConfig | None) -> tuple[dict[str, AgentFile], list[str]]:
    """Read the agent files of the person, of bundles and of a trusted project.

    Return them by name, and a sentence for each file that cannot be used. The person's file wins over a project's.
    """
    found: dict[str, AgentFile] = {}
    problems: list[str] = []
    for file, text in _list_files(project):
        try:
            if text is None:
                text = _read_file(file)
            agent = parse_agent_file(file, text)
        except GooseLikeError as error:
            problems.append(f"skipped: {error}")
        else:
            found.setdefault(agent.name, agent)
    return found, problems


def _list_files(project: ProjectConfig | None) -> Iterator[tuple[Path, str | None]]:
    """Yield each file with its text. The text of a person's file is None."""
    for file in sorted((config_folder() / AGENTS).glob("*.md")):
        yield file, None
    for bundle in list_bundles():
        yield from bundle.read_texts(bundle.agents)
    if project:
        for _, file in list_personal_files(project.personal, "agents"):
            yield file, None
        for folder in (AGENTS, *OTHER_AGENTS):
            for name in list_below(project.files, folder):
                yield project.get_path(name), project.files[name]


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
    keys = AgentFile.model_fields.keys() - {"prompt"}
    source, prompt = split_front_matter(file, text, keys)
    if source is None:
        raise GooseLikeError(f"{file}: an agent file starts with ---, its name and description, and another ---")
    data = source.data
    if isinstance(data, dict):
        fields = {"name": file.stem}
        for key, value in data.items():
            if key in keys and value is not None:
                fields[key] = value
        fields["prompt"] = prompt.strip()
        data = fields
    return validate(AgentFile, data, source, "the front matter")
