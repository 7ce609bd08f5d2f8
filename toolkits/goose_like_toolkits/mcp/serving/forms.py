"""Questions of goose_like as forms of the protocol, and their answers."""

import json

from mcp_types import ClientCapabilities, ElicitRequestFormParams, ElicitResult

from goose_like.core.event_text import escape_controls
from goose_like.core.events import Answer, Question

_CHOICES = {
    "allow": "allow once",
    "allow_prefix": "allow in this session: {prefix}",
    "allow_always": "always allow",
    "deny": "deny",
}
_FIELD = "answer"


def takes_forms(capabilities: ClientCapabilities | None) -> bool:
    """Return whether a client can show forms. One that names no kind of question means forms."""
    asked = capabilities.elicitation if capabilities else None
    if asked is None:
        return False
    return asked.form is not None or asked.url is None


def make_form(question: Question) -> ElicitRequestFormParams:
    """Make the form of a question: its own, a choice among its options, or a line of text."""
    text = escape_controls(f"{question.text}\n{question.detail}".strip())
    if question.form:
        return ElicitRequestFormParams(message=text, requested_schema=question.form)
    field: dict[str, object] = {"type": "string", "title": "Answer"}
    choices = _list_choices(question)
    if choices:
        field["enum"] = list(choices)
    schema = {"type": "object", "properties": {_FIELD: field}, "required": [_FIELD]}
    return ElicitRequestFormParams(message=text, requested_schema=schema)


def read_answer(question: Question, result: ElicitResult) -> Answer:
    """Read the answer of a person. Everything but a clear yes is a no."""
    content = result.content or {}
    if question.form and result.action == "accept":
        return Answer(choice="allow", by="person", text=json.dumps(content, ensure_ascii=False))
    given = content.get(_FIELD)
    if result.action != "accept" or not isinstance(given, str):
        return Answer(choice="deny", by="person")
    if question.kind == "text":
        return Answer(choice="allow", by="person", text=given)
    choice = _list_choices(question).get(given, "deny")
    return Answer.model_validate({"choice": choice, "by": "person"})


def _list_choices(question: Question) -> dict[str, str]:
    """Return the choices of a question by the words that people read."""
    return {_CHOICES[option.choice].format(prefix=question.prefix): option.choice for option in question.options}
