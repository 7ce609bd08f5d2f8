"""What toolkits offer for reading, as resources of the protocol."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import mcp_types as types
from mcp.shared.exceptions import MCPError

from goose_like.agent.exchange import Exchange
from goose_like.agent.toolkit import Resource, Toolkit
from goose_like.agent.toolkit_hooks import toolkit_errors
from goose_like.config.paths import describe_read_error
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.core.message import ToolResult
from goose_like.core.tool import InnerCall

from .content import read_image
from .saved_files import ResourceContents, SavedFiles


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a server: those of its toolkits. A tool reads each, so that the same rules hold."""

    exchange: Exchange
    toolkits: Sequence[str]

    def has_any(self) -> bool:
        """Return whether a toolkit may offer resources. They may come while the server runs."""
        return any(type(toolkit).resources is not Toolkit.resources for _, toolkit in self._iterate_toolkits())

    def list_all(self) -> list[types.Resource]:
        """List the resources with an address of their own."""
        resources = []
        for each in self._collect():
            if each.is_template:
                continue
            description = each.description or None
            media_type = each.media_type or None
            listed = types.Resource(uri=each.uri, name=each.name, description=description, mime_type=media_type)
            resources.append(listed)
        return resources

    def list_templates(self) -> list[types.ResourceTemplate]:
        """List the templates of addresses."""
        templates = []
        for each in self._collect():
            if each.is_template:
                description = each.description or None
                template = types.ResourceTemplate(uri_template=each.uri, name=each.name, description=description)
                templates.append(template)
        return templates

    def find_call(self, uri: str) -> InnerCall:
        """Find the call that reads a resource.

        Raises:
            MCPError: there is no such resource.
        """
        try:
            for name, toolkit in self._iterate_toolkits():
                with toolkit_errors(name):
                    call = toolkit.resource_call(uri)
                if call:
                    return call
        except GooseLikeError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri!r}", {"uri": uri})

    def build_result(self, uri: str, result: ToolResult, files: SavedFiles) -> types.ReadResourceResult:
        """Build the contents of a resource: its text, and its images and files.

        Raises:
            MCPError: a file cannot be read.
        """
        session = self.exchange.session
        whole = result.model_copy(update={"output": self._read_whole(result)})
        text, blobs = read_contents(whole, files, session.outputs)
        media_type = "text/plain"
        if not blobs:
            media_type = next((each.media_type for each in self._collect() if each.uri == uri), "") or media_type
        contents = [block.model_copy(update={"uri": uri}) for block in blobs]
        if text or not blobs:
            contents.insert(0, types.TextResourceContents(uri=uri, mime_type=media_type, text=text))
        return types.ReadResourceResult(contents=contents)

    def _read_whole(self, result: ToolResult) -> str:
        """Return the text of a result, also if it is too long for a model."""
        file = self.exchange.session.output_path(result.call_id)
        return file.read_text(errors="replace") if file.exists() else result.output

    def _collect(self) -> list[Resource]:
        resources: list[Resource] = []
        try:
            for name, toolkit in self._iterate_toolkits():
                with toolkit_errors(name):
                    resources += toolkit.resources()
        except GooseLikeError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        return resources

    def _iterate_toolkits(self) -> Iterator[tuple[str, Toolkit]]:
        for name in self.toolkits:
            yield name, self.exchange.hooks.toolkits[name]


def read_contents(result: ToolResult, files: SavedFiles, outputs: Path) -> tuple[str, list[ResourceContents]]:
    """Read the text of a resource, without the notes about its images and files, and these.

    Raises:
        MCPError: a file cannot be read.
    """
    try:
        saved = files.read_all(result)
        images = [read_image(image, outputs) for image in result.images]
    except (OSError, ValueError) as error:
        reason = describe_read_error(error)
        raise MCPError(types.INTERNAL_ERROR, f"the content of the resource cannot be read: {reason}") from error
    image_notes = [f"[image {image.source}]" for image in result.images]
    lines = []
    for line in result.output.split("\n"):
        names_file = any(str(file) in line for file in saved)
        if not names_file and line not in image_notes:
            lines.append(line)
    return "\n".join(lines), [*images, *saved.values()]
