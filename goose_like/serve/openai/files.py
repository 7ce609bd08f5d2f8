"""PDF files in messages: a model gets them as such, or else their text."""

from dataclasses import replace

from goose_like.core.images import is_pdf
from goose_like.core.threads import run_in_thread
from goose_like.serve import body
from goose_like.serve.documents.reader import DocumentReader
from goose_like.serve.service import Service

from .request import AnswerRequest, ContentPart, FilePart, RequestError, TextPart, ToolMessage, UserMessage

_PREFIX = "data:application/pdf;base64,"


async def read_files(request: AnswerRequest, service: Service) -> AnswerRequest:
    """Replace PDF files with their text, if the model takes no PDF files.

    Raises:
        RequestError: a file cannot be read.
    """
    if service.models.processor.takes_documents or service.documents is None:
        return request
    messages = []
    for place, message in request.messages:
        may_have_files = isinstance(message, UserMessage | ToolMessage)
        if may_have_files and any(isinstance(part, FilePart) for part in message.content):
            content = [await _read_part(part, place, service.documents) for part in message.content]
            message = message.model_copy(update={"content": content})
        messages.append((place, message))
    return replace(request, messages=tuple(messages))


async def _read_part(part: ContentPart, place: str, reader: DocumentReader) -> ContentPart:
    if not isinstance(part, FilePart):
        return part
    data = await run_in_thread(decode_file, part, place)  # it may be large
    document = await reader.read(data, "pdf")
    if document.problem:
        text = f"{place}: {part.filename} cannot be read: {document.problem}"
        raise RequestError(text, f"{place}.content", "invalid_file")
    return TextPart(type="text", text=f"\n[{part.filename}]\n{document.text}")


def decode_file(part: FilePart, place: str) -> bytes:
    """Return the bytes of a PDF file.

    Raises:
        RequestError: the message holds no PDF file.
    """
    url = part.file_data or ""
    if not url.startswith(_PREFIX):
        text = f"{place}: this server keeps and fetches no files; send a PDF file itself, as `file_data`: {_PREFIX}..."
        raise RequestError(text, f"{place}.content", "invalid_file")
    data = decode_base64(url.removeprefix(_PREFIX), "file", place)
    if not is_pdf(data):
        raise RequestError(f"{place}: {part.filename} is no PDF file", f"{place}.content", "invalid_file")
    return data


def decode_base64(encoded: str, kind: str, place: str) -> bytes:
    """Decode the base64 text of an image or a file.

    Raises:
        RequestError: it is no base64.
    """
    try:
        return body.decode_base64(encoded)
    except ValueError as error:
        text = f"{place}: the {kind} is not base64: {error}"
        raise RequestError(text, f"{place}.content", f"invalid_{kind}") from None
