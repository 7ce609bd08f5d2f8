"""The profile for one run: chosen by name, session or default, and changed by command-line options."""

from collections.abc import Sequence

from goose_like.config.profile import Effort, ModelChoice, Profile
from goose_like.config.profile_loader import load_profile
from goose_like.config.trust import ProjectConfig
from goose_like.config.yaml_source import YamlSource
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import ProfileError, UsageError
from goose_like.core.events import SessionStarted
from goose_like.core.spelling import did_you_mean
from goose_like.providers.known_models import find_effort_error
from goose_like.providers.registry import (
    choose_models,
    find_provider_class,
    format_model_label,
    load_default_profile,
    load_fitting_profile,
    resolve_model,
)
from goose_like.sessions.session import Session
from goose_like.workspace.permissions.policy import APPROVALS, MODES


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """A profile with its source: the file, the `--model` option if given, and the trusted files of the project."""

    profile: Profile
    source: YamlSource
    model: str | None = None
    project: ProjectConfig | None = None

    def locate_error(self, error: ProfileError) -> ProfileError:
        """Return the error with its file and line, or with the `--model` option that caused it."""
        if not error.path:
            return error
        if self.model is not None and error.path[0] in ("processor", "accelerator"):
            text = str(error).removeprefix(f"{self.model}: ")
            return ProfileError(f"--model {self.model}: {text}")
        place = self.source.locate(*self._find_written_path(error.path))
        return ProfileError(f"{place}: {error}")

    def _find_written_path(self, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
        """Return where the file has a value of a toolkit's config: in the list, or below a key named like it."""
        match path:
            case ("toolkits", int() as index, "config", *rest):
                name = self.profile.toolkits[index].name
                sources = (self.source, *self.source.bases)
                if any(len(source.find_lines((name,))) > 1 for source in sources):
                    return (name, *rest)
        return path


def choose_profile(
    name: str | None,
    model: str | None = None,
    sandbox: str | None = None,
    approval: str | None = None,
    session: Session | None = None,
    project: ProjectConfig | None = None,
) -> ProfileChoice:
    """Load the profile that the options name and apply the other options to it.

    Without `name` a resumed session keeps its profile, and without `model` also its model. The sandbox and approval in
    which the session ended stay, unless an option sets them. The profile `name` may only be stricter. A session that
    leaves `plan`, where everything was read-only, gets no more than the workspace without the option `sandbox`. A
    resumed session keeps its folders and instructions.

    Raises:
        ProfileError: the profile is unknown or wrong.
        UsageError: there is no such sandbox or approval mode, or several models fit the name.
    """
    check_mode("sandbox", sandbox, MODES)
    check_mode("approval mode", approval, APPROVALS)
    if model is not None:
        model = resolve_model(model)
    header = session.history.header if session else None
    if name is None and header and header.profile:  # an imported session can have none
        profile, source = load_profile(header.profile, project)
        if model is None:
            model = _find_other_model(profile, header)
    elif name is None:
        profile, source = load_default_profile(project, model)
    else:
        profile, source = load_fitting_profile(name, model, project)
    if session:
        profile = keep_instructions(keep_folders(profile, session), session)
        kept = keep_modes(profile, session)
        profile = kept if name is None else restrict_profile(profile, kept)
        leaves_plan = kept.approval == "plan" and approval not in (None, "plan")
        if leaves_plan:
            mode = min(profile.sandbox, MODES[1], key=MODES.index)
            profile = profile.model_copy(update={"sandbox": mode})
    changes: dict[str, object] = {}
    if sandbox is not None:
        changes["sandbox"] = sandbox
    if approval is not None:
        changes["approval"] = approval
    if model is not None:
        choice = ModelChoice(model=model)
        changes["processor"] = choice
        changes["accelerator"] = choice
    return ProfileChoice(profile.model_copy(update=changes), source, model, project)


def _find_other_model(profile: Profile, header: SessionStarted) -> str | None:
    """Return the model that a session had, if its profile names another one now. A session without one has ""."""
    processor, _ = choose_models(profile)
    before = header.models.get("processor")
    if not before or before == format_model_label(processor):
        return None
    return before


def check_mode(kind: str, mode: str | None, known: Sequence[str]) -> None:
    """Check a mode that a program chose; the command line offers only those that exist."""
    if mode is not None and mode not in known:
        raise UsageError(f"no {kind} {mode!r}; {did_you_mean(mode, known)}")


def set_effort(profile: Profile, effort: Effort) -> Profile:
    """Return the profile with another effort of the processor.

    Raises:
        ProfileError: the model does not know this effort.
    """
    processor, accelerator = choose_models(profile)
    changed = processor.model_copy(update={"effort": effort})
    name = changed.name or find_provider_class(changed.provider).info.processor or ""
    error = find_effort_error(changed, name)
    if error:
        raise error
    return profile.model_copy(update={"processor": changed, "accelerator": accelerator})


def keep_folders(profile: Profile, session: Session) -> Profile:
    """Return the profile with the folders that a session can change, in addition to its own."""
    header = session.history.header
    more = header.folders if header else ()
    unique = dict.fromkeys((*profile.folders, *more))
    return profile.model_copy(update={"folders": tuple(unique)})


def keep_instructions(profile: Profile, session: Session) -> Profile:
    """Return the profile with the instructions of a session: they are a part of its prompt."""
    header = session.history.header
    if header is None or not header.instructions:
        return profile
    return profile.model_copy(update={"instructions": header.instructions})


def keep_modes(profile: Profile, session: Session) -> Profile:
    """Return the profile with the sandbox and approval in which a session ended. Old sessions have recorded none.

    A mode that this version does not know counts as the strictest. `unattended` belongs to a process, not to the
    session: the profile or an option chooses it anew.
    """
    header = session.history.header
    changes: dict[str, str] = {}
    if header and header.sandbox:
        changes["sandbox"] = header.sandbox if header.sandbox in MODES else MODES[0]
    if header and header.approval == "unattended":
        changes["approval"] = min(profile.approval, "auto", key=APPROVALS.index)
    elif header and header.approval:
        changes["approval"] = header.approval if header.approval in APPROVALS else APPROVALS[0]
    return profile.model_copy(update=changes)


def restrict_profile(profile: Profile, other: Profile) -> Profile:
    """Return the profile with the stricter sandbox and the stricter approval of two profiles."""
    sandbox = min(profile.sandbox, other.sandbox, key=MODES.index)
    approval = min(profile.approval, other.approval, key=APPROVALS.index)
    return profile.model_copy(update={"sandbox": sandbox, "approval": approval})
