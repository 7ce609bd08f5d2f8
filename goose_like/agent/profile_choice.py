"""The profile for one run: chosen by name, session or default, and changed by command-line options."""

from dataclasses import dataclass
from typing import Any

from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.profile_loader import load_profile
from goose_like.config.trust import ProjectConfig
from goose_like.config.yaml_source import YamlSource
from goose_like.core.errors import ProfileError
from goose_like.providers.registry import choose_models, format_model_label, load_default_profile
from goose_like.sessions.session import Session


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """A profile with its source: the file, and the `--model` option if that replaced the models.

    `project` holds the trusted files of the project.
    """

    profile: Profile
    source: YamlSource
    model: str | None = None
    project: ProjectConfig | None = None

    def locate_error(self, error: ProfileError) -> ProfileError:
        """Return the error with its file and line, or with the `--model` option that caused it."""
        if self.model is not None and error.path[:1] in (("processor",), ("accelerator",)):
            text = str(error).removeprefix(f"{self.model}: ")
            return ProfileError(f"--model {self.model}: {text}")
        return self.source.add_location(error)


def choose_profile(
    name: str | None,
    model: str | None = None,
    sandbox: str | None = None,
    approval: str | None = None,
    session: Session | None = None,
    project: ProjectConfig | None = None,
) -> ProfileChoice:
    """Load the profile that the options name and apply the other options to it.

    Without `name` a resumed session keeps its profile, and without `model` also its model.
    """
    header = session.history.header if session else None
    if name is None and header and header.profile:  # an imported session can have none
        name = header.profile
        profile, source = load_profile(name, project)
        before = header.models.get("processor")
        if model is None and before != format_model_label(choose_models(profile)[0]):
            model = before
    elif name is None and model is None:
        profile, source = load_default_profile(project)
    else:
        profile, source = load_profile(name, project)
    changes: dict[str, Any] = {"sandbox": sandbox, "approval": approval}
    if model is not None:
        changes["processor"] = changes["accelerator"] = ModelChoice(model=model)
    changes = {key: value for key, value in changes.items() if value is not None}
    return ProfileChoice(profile.model_copy(update=changes), source, model, project)
