"""Calls: from the arguments of a tool to what a model reads of a command's answer."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from goose_like.toolkit import ToolError
from goose_like_toolkits.components.assets.assets import Assets
from goose_like_toolkits.components.assets.words import part
from goose_like_toolkits.components.described.arguments import check, check_response, given
from goose_like_toolkits.components.described.definition import Command, commands_of
from goose_like_toolkits.components.described.references import Reference, read_reference

from .config import Config
from .ensemble import Ensemble
from .member import Member
from .roster import Roster
from .sharing import Sharing
from .surroundings import Surroundings

_SHOWN_CHARACTERS = 2_000


class Calls:
    """What a session's model does with components."""

    def __init__(self, config: Config, around: Surroundings, roster: Roster) -> None:
        self._config = config
        self._around = around
        self._sharing = Sharing(Assets(around.session))
        self._ensemble = Ensemble(config, around, roster, self._sharing)
        self._commands: dict[tuple[Path, str], Command] = {}

    async def run(self, member: Member, name: str, arguments: Mapping[str, Any]) -> str:
        """The answer of a command, after asking where that is to be asked, with what else is to be told.

        Raises:
            ToolError: the arguments are wrong, or the command failed.
            DeniedError: it was not allowed.
        """
        command, workspace = self._command(member, name), self._around.workspace
        checked = check(command.parameter, given(command.parameter, arguments))
        if checked.faults:
            raise ToolError(f"wrong arguments for {member.name}'s {name}: {'; '.join(checked.faults)}")
        line = json.dumps(checked.value, ensure_ascii=False)
        await workspace.require_permission(
            "command", f"{member.key} {name} {line}", f"{member.name} {name}: {_clipped(line)}"
        )
        if workspace.mode != "read-only":
            await workspace.announce_change(None, [member.name, name, line])
        try:
            response, notes = await self._ensemble.command(member, name, command.parameter, checked)
        except ToolError as error:
            raise ToolError(_with_notes(str(error), await workspace.inspect_changes())) from error
        if deviations := check_response(command.response, response):
            notes = [*notes, f"the answer is not as {member.name} describes it: {'; '.join(deviations)}"]
        left = await workspace.inspect_changes()
        text = self._sharing.shown(response, f"{member.name} {name}", self._config.asset_characters)
        return _with_notes(text, [*notes, *left])

    def listed(self) -> str:
        """The assets that there are."""
        return "\n".join(self._sharing.listed()) or "there are no assets yet"

    def asset(self, asset_id: str, path: str, start: int) -> str:
        """An asset or a part of it, as text.

        Raises:
            ToolError: there is none, or the path leads nowhere.
        """
        named = read_reference(asset_id) or Reference(asset_id)
        steps = named.field_path or tuple(filter(None, path.split("/")))
        return part(self._sharing.retrieve(Reference(named.asset_id, steps)), start)

    async def close(self) -> list[str]:
        """Ends what runs; gives what went wrong."""
        return await self._ensemble.close()

    def _command(self, member: Member, name: str) -> Command:
        """A command as its config.yaml described it at its first call."""
        key = member.file, name
        if key not in self._commands:
            self._commands |= {(member.file, each.name): each for each in commands_of(member.file)}
        if key not in self._commands:
            raise ToolError(f"{member.file} has no command {name!r} any more; tell the person to start a new session")
        return self._commands[key]


def _with_notes(text: str, notes: Iterable[str]) -> str:
    return "\n".join([text, *(f"[{note}]" for note in notes)])


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
