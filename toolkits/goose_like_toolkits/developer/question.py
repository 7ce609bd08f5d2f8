"""Questions of the model to the person."""

from collections.abc import Sequence

from goose_like.core.events import Question
from goose_like.toolkit import Notifier, ToolError

MAX_CHOICES = 4
NOBODY = "nobody is here; decide, and say in your answer what you assumed"


async def ask_person(notifier: Notifier, question: str, choices: Sequence[str]) -> str:
    """Ask a question, and return the answer for the model. The number of a choice stands for its text.

    Raises:
        ToolError: there is no question, or there are too many choices.
    """
    if not question.strip():
        raise ToolError("the question is empty; say what the person shall decide")
    if len(choices) > MAX_CHOICES:
        raise ToolError(f"{len(choices)} choices are too many; give at most {MAX_CHOICES}")
    numbered = {str(number): choice for number, choice in enumerate(choices, 1)}
    lines = [f"{number}. {choice}" for number, choice in numbered.items()]
    asked = Question(
        kind="text",
        subject="ask_user",
        text=question.strip(),
        detail="\n".join(lines),
    )
    answer = await notifier.ask(asked)
    if answer.by == "nobody":
        return NOBODY
    text = answer.text.strip()
    if not text:
        return "the person gave no answer; decide, and say in your answer what you assumed"
    number = text.rstrip(".")
    return "the person answers: " + numbered.get(number, text)
