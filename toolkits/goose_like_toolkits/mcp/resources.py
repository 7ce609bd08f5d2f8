"""Resources of servers, as the model reads them."""

from .server_state import ServerState

_MAX_RESOURCES = 100


def list_resources(state: ServerState) -> str:
    """List the resources of a server for the model, in lines."""
    resources = state.current.resources if state.current else ()
    lines = []
    for resource in resources[:_MAX_RESOURCES]:
        about = resource.description or resource.name
        lines.append(f"{resource.uri}  {' '.join(about.split())}".rstrip())
    if len(resources) > _MAX_RESOURCES:
        lines.append(f"[{len(resources) - _MAX_RESOURCES} more]")
    return "\n".join(lines) or f"the MCP server {state.name!r} lists no resources"
