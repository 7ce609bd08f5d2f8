"""A toolkit of a team with rules for tool calls, prompts and compactions."""

from typing import ClassVar

from goose_like.toolkit import (
    BeforeCall,
    CallVerdict,
    CompactionEnd,
    CompactionStart,
    PromptSubmitted,
    PromptVerdict,
    Toolkit,
)


class Policy(Toolkit):
    """The rules of a team."""

    told: ClassVar[list[str]] = []

    async def before_call(self, call: BeforeCall) -> CallVerdict | None:
        text = str(call.arguments.get("text"))
        if "drop table" in text:
            return CallVerdict("deny", "tables stay")
        if "-f" in text:
            return CallVerdict(arguments={"text": text.replace("-f", "--careful")})
        return CallVerdict(context="staging is down today") if "staging" in text else None

    async def on_prompt_submitted(self, prompt: PromptSubmitted) -> PromptVerdict | None:
        return PromptVerdict("block", "it names a customer") if "ACME" in prompt.text else None

    async def before_compaction(self, compaction: CompactionStart) -> str:
        self.told.append(f"before: {compaction.focus}")
        return "the ticket number"

    async def after_compaction(self, compaction: CompactionEnd) -> None:
        self.told.append(f"after: {compaction.summary[:5]}")
