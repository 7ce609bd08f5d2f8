"""Tool calls: from the arguments of a model to what it reads of a command's response."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from goose_like.toolkit import ToolError

from ..config import Config
from ..definition.config_file import Command
from ..definition.references import Reference, read_reference
from ..definition.validation import CheckedValue, check_parameter, check_response, get_parameter
from ..surroundings import Surroundings
from .assets import AssetStore, format_part, to_content
from .registry import Member, Registry
from .requests import RequestHandler
from .runtime import SessionRuntime

_MAX_SHOWN_CHARACTERS = 2_000


class ComponentCalls:
    """The tool calls of a session."""

    def __init__(self, config: Config, around: Surroundings, registry: Registry) -> None:
        self._config = config
        self._around = around
        self._assets = AssetStore(around.session)
        self._has_printed = False
        answer = RequestHandler(around, config.llm).answer
        heard = replace(around, show=self._show)
        self._runtime = SessionRuntime(config, heard, registry, self._assets, answer)

    async def run(self, member: Member, command: Command, arguments: Mapping[str, Any]) -> str:
        """Run a command, after a question if the policy wants one; return the response with notes.

        Raises:
            ToolError: the arguments are wrong, or the command failed.
            DeniedError: it was not allowed.
        """
        workspace = self._around.workspace
        given = get_parameter(command.parameter, command.is_required, arguments)
        checked = check_parameter(command.parameter, command.is_required, given)
        if checked.problems:
            problems = "; ".join(checked.problems)
            raise ToolError(f"wrong arguments for {member.name}'s {command.name}: {problems}")
        line = json.dumps(checked.value, ensure_ascii=False)
        shown = line
        if len(line) > _MAX_SHOWN_CHARACTERS:
            shown = f"{line[:_MAX_SHOWN_CHARACTERS]}..."
        subject = f"{member.key} {command.name} {line}"
        await workspace.require_permission("command", subject, f"{member.name} {command.name}: {shown}")
        if workspace.mode != "read-only":
            await workspace.announce_change(None, [member.name, command.name, line])
        self._has_printed = False
        resolve = partial(self._resolve, command, checked)
        try:
            response, notes = await self._runtime.run_command(member, command.name, resolve)
        except ToolError as error:
            changes = await workspace.inspect_changes()
            raise ToolError(_add_notes(str(error), changes)) from error
        differences = "; ".join(check_response(command.response, response))
        if differences:
            notes = [*notes, f"the answer is not as {member.name} describes it: {differences}"]
        changes = await workspace.inspect_changes()
        text = self._assets.shorten(response, f"{member.name} {command.name}", self._config.asset_characters)
        if self._has_printed:  # screens show what a call prints in place of its result
            self._around.show(f"{text}\n")
        return _add_notes(text, [*notes, *changes])

    def list_assets(self) -> str:
        """List the assets."""
        return "\n".join(self._assets.list_lines()) or "there are no assets yet"

    def get_asset(self, asset_id: str, path: str, start: int) -> str:
        """Format an asset or a part of it. Raise ToolError if there is none."""
        reference = read_reference(asset_id) or Reference(asset_id)
        steps = reference.field_path or tuple(filter(None, path.split("/")))
        return format_part(self._assets.retrieve(Reference(reference.asset_id, steps)), start)

    def _show(self, text: str) -> None:
        self._has_printed = True
        self._around.show(text)

    async def close(self) -> list[str]:
        """End everything; return what went wrong."""
        return await self._runtime.close()

    def _resolve(self, command: Command, checked: CheckedValue) -> tuple[Any, list[Any]]:
        """Put the values of references into a parameter. List those that only the worker has, with their places."""
        value = checked.value
        live: list[Any] = []
        for path in checked.references:
            reference = read_reference(_get(value, path))
            assert reference is not None
            if self._assets.is_live(reference):
                fields = {"asset_id": reference.asset_id, "field_path": list(reference.field_path)}
                live.append([path, fields])
            else:
                value = _replace(value, path, self._assets.retrieve(reference))
        if checked.references:
            again = check_parameter(command.parameter, command.is_required, to_content(value))
            if again.problems:
                raise ToolError(f"the values of the references do not fit: {'; '.join(again.problems)}")
        return value, live


def _get(value: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value


def _replace(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """Return a value with another one at a path; everything beside the path is shared."""
    if not path:
        return new
    first, *rest = path
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[first] = _replace(copy[first], tuple(rest), new)
    return copy


def _add_notes(text: str, notes: Iterable[str]) -> str:
    return "\n".join([text, *(f"[{note}]" for note in notes)])
