"""The start of a session: from the options of a person to a profile, trusted files and an open session in a folder.

Nothing here changes the current folder of the process: a program may open sessions in several folders.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from goose_like.agent.profile_choice import ProfileChoice, choose_profile, set_effort
from goose_like.config.paths import describe_read_error, expand_home, read_user_file
from goose_like.config.profile import PermissionLists, Profile
from goose_like.config.profile_loader import describe_goose09_profiles
from goose_like.config.tool_list import read_rules
from goose_like.config.trust import ProjectConfig
from goose_like.config.yaml_source import describe_field_error
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, ProfileError, UsageError
from goose_like.core.masking import mask_text
from goose_like.core.notifier import Notifier
from goose_like.core.threads import run_in_thread
from goose_like.sessions.index import find_session_or_newest
from goose_like.sessions.session import Session
from goose_like.workspace.more_folders import WRITABLE, resolve_folder
from goose_like.workspace.permissions.policy import describe_risk

from .command_line import ProfileOptions
from .personal_files import settle_personal_files
from .project_check import settle_project_check
from .start_notifier import AbsentPerson
from .trust import settle_project_trust


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """The session that a person wants: a new one, or a saved one that goes on. One that is not saved has no name.

    `name` is that of the session. Without it a new session gets a name, and the newest session of the folder is
    resumed. With `is_forked` a copy is resumed. With `keep_open_turn` an interrupted turn of a resumed session stays
    open. A new session enters a new `worktree` of this name (if empty: the session's name).
    """

    options: ProfileOptions
    name: str | None = None
    is_resumed: bool = False
    is_forked: bool = False
    keep_open_turn: bool = False
    worktree: str | None = None
    is_saved: bool = True


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session that is open, the profile that holds in it, and the folder in which it works."""

    choice: ProfileChoice
    session: Session
    folder: Path

    @property
    def profile(self) -> Profile:
        """The profile that the options chose."""
        return self.choice.profile

    def describe_error(self, error: GooseLikeError) -> str:
        """Return the sentence of an error, with its file and line if it is about the profile."""
        if isinstance(error, ProfileError):
            error = self.choice.locate_error(error)
        return mask_text(str(error))


@asynccontextmanager
async def open_session(
    request: SessionRequest, notifier: Notifier, folder: Path | None = None
) -> AsyncIterator[OpenedSession]:
    """Choose the profile, and open a new session or resume one. The end of the block closes the session.

    A new session works in `folder` or in its new worktree. A resumed one works in the worktree that it had, else in
    `folder`. Without `folder`, a session that is resumed by its name works where it worked, and every other one in the
    current folder. The notifier gets the warnings, and the question about untrusted files of the project.

    Raises:
        ProfileError: the profile is wrong, or the block raised an error about it; the text names file and line.
        SessionError: there is no such session, it is open elsewhere, or its name is taken.
        UsageError: an option is wrong, or there is no such folder.
    """
    start = _make_absolute(folder)
    async with AsyncExitStack() as stack:
        if request.is_resumed:
            session = await run_in_thread(_resume, request, start)
            stack.callback(session.close)
            header = session.history.header
            if folder is None and request.name and header:
                start = Path(header.cwd)
            # Imported here: a new session starts faster.
            from .option_paths import anchor_options
            from .worktree import find_session_folder

            options = anchor_options(request.options, _make_absolute(folder))
            place = find_session_folder(session, start)
            choice = await settle_profile(options, notifier, place, session)
        else:
            choice = await settle_profile(request.options, notifier, start)
            session = Session.create(request.name) if request.is_saved else Session.temporary()
            stack.callback(session.close)
            place = start
        if request.worktree is not None:
            from .worktree import create_worktree  # imported here: few sessions want one

            place, notes = await run_in_thread(create_worktree, request.worktree or session.name, start)
            for note in notes:
                notifier.log(note)
        try:
            yield OpenedSession(choice, session, place)
        except ProfileError as error:
            raise choice.locate_error(error) from None


def _resume(request: SessionRequest, folder: Path) -> Session:
    """Resume a session by its name, else the newest of a folder; or resume a copy of it."""
    name = request.name
    cwd = None if name else str(folder)
    if request.is_forked:
        from goose_like.sessions.fork import fork  # imported here: few sessions are copies

        original = find_session_or_newest(name, cwd)
        copy = fork(original)
        copy.close()
        name = copy.name
        cwd = None
    return Session.resume(name, cwd=cwd, keep_open_turn=request.keep_open_turn)


async def settle_profile(
    options: ProfileOptions, notifier: Notifier, folder: Path, session: Session | None = None
) -> ProfileChoice:
    """Choose the profile for a folder, after the questions about files; warn of risky settings.

    The questions are about untrusted files of the project, about personal files of other agents, and about the check of
    AGENTS.md if the profile has none.

    Raises:
        ProfileError: the profile is unknown or wrong.
        UsageError: an option is wrong, or there is no such folder.
    """
    _check_folder(folder)
    if note := describe_goose09_profiles():
        notifier.log(note)
    person = AbsentPerson(notifier, partial(_is_unattended, options, session))
    project = await settle_project_trust(folder, person, is_trusted_now=options.is_trusted)
    project = replace(project, personal=await settle_personal_files(person))
    choice = await run_in_thread(_choose_profile, options, folder, project, session)
    if choice.profile.verify is None:
        check = await settle_project_check(folder, person, is_trusted_now=options.is_trusted)
        choice = replace(choice, project=replace(project, check=check))
    if risk := describe_risk(choice.profile.sandbox, choice.profile.approval):
        notifier.log(risk)
    return choice


def _is_unattended(options: ProfileOptions, session: Session | None) -> bool:
    """Return whether nobody may be asked about a project. Its own files do not decide that."""
    if options.approval is not None:
        return options.approval == "unattended"
    try:
        choice = choose_profile(options.profile, session=session)
    except GooseLikeError:  # the project may bring this profile, or the error comes again
        return False
    return choice.profile.approval == "unattended"


def _make_absolute(folder: Path | None) -> Path:
    """Return the absolute path of a folder, by default the current one. Links stay in it, as the shell shows them."""
    return Path.cwd() / (folder or "")


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")


def _choose_profile(
    options: ProfileOptions, folder: Path, project: ProjectConfig, session: Session | None
) -> ProfileChoice:
    choice = choose_profile(options.profile, options.model, options.sandbox, options.approval, session, project)
    try:
        profile = add_folders(choice.profile, folder, options.add_dirs or ())
    except UsageError as error:
        raise UsageError(f"--add-dir {error}") from error
    profile = _allow_tools(profile, folder, options.allowed_tools or ())
    if options.appended_prompt:
        profile = _append_prompt(profile, folder, options.appended_prompt)
    if options.effort:
        profile = set_effort(profile, options.effort)
    return replace(choice, profile=profile)


def add_folders(profile: Profile, start: Path, words: Sequence[str]) -> Profile:
    """Return the profile with more folders: `DIR` to read, `DIR:rw` to change as well. Relative ones begin at `start`.

    Raises:
        UsageError: there is no such folder, or it cannot be used.
    """
    read = list(profile.paths.read)
    folders = list(profile.folders)
    for word in words:
        place = resolve_folder(word, start)
        if word.endswith(WRITABLE):
            folders.append(f"{place}{WRITABLE}")
        else:
            read.append(str(place))
    paths = profile.paths.model_copy(update={"read": tuple(read)})
    return profile.model_copy(update={"paths": paths, "folders": tuple(dict.fromkeys(folders))})


def _append_prompt(profile: Profile, start: Path, text: str) -> Profile:
    """Return the profile with more instructions: a text, or `@FILE`, whose path begins at `start`."""
    name = text.removeprefix("@")
    if name != text:
        try:
            text = read_user_file(start / expand_home(name))
        except (OSError, ValueError) as error:
            raise UsageError(f"--append-system-prompt {text}: {describe_read_error(error)}") from error
    text = text.strip()
    if text in profile.instructions:  # a resumed session has it already
        return profile
    instructions = f"{profile.instructions}\n\n{text}".strip()
    return profile.model_copy(update={"instructions": instructions})


def _allow_tools(profile: Profile, folder: Path, texts: Sequence[str]) -> Profile:
    """Return the profile with more rules that allow; its own rules that deny or ask still come first."""
    rules = list(profile.permissions.allow)
    try:
        for text in texts:
            rules += read_rules(text, folder)
        allow = PermissionLists(allow=tuple(rules)).allow
    except ValidationError as error:
        problem = describe_field_error(error.errors(include_url=False)[0] | {"loc": ()}, "--allowed-tools")
        raise UsageError(problem) from error
    except ValueError as error:
        raise UsageError(f"--allowed-tools {', '.join(texts)}: {error}") from error
    permissions = profile.permissions.model_copy(update={"allow": allow})
    return profile.model_copy(update={"permissions": permissions})
