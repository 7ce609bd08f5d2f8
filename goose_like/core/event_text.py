"""Events as plain text, for front-ends that show no more than texts."""

from typing import assert_never

from . import events
from .message import Message, ToolResult

RESULT_LINES = 5
LINE_CHARACTERS = 200

_CONTROL_CODES = (*range(9), *range(11, 32), *range(127, 160))
_ESCAPES = {code: f"\\x{code:02x}" for code in _CONTROL_CODES}
"""Control characters, with which a text of a model could take over a terminal."""


def format_log(event: events.Event) -> str:
    """Return the lasting text of an event. It is empty for events that have none, and for parts of a later text."""
    match event:
        case events.MessageCompleted(message=message, is_cut=is_cut):
            return _format_answer(message, is_cut)
        case events.ToolStarted(call=call, title=title):
            return f"▸ {title or call.name}"
        case events.ToolFinished(result=result):
            return _cut_result(result)
        case events.PlanUpdated(tasks=tasks):
            return "\n".join(f"{task.mark} {task.description}" for task in tasks)
        case events.Logged(text=text):
            return text
        case events.FileChanged(diff=diff):
            return diff
        case events.Asked(question=question):
            return f"{question.text}\n{question.detail}".rstrip()
        case events.Answered(question=question, answer=answer):
            return _describe_answer(question, answer)
        case events.Reminded(text=text, reason=reason):
            return _format_reminder(text, reason)
        case events.Compacted(is_routine=is_routine):
            return "" if is_routine else "(the context was shortened)"
        case events.Rewound():
            return "(the conversation went back to an earlier point)"
        case events.ArtifactShown(artifact=artifact):
            return f"{artifact.name} ({artifact.kind})\n{artifact.description}".rstrip()
        case events.PromptsSuggested(prompts=prompts):
            return "\n".join(f"→ {prompt}" for prompt in prompts)
        case events.TurnFinished():
            return _describe_end(event)
        case events.TextDelta() | events.ThinkingDelta() | events.ToolProgress():
            return ""  # the message or the result follows
        case events.Status() | events.Retrying() | events.SubagentEvent():
            return ""  # `format_status` has them
        case events.TurnStarted() | events.Interjected():
            return ""  # the person typed it
        case events.SessionStarted() | events.ModeRestricted() | events.RunFinished():
            return ""  # the front-end did this
        case events.PromptRecorded() | events.PromptChanged():
            return ""  # for the model
        case events.UsageRecorded() | events.StateSaved() | events.Refused() | events.CommandFinished():
            return ""  # for the session file
        case _:
            assert_never(event)


def format_status(event: events.Event) -> str | None:
    """Return the state that an event begins. An empty text ends the last one, and None changes nothing."""
    match event:
        case events.Status(text=text):
            return text
        case events.TurnStarted() | events.ToolFinished():
            return "thinking"
        case events.ToolStarted(call=call):
            return f"running {call.name}"
        case events.Retrying(text=text):
            return f"retrying: {text}"
        case events.SubagentEvent(event=inner):
            return format_status(inner) or None
        case events.TurnFinished():
            return ""
        case _:
            return None


def escape_controls(text: str) -> str:
    """Replace control characters, except tabs and line ends."""
    return text.translate(_ESCAPES)


def _format_answer(message: Message, is_cut: bool) -> str:
    text = message.text.strip()
    if is_cut:
        return f"{text}\n(cut off)".lstrip()
    return text


def _format_reminder(text: str, reason: events.ReminderReason) -> str:
    is_shown_elsewhere = reason in ("context", "shown")
    if is_shown_elsewhere:
        return ""
    words = " ".join(text.split())
    return _cut_line(f"reminder to the model: {words}")


def _cut_result(result: ToolResult) -> str:
    lines = result.output.strip("\n").split("\n")
    shown = []
    for line in lines[:RESULT_LINES]:
        shown.append(_cut_line(line.rstrip()))
    hidden_count = len(lines) - len(shown)
    if hidden_count:
        shown.append(f"[{hidden_count:,} more lines]")
    text = "\n".join(shown)
    if result.is_error:
        return f"error: {text}"
    return text


def _cut_line(line: str) -> str:
    if len(line) <= LINE_CHARACTERS:
        return line
    return f"{line[:LINE_CHARACTERS]}…"


def _describe_answer(question: events.Question, answer: events.Answer) -> str:
    if question.kind == "text":
        verdict = "answered"
    else:
        verdict = "allowed" if answer.is_allowed else "denied"
    if answer.by == "nobody":
        verdict = "denied, as nobody could be asked"
    if answer.text:
        return f"{verdict}: {answer.text}"
    return verdict


def _describe_end(event: events.TurnFinished) -> str:
    if event.reason == "stop":
        return event.detail
    reason = event.reason.replace("_", " ")
    if event.detail:
        return f"{reason}: {event.detail}"
    return reason
