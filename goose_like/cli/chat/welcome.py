"""What a person's first session says before the first message."""

from goose_like.agent.profile_choice import ProfileChoice
from goose_like.config.secrets import find_key_location
from goose_like.providers.registry import choose_models, find_provider_class, format_model_label
from goose_like.workspace.permissions.policy import effective_sandbox


def describe_start(choice: ProfileChoice) -> list[str]:
    """Describe the model and why it is used, the limits, and what to type, for a person's first session."""
    profile = choice.profile
    processor, _ = choose_models(profile)
    variable = find_provider_class(processor.provider).info.key_variable
    if choice.model:
        reason = "from --model"
    elif processor.provider == "local" and (profile.name == "local" or not profile.processor):
        reason = "small; no API key is set: goose-like setup"
    elif profile.processor:
        reason = f"from the profile {profile.name!r}"
    else:
        reason = f"{variable} from {find_key_location(variable)}"
    is_asking = profile.approval != "yolo"
    further = "goose-like asks before it goes further" if is_asking else "goose-like goes further without asking"
    limits = {"full": "none; commands have all your rights", "read-only": "nothing can be changed"}.get(
        effective_sandbox(profile.sandbox, profile.approval),
        f"this folder and a private /tmp; {further}",
    )
    return [
        f"model    {format_model_label(processor)} ({reason})",
        f"sandbox  {limits}",
        "type a task and press Enter; / lists commands, @ files; Ctrl-D leaves",
    ]
