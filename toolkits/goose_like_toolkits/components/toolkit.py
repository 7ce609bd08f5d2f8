"""ComponentsToolkit: each command of a ConCopilot component is a tool."""

from functools import partial
from typing import Any, Self

from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.spelling import did_you_mean
from goose_like.core.threads import run_in_daemon_thread
from goose_like.core.tool import AnyArguments, Tool, ToolOptions, ToolSpec, make_tool
from goose_like.toolkit import Notifier, Requirements, Toolkit, tool
from goose_like_toolkits.components.commands.extra import require_extra
from goose_like_toolkits.components.described.entry import Offer

from .config import Config
from .member import Member
from .roster import open_roster
from .surroundings import Surroundings


class ComponentsToolkit(Toolkit):
    """Components of ConCopilot, unmodified, in a process of their own that is started with the first call."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        require_extra()
        self._asked = Config.read(self.config)
        self._roster = open_roster(self._asked, self.workspace, notifier)
        self._calls: Any = None

    @classmethod
    async def create(cls, notifier: Notifier, requires: Requirements, **kwargs: Any) -> Self:
        """One whose components are here: what has to be fetched is, and the person may stop that."""
        return await run_in_daemon_thread(partial(cls, notifier, requires, **kwargs))

    def prompt(self) -> str:
        """Which components there are, and what each says of itself."""
        told = [self._told(member) for member in self._roster.plugins]
        return "\n".join(["Components, with their commands as tools:", *told, _GUIDANCE]) if told else ""

    def tools(self) -> tuple[Tool, ...]:
        """A tool for each command, beside those for assets; the config may pick among all."""
        own = {name: make_tool(getattr(self, name)) for name in self.tool_names()}
        theirs = {name: self._tool_of(name, member, offer) for name, member, offer in self._roster.tools()}
        if taken := [name for name in theirs if name in own]:
            raise ProfileError(
                f"a component's command has the name of a tool, {taken[0]!r}; give the component another"
            )
        there = theirs | own
        picked = there if self._asked.tools is None else self._asked.tools
        for name in picked:
            if name not in there:
                raise ProfileError(f"no tool {name!r} to pick; {did_you_mean(name, there)}", ("config", "tools"))
        return tuple(there[name] for name in picked)

    async def close(self) -> None:
        """Has components finalised, resources last, and ends their process."""
        for fault in await self._calls.close() if self._calls else ():
            self.notifier.log(f"components: {fault}")

    @tool
    async def list_assets(self) -> str:
        """The assets of this session, that commands gave or kept: what each is, and how large."""
        return str(self._at_work().listed())

    @tool
    async def get_asset(self, asset_id: str, path: str = "content", start: int = 0) -> str:
        """Read an asset or a part of it.

        Args:
            asset_id: As it is listed, or a reference such as asset://ID/content/rows/0.
            path: The keys and indexes to what is wanted, with `/` between.
            start: The character of the text to begin with, where it is long.
        """
        return str(self._at_work().asset(asset_id, path, start))

    def _at_work(self) -> Any:
        """What a call takes; imported with the first one, as most of a session's start would else be for it."""
        if self._calls is None:
            from .calls import Calls

            around = Surroundings(
                self.workspace, self.session, self.exchange_view, self.limits, self.notifier, self.report_progress
            )
            self._calls = Calls(self._asked, around, self._roster)
        return self._calls

    async def _call(self, member: Member, command: str, /, **arguments: Any) -> str:
        return str(await self._at_work().run(member, command, arguments))

    def _tool_of(self, name: str, member: Member, offer: Offer) -> Tool:
        spec = ToolSpec(name, offer.description, offer.arguments)
        return Tool(spec, partial(self._call, member, offer.name), AnyArguments, ToolOptions(time_limit_s=None))

    def _told(self, member: Member) -> str:
        try:
            prompt = member.prompt([self.workspace.root])
        except GooseLikeError as error:
            raise ProfileError(f"{member.name}: {error}") from error
        about = " ".join(member.entry.description.split())
        return f"- {member.name}: {about}" + (f"\n{prompt}" if prompt else "")


_GUIDANCE = (
    "Where a parameter takes an asset, its reference stands for the value: asset://ID/content, with further keys and "
    "indexes behind it."
)
