"""ComponentsToolkit: each command of a ConCopilot component is a tool."""

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from goose_like.config.paths import expand_home
from goose_like.core.errors import GooseLikeError, ProfileError, UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.core.threads import run_in_daemon_thread
from goose_like.core.tool import Tool, ToolOptions, ToolSpec, accept_any, make_tool
from goose_like.toolkit import Notifier, Requirements, Toolkit, tool

from .config import Config
from .definition.config_file import Command
from .host.registry import Member, Registry
from .host.repository import Repositories, read_settings
from .surroundings import Surroundings

_GUIDANCE = (
    "Where a parameter takes an asset, its reference stands for the value: asset://ID/content, with further keys and "
    "indexes behind it."
)


class ComponentsToolkit(Toolkit):
    """Components of ConCopilot, unmodified, in a process of their own that starts with the first call."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        require_extra()
        self._settings = Config.read(self.config)
        self._registry = open_registry(self._settings, self.workspace.root)
        for member in self._registry.members.values():
            if not member.definition.as_plugin and not member.is_resource:
                self.notifier.log(
                    f"components: {member.name} is of type {member.definition.kind}, and a session has use for plugins "
                    "and resources only"
                )
        self._calls: Any = None

    @classmethod
    async def create(cls, notifier: Notifier, requires: Requirements, **kwargs: Any) -> Self:
        """Read the components in a thread."""
        return await run_in_daemon_thread(partial(cls, notifier, requires, **kwargs))

    def prompt(self) -> str:
        """Describe the components and add their prompts."""
        lines = [self._describe(member) for member in self._registry.plugins]
        if not lines:
            return ""
        return "\n".join(["Components, with their commands as tools:", *lines, _GUIDANCE])

    def tools(self) -> tuple[Tool, ...]:
        """Return a tool for each command, beside those for assets; the profile may pick among them."""
        own = {name: make_tool(getattr(self, name)) for name in self.tool_names()}
        commands = {}
        for name, member, command in self._registry.list_tools():
            commands[name] = self._build_tool(name, member, command)
        for name in commands:
            if name in own:
                text = f"a component's command has the name of a tool, {name!r}; give the component another"
                raise ProfileError(text)
        known = commands | own
        picked = known if self._settings.tools is None else self._settings.tools
        for name in picked:
            if name not in known:
                raise ProfileError(f"no tool {name!r} to pick; {did_you_mean(name, known)}", ("config", "tools"))
        return tuple(known[name] for name in picked)

    async def close(self) -> None:
        """Finalize the components and end their process."""
        if self._calls is None:
            return
        for problem in await self._calls.close():
            self.notifier.log(f"components: {problem}")

    @tool(read_only=True, title="List the assets")
    async def list_assets(self) -> str:
        """List the assets of this session, which commands gave: id, type, shape and description."""
        return str(self._get_calls().list_assets())

    @tool(read_only=True, title="Read the asset {asset_id}")
    async def get_asset(self, asset_id: str, path: str = "content", start: int = 0) -> str:
        """Read an asset or a part of it.

        Args:
            asset_id: As it is listed, or a reference such as asset://ID/content/rows/0.
            path: The keys and indexes to what is wanted, with `/` between.
            start: The character of the text to begin with, where it is long.
        """
        return str(self._get_calls().get_asset(asset_id, path, start))

    def _get_calls(self) -> Any:
        """Return what runs calls. It is imported with the first one, so that sessions start fast."""
        if self._calls is None:
            from .host.calls import ComponentCalls

            around = Surroundings(
                self.workspace, self.session, self.exchange_view, self.budget, self.notifier, self.report_progress
            )
            self._calls = ComponentCalls(self._settings, around, self._registry)
        return self._calls

    async def _call(self, member: Member, command: Command, /, **arguments: Any) -> str:
        return str(await self._get_calls().run(member, command, arguments))

    def _build_tool(self, name: str, member: Member, command: Command) -> Tool:
        spec = ToolSpec(name, command.description, command.arguments)
        options = ToolOptions(time_limit_s=None, kind="execute")
        return Tool(spec, partial(self._call, member, command), accept_any, options)

    def _describe(self, member: Member) -> str:
        try:
            prompt = member.read_prompt([self.workspace.root])
        except GooseLikeError as error:
            raise ProfileError(f"{member.name}: {error}") from error
        about = " ".join(member.definition.description.split())
        text = f"- {member.name}: {about}"
        return f"{text}\n{prompt}" if prompt else text


def open_registry(config: Config, root: Path, settings: Path | None = None) -> Registry:
    """Read the components that a profile uses, from the repositories of ConCopilot's settings and of the profile.

    `settings` is another file than ConCopilot's own.
    """
    more = [root / expand_home(folder) for folder in config.repositories]
    return Registry(config, root, Repositories.of(read_settings(settings), more))


def require_extra() -> None:
    """Raise UsageError if a package of the extra `components` is missing."""
    for module in ("concopilot", "packaging"):
        if find_spec(module) is None:
            raise UsageError(f"components need {module}, which is not installed: pip install 'goose-like[components]'")
