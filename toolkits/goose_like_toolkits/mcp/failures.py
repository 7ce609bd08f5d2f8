"""Failed requests and starts in words for the model."""

from typing import TYPE_CHECKING, Any

from goose_like.toolkit import ToolError

from .link import Link, describe_error, find_cause, is_lost
from .stdio import CLOSED

if TYPE_CHECKING:
    from pydantic import ValidationError

_MAX_CHARACTERS = 2_000
_LOGIN_STATUS = 401
_LOST_SESSION = "Session terminated"
"""The words of the SDK for the status 404 in a session."""


class SessionLostError(ToolError):
    """A server that has forgotten the session, as after a restart of it. It did nothing with the request."""


def explain(name: str, what: str, link: Link, error: BaseException, outlook: str) -> ToolError:
    """Explain a failed request to a server. `what` names the request, `outlook` says what follows for the server."""
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    server = f"the MCP server {name}"
    cause = find_cause(error)
    if link.status == _LOGIN_STATUS:
        return ToolError(f"{server} refuses {what}: {describe_status(name, link)}")
    if not link.is_open:
        return ToolError(
            f"{server} failed during the call of {what} ({link.describe_end()}); the call may have had an effect: "
            f"check that before you repeat it; {outlook}"
        )
    match cause:
        case _ if is_lost(cause):
            return ToolError(
                f"{server} broke off its answer for {what} ({describe_error(cause)}); the call may have had an effect: "
                "check that before you repeat it"
            )
        case MCPError() if cause.error.message == _LOST_SESSION:
            return SessionLostError(f"{server} has forgotten the session; call it again")
        case MCPError():
            return ToolError(f"{server} refuses {what}: {describe_refusal(cause)}")
        case ValidationError():
            return ToolError(f"{server} gave an answer for {what} that breaks the protocol: {describe_problem(cause)}")
        case _:
            return ToolError(f"the answer of {server} for {what} cannot be used: {describe_error(cause)}")


def explain_start(name: str, link: Link, error: BaseException) -> str:
    """Explain why a server did not start or could not be reached."""
    from mcp.shared.exceptions import MCPError

    cause = find_cause(error)
    if link.status == _LOGIN_STATUS:
        return describe_status(name, link)
    # A process that goose_like has ended gave an answer that cannot be used.
    has_ended = link.stdio is not None and link.stdio.end != CLOSED
    if is_lost(cause) or (has_ended and not isinstance(cause, MCPError)):
        return link.describe_end()
    if not isinstance(cause, MCPError):
        return describe_error(cause)
    text = describe_refusal(cause)
    if link.status >= 400:
        text += f" (HTTP {link.status})"
    return text + quote_last_words(link)


def describe_refusal(error: Any) -> str:
    """Describe an error that a server answered with."""
    text = str(error.error.message)
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}..."
    return f"{text} (error {error.error.code})"


def describe_status(name: str, link: Link) -> str:
    """Describe a refusal over HTTP that a login may change."""
    return f"it wants a login (HTTP {link.status}); the person can log in with: goose-like mcp login {name}"


def quote_last_words(link: Link) -> str:
    """Quote what a server wrote last, to append it to a sentence."""
    words = link.stdio.last_words if link.stdio else ()
    if not words:
        return ""
    return "; it said last:\n" + "\n".join(words)


def describe_problem(error: "ValidationError") -> str:
    """Describe the first problem of a validation, with its place."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}"
