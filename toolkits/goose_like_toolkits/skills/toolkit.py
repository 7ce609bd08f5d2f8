"""The class of the toolkit `skills`."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from goose_like.agent.mentions import build_message
from goose_like.agent.slash_command import SlashCommand
from goose_like.agent.turn_request import TurnRequest
from goose_like.config.folder_marks import describe_difference, mark_folder
from goose_like.config.tool_list import translate_entry
from goose_like.config.trust import trust_marked_folder
from goose_like.core.errors import DeniedError
from goose_like.core.notifier import ask_or_deny
from goose_like.core.spelling import did_you_mean
from goose_like.toolkit import CompactionStart, Notifier, Question, Requirements, Tool, ToolError, Toolkit, tool

from .loaded import LoadedSkills, choose_texts
from .start import find_start

if TYPE_CHECKING:
    from goose_like.agent.slash_context import SlashContext

    from .catalog import Catalog, Skill
    from .skill_file import SkillFile

_MAX_SUMMARY_CHARS = 100
_MAX_OUTPUT_BYTES = 100_000
"""Instructions that are cut in the middle mislead. A few public skills have 70,000 bytes."""
_OUTSIDE = "domain:"
"""Rules that would open a way out of the sandbox."""


class SkillsToolkit(Toolkit):
    """SKILL.md folders of the project, the person and installed packages."""

    is_confined: ClassVar[bool] = True
    is_read_only: ClassVar[bool] = True

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        start = find_start(self.project)
        self.workspace.open_folders(start.opened)
        self._listing = start.listing
        self._problems = start.problems
        self._loaded = LoadedSkills(self.session.history)
        self._accepted: dict[str, str] = {}
        self._logged: set[str] = set()

    @cached_property
    def _catalog(self) -> "Catalog":
        """All skills. Few runs need more than their listing."""
        from .catalog import find_skills

        return find_skills(self.project)

    @override
    def prompt(self) -> str:
        """Return the listing. It stays the same in a resumed session: new skills are found by the search."""
        if not self._listing:
            return ""
        known = self.session.history.context.known_prompt
        if known:
            from .listing import HEADING

            for paragraph in known.system.split("\n\n"):
                if paragraph.startswith(HEADING):
                    return paragraph
        return self._listing

    @override
    def prompt_parts(self) -> Mapping[str, str]:
        return {"skills": self.prompt()}

    @override
    def tools(self) -> tuple[Tool, ...]:
        if not self._listing:
            return ()
        return super().tools()

    @override
    def commands(self) -> tuple[SlashCommand, ...]:
        commands: list[SlashCommand] = []
        for skill in self._catalog.skills.values():
            command = SlashCommand(
                skill.name,
                skill.description[:_MAX_SUMMARY_CHARS],
                partial(self._send, skill),
                usage="[TASK]",
                source=skill.file,
                in_run=True,
                gives_way=True,
            )
            commands.append(command)
        return tuple(commands)

    @override
    async def on_turn_start(self) -> None:
        for problem in self._problems:
            if problem not in self._logged:
                self._logged.add(problem)
                self.notifier.log(f"skipped: {problem}")

    @tool(
        read_only=True,
        kind="read",
        aliases=("skill", "activate_skill", "load_skill", "read_skill"),
        time_limit_s=None,
        title="Use the skill {name}",
        output_bytes=_MAX_OUTPUT_BYTES,
    )
    async def use_skill(self, name: str) -> str:
        """Read a skill: its instructions and the names of its files. Do this before a task that it covers.

        Args:
            name: as listed, or as `search_skills` found it
        """
        skill = self._find(name)
        content, text = await self._load(skill)
        self.workspace.allow_in_turn(self._list_rules(content))
        return text

    @tool(read_only=True, kind="search", title="Search skills: {query}")
    def search_skills(self, query: str) -> str:
        """Search the descriptions of all skills, also of those that are not listed or were added since.

        Args:
            query: words of the task
        """
        from .listing import format_results, search

        self._update()
        found, count = search(query, self._catalog.skills.values())
        if not found:
            total = len(self._catalog.skills)
            raise ToolError(f"none of {total:,} skills has these words; try others, or do the task without a skill")
        return format_results(found, count)

    def _update(self) -> None:
        """Find skills that were added since. The listing stays as it is."""
        self.__dict__.pop("_catalog", None)
        self._problems = self._catalog.problems

    def _find(self, name: str) -> "Skill":
        skill = self._catalog.find(name)
        if skill is None:
            self._update()
            skill = self._catalog.find(name)
        if skill is None:
            hint = did_you_mean(name, self._catalog.skills)
            raise ToolError(f"there is no skill {name!r}; {hint} Search with `search_skills`")
        return skill

    async def _load(self, skill: "Skill") -> "tuple[SkillFile, str]":
        """Return the content of a skill and its text for the model. Ask about files that changed after the trust.

        Raises:
            DeniedError: the person does not want to use the changed files.
            GooseLikeError: the skill cannot be read any more.
        """
        from .catalog import read_skill
        from .skill_text import write_skill

        if skill.trusted_name:
            await self._check_folder(skill)
        content = read_skill(skill, self.project)
        return content, write_skill(skill, content)

    async def _check_folder(self, skill: "Skill") -> None:
        """Check that the files beside a SKILL.md of the project are those that the person trusted."""
        assert self.project
        name = skill.trusted_name
        mark = mark_folder(skill.path.parent, skill.path.name)
        trusted = self._accepted.get(name, self.project.folders.get(name, ""))
        if mark == trusted:
            return
        changes = describe_difference(trusted, mark)
        question = Question(
            kind="trust",
            subject=str(skill.path.parent),
            text=f"files of this project's skill {skill.name!r} are not those that you trusted: {changes}. Use them?",
            detail=f"{skill.path.parent}, each file with its SHA-256 and its size:\n{mark}",
        )
        answer = await ask_or_deny(self.notifier, question, self.notifier.log)
        if not answer.is_allowed:
            who = "the person said no" if answer.by == "person" else "nobody is there to allow them"
            why = f"{who}: {answer.text}" if answer.text else who
            raise DeniedError(
                f"not allowed: the skill {skill.name!r} has files that the person did not trust ({changes}): {why}; "
                "do the task without this skill, and tell the person about `goose-like trust add`"
            )
        self._accepted[name] = mark
        if answer.choice == "allow_always":
            trust_marked_folder(self.project.root, name, mark)

    def _list_rules(self, content: "SkillFile") -> tuple[str, ...]:
        """Translate `allowed-tools` into rules of permissions, about commands and files inside the sandbox alone."""
        if self.workspace.mode == "full":
            return ()
        rules: list[str] = []
        for entry in content.allowed_tools:
            try:
                translated = translate_entry(entry, self.workspace.root) or []
            except ValueError:
                self.notifier.log(f"skill {content.name!r}: allowed-tools: {entry} allows nothing")
                continue
            rules += [rule for rule in translated if not rule.startswith(_OUTSIDE)]
        return tuple(rules)

    async def _send(self, skill: "Skill", context: "SlashContext", words: str) -> TurnRequest:
        """Send the text of a skill as the person's message, with a task."""
        from .skill_text import fill_arguments

        content, text = await self._load(skill)
        text = fill_arguments(text, words)
        exchange = context.exchange
        # The text names files as examples; only the person attaches any.
        outputs = self.session.outputs
        model = exchange.models.processor
        own_words = context.get_own_words(words)
        message, notes = await build_message(text, self.workspace, outputs, model, typed=own_words)
        for note in notes:
            context.show(note)
        return TurnRequest(message, allow=self._list_rules(content))

    @override
    async def before_compaction(self, compaction: CompactionStart) -> str | None:
        names = [skill.name for skill in self._loaded.list_all()]
        if not names:
            return None
        return (
            f"that these skills are in use: {', '.join(names)}. Goose-like repeats their texts behind your notes; "
            "note only which of their steps are done"
        )

    @override
    def context_updates(self) -> Mapping[str, str]:
        """Return the texts of loaded skills for which a summary stands now: the model needs them word for word."""
        texts = choose_texts(self._loaded.list_lost(), self.exchange_view.processor.model.window)
        return {f"skill {name}, which you loaded before": text for name, text in texts.items()}

    @override
    def state_sections(self) -> Sequence[tuple[str, str]]:
        texts = choose_texts(self._loaded.list_all(), self.exchange_view.processor.model.window)
        return [(f"Skill {name}, which you loaded", text) for name, text in texts.items()]
