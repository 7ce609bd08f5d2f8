"""ComponentsToolkit: each command of a ConCopilot component is a tool."""

import json
from functools import partial
from typing import Any

from goose_like.errors import ProfileError
from goose_like.tool import AnyArguments, Marks, Tool, ToolSpec
from goose_like.toolkit import Notifier, Requirements, ToolError, Toolkit, tool

from .assets.assets import Assets
from .assets.words import part
from .config import Config
from .described.arguments import check, check_response, given
from .described.definition import Command
from .described.kinds import schema
from .described.references import Reference, read_reference
from .roster import Member, open_roster
from .sharing import Sharing
from .surroundings import Surroundings

_NAME = "components"
_SHOWN_CHARACTERS = 2_000


class ComponentsToolkit(Toolkit):
    """Components of ConCopilot, unmodified, in a process of their own that is started with the first call."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._asked = Config.read(self.config)
        self._roster = open_roster(self._asked, self.workspace.root, notifier.log)
        self._sharing = Sharing(Assets(self.session))
        self._ensemble: Any = None

    def prompt(self) -> str:
        """Which components there are, and what each says of itself."""
        told = [self._told(member) for member in self._roster.plugins]
        if not told:
            return ""
        return "\n".join(["Components, with their commands as tools:", *told, _GUIDANCE])

    def tools(self) -> tuple[Tool, ...]:
        """A tool for each command, beside those for assets; the config may pick among all."""
        theirs = {name: self._tool_of(name, member, command) for name, member, command in self._roster.tools()}
        own = {made.name: made for made in super().tools()}
        if taken := [name for name in theirs if name in own]:
            raise ProfileError(f"a component's command has the name of a tool, {taken[0]!r}; rename the component")
        return (*theirs.values(), *own.values())

    async def close(self) -> None:
        """Has components finalised, resources last, and ends their process."""
        if self._ensemble:
            for fault in await self._ensemble.close():
                self.notifier.log(f"components: {fault}")

    @tool
    async def list_assets(self) -> str:
        """The assets of this session, that commands gave or kept: what each is, and how large."""
        return "\n".join(self._sharing.listed()) or "there are no assets yet"

    @tool
    async def get_asset(self, asset_id: str, path: str = "content", start: int = 0) -> str:
        """Read an asset or a part of it.

        Args:
            asset_id: As it is listed, or a reference such as asset://ID/content/rows/0.
            path: The keys and indexes to what is wanted, with `/` between.
            start: The character of the text to begin with, where it is long.
        """
        named = read_reference(asset_id) or Reference(asset_id)
        steps = named.field_path or tuple(path.strip("/").split("/"))
        return part(self._sharing.assets.retrieve(Reference(named.asset_id, steps)), start)

    async def _call(self, member: Member, command: Command, /, **arguments: Any) -> str:
        checked = check(command.parameter, given(command.parameter, arguments))
        if checked.faults:
            raise ToolError(f"wrong arguments for {member.name}'s {command.name}: {'; '.join(checked.faults)}")
        param, live = self._sharing.resolved(command.parameter, checked)
        line = json.dumps(checked.value, ensure_ascii=False)
        subject = f"{member.key} {command.name} {line}"
        await self.workspace.permit("command", subject, f"component {member.name}: {command.name} {_clipped(line)}")
        if self.workspace.mode != "read-only":
            await self.workspace.tell_change(None, [member.name, command.name, line])
        asked = {"command": command.name, "param": param, "live": live, "assets": self._sharing.ids}
        answer, notes = await self._at_work().command(member, asked, self._asked.timeout_s)
        self._sharing.take(answer["assets"])
        response = answer["response"]
        deviations = check_response(command.response, response)
        if deviations:
            notes = [*notes, f"the answer is not as {member.name} describes it: {'; '.join(deviations)}"]
        left = await self.workspace.inspect_changes()
        text = self._sharing.shown(response, f"{member.name} {command.name}", self._asked.asset_characters)
        return "\n".join([text, *(f"[{note}]" for note in (*notes, *left))])

    def _at_work(self) -> Any:
        """The ensemble, which is imported with the first call: most of a session's start would else be for it."""
        if self._ensemble is None:
            from .ensemble import Ensemble

            around = Surroundings(
                self.workspace, self.session, self.exchange_view, self.limits, self.notifier, self.progress
            )
            self._ensemble = Ensemble(self._asked, around, self._roster, self._sharing)
        return self._ensemble

    def _tool_of(self, name: str, member: Member, command: Command) -> Tool:
        spec = ToolSpec(name, command.description, schema(command.parameter))
        return Tool(spec, partial(self._call, member, command), AnyArguments, Marks(time_limit_s=None))

    def _told(self, member: Member) -> str:
        prompt = member.definition.prompt(member.file.parent).strip()
        about = " ".join(member.definition.description.split())
        return f"- {member.name}: {about}" + (f"\n{prompt}" if prompt else "")


_GUIDANCE = (
    "Where a parameter takes an asset, its reference stands for the value: asset://ID/content, with further keys and "
    "indexes behind it."
)


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
