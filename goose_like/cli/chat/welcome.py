"""What a person's first session says before the first message."""

from goose_like.agent.profile_choice import ProfileChoice
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.secrets import find_key_location
from goose_like.providers.registry import choose_models, find_provider_class, format_model_label
from goose_like.workspace.permissions.policy import effective_sandbox


def describe_start(choice: ProfileChoice) -> list[str]:
    """Describe the model and why it is used, the limits, and what to type, for a person's first session."""
    processor, _ = choose_models(choice.profile)
    return [
        f"model    {format_model_label(processor)} ({_explain_model(choice, processor)})",
        f"sandbox  {_describe_limits(choice.profile)}",
        "type a task and press Enter; / lists commands, @ files; Ctrl-D leaves",
    ]


def _explain_model(choice: ProfileChoice, processor: ModelChoice) -> str:
    """Return the reason why the model is used."""
    profile = choice.profile
    if choice.model:
        return "from --model"
    if processor.provider == "local" and (profile.name == "local" or not profile.processor):
        return "small; no API key is set: goose-like setup"
    if profile.processor:
        return f"from the profile {profile.name!r}"
    variable = find_provider_class(processor.provider).info.key_variable
    return f"{variable} from {find_key_location(variable)}"


def _describe_limits(profile: Profile) -> str:
    """Return what commands can reach."""
    match effective_sandbox(profile.sandbox, profile.approval):
        case "full":
            return "none; commands have all your rights"
        case "read-only":
            return "nothing can be changed"
    if profile.approval == "yolo":
        return "this folder and a private /tmp; goose-like goes further without asking"
    if profile.approval == "unattended":
        return "this folder and a private /tmp; goose-like refuses what goes further"
    return "this folder and a private /tmp; goose-like asks before it goes further"
