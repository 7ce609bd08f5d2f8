"""The work of the commands `provider ...`."""

import asyncio
import os
import sys

from goose_like.config import secrets
from goose_like.config.profile import ModelChoice
from goose_like.core.errors import CredentialError, GooseLikeError, ModelUnavailableError, ProviderError, UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.providers.base import ProbeResult, Provider, ProviderInfo, SupportsProbe
from goose_like.providers.catalog import format_window
from goose_like.providers.foreign_code import find_setup_error, probe_server
from goose_like.providers.known_models import find_known_model
from goose_like.providers.prices import find_context_window
from goose_like.providers.registry import find_provider_class, list_provider_names
from goose_like.terminal.escape import to_one_line
from goose_like.terminal.interaction import confirm, read_secret
from goose_like.terminal.report_table import print_table

_MAX_MODELS = 40


def print_providers() -> None:
    """Print every provider and what it still needs, without asking any server."""
    rows = []
    for name in list_provider_names():
        try:
            factory = find_provider_class(name)
        except GooseLikeError as error:
            rows.append((name, "-", "-", "-", str(error)))
        else:
            rows.append(_describe_provider(name, factory))
    print_table(("name", "description", "models", "key", "state"), rows, "")


def _describe_provider(name: str, factory: type[Provider]) -> tuple[str, str, str, str, str]:
    """Describe a provider in a row of the table."""
    info = factory.info
    choice = ModelChoice(model=f"{name}:{info.processor or ''}")
    missing = find_setup_error(factory, choice)
    place = secrets.find_key_location(info.key_variable)
    if missing:
        state = str(missing)
    elif place:
        state = f"ready, key from {place}"
    else:
        state = "ready"
    models = ", ".join(_list_default_models(info)) or "-"
    return (name, info.summary, models, info.key_variable or "-", state)


def _list_default_models(info: ProviderInfo) -> list[str]:
    models = filter(None, (info.processor, info.accelerator))
    return list(dict.fromkeys(models))


def check_provider(wanted: str) -> int:
    """Ask a provider for its list of models and print the result; `wanted` is `PROVIDER` or `PROVIDER:MODEL`."""
    name, _, model = wanted.partition(":")
    choice = ModelChoice(model=wanted)
    factory = find_provider_class(name)
    missing = find_setup_error(factory, choice)
    if not isinstance(factory, SupportsProbe):
        if missing:
            raise missing
        print(f"{name}: ready; it has no server to ask")
        return 0
    if isinstance(missing, ProviderError):  # a key or library; a missing name of a model is no obstacle here
        raise type(missing)(f"{name}: {missing}")
    probe = asyncio.run(probe_server(factory, choice))
    print(f"{name}: {probe.address} answers")
    print(f"  key     {_describe_key(factory.info, probe)}")
    print(f"  wire    {probe.wire}")
    if probe.models is None:
        print("  models  the server returned no list")
        return 0
    listed = tuple(map(to_one_line, probe.models))
    for wanted_model in [model] if model else _list_default_models(factory.info):
        state = "available"
        if wanted_model not in probe.models:
            state = f"not in the list; {did_you_mean(wanted_model, listed)}"
        print(f"  model   {wanted_model} is {state}")
        print(f"          {_describe_model(name, wanted_model, probe, takes_images=factory.info.takes_images)}")
    shown = ", ".join(listed[:_MAX_MODELS]) or "none"
    hidden_count = len(listed) - _MAX_MODELS
    if hidden_count > 0:
        shown += f" and {hidden_count} more"
    print(f"  models  {shown}")
    if model and model not in probe.models:
        return ModelUnavailableError.exit_code
    return 0


def _describe_key(info: ProviderInfo, probe: ProbeResult) -> str:
    """Describe where the key comes from, and whether the server accepted it."""
    place = secrets.find_key_location(info.key_variable)
    if not place:
        return "none sent"
    verdict = "accepted" if probe.is_key_verified else "not checked: the server lists its models without a key too"
    return f"{info.key_variable} from {place}, {verdict}"


def _describe_model(provider: str, name: str, probe: ProbeResult, *, takes_images: bool) -> str:
    """Describe window, efforts and images of a model: what the server tells, else what is known."""
    known = find_known_model(provider, name)
    window = probe.facts.window or known.window or find_context_window(f"{provider}:{name}")
    size = "unknown window"
    if window:
        size = f"window {format_window(window)}"
    if known.efforts is None:
        efforts = "any effort is sent"
    elif known.efforts:
        efforts = f"effort {', '.join(known.efforts)}"
    else:
        efforts = "no levels of effort"
    if probe.facts.takes_images is not None:
        takes_images = probe.facts.takes_images
    images = "images" if takes_images else "no images"
    return f"{size} · {efforts} · {images}"


def log_in(name: str, *, is_checked: bool) -> None:
    """Read a key from a hidden prompt or standard input, and store it after the provider's server accepted it."""
    variable = _get_key_variable(name)
    factory = find_provider_class(name)
    if is_checked and isinstance(factory, SupportsProbe):
        key, verdict = _read_accepted_key(name, variable, factory)
    else:
        key = _read_key(name, variable)
        verdict = "not checked"
    place = secrets.store_key(variable, key)
    print(f"{variable} is stored in {place} ({verdict})")
    if os.environ.get(variable):
        print(f"note: {variable} in the environment takes precedence")


def _read_accepted_key(name: str, variable: str, factory: SupportsProbe) -> tuple[str, str]:
    """Read keys until the server refuses none. Return the key, and what the server said about it."""
    has_refused = False
    while True:
        key = _read_key(name, variable)
        try:
            probe = asyncio.run(probe_server(factory, ModelChoice(model=name), key))
        except ModelUnavailableError as error:
            if not confirm(f"{error}. Store the key without a check?"):
                raise
            return key, "not checked"
        except CredentialError:
            if not sys.stdin.isatty():
                raise
            print("the server refused this key; type another one, or press Enter to stop", file=sys.stderr)
            has_refused = True
            continue
        if probe.is_key_verified or has_refused:
            return key, f"{probe.address} accepted it"
        return key, f"{probe.address} answers, but did not check it"


def _read_key(name: str, variable: str) -> str:
    """Read the key of a provider.

    Raises:
        UsageError: it is empty, or has characters that no key has.
    """
    key = read_secret(variable).strip()
    if not key:
        raise UsageError(f"no key was given; type it, or: goose-like provider login {name} < FILE")
    if not key.isascii() or not key.isprintable():
        raise UsageError("the key contains characters that no key has; copy it again")
    return key


def log_out(name: str) -> None:
    """Delete the stored key of a provider."""
    variable = _get_key_variable(name)
    places = secrets.delete_key(variable)
    if places:
        print(f"deleted {variable} from {' and '.join(places)}")
    else:
        print(f"no {variable} is stored")
    if place := secrets.find_key_location(variable):
        print(f"note: {variable} is still set in {place}")


def _get_key_variable(name: str) -> str:
    if variable := find_provider_class(name).info.key_variable:
        return variable
    raise UsageError(f"provider {name!r} needs no key")
