"""The work of `goose-like setup`: choose a provider and a model, store the key, and try one request."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import TypeVar

from goose_like.config.profile import ModelChoice
from goose_like.config.secrets import ENVIRONMENT, find_key_location
from goose_like.core.errors import CredentialError, GooseLikeError, ModelUnavailableError, UsageError
from goose_like.core.events import MessageCompleted, Status
from goose_like.core.message import Message
from goose_like.providers.base import Request
from goose_like.providers.catalog import fetch_offers, format_window
from goose_like.providers.foreign_code import find_setup_error
from goose_like.providers.registry import find_provider_class, list_working_providers, open_model
from goose_like.terminal.escape import to_one_line
from goose_like.terminal.interaction import confirm, has_person, open_lines
from goose_like.terminal.picker import Choice, pick_alone

from . import profiles_yaml, provider_actions

T = TypeVar("T")

NO_TERMINAL = (
    "setup asks questions and needs a terminal; without one: goose-like provider login NAME < FILE, and a line "
    "`processor: PROVIDER:MODEL` in profiles.yaml"
)


def run_setup() -> None:
    """Ask for provider, key and model, try the model, and make it and the provider's fast model the default."""
    if not has_person():
        raise UsageError(NO_TERMINAL)
    profiles_yaml.check_models_can_be_set()
    choices = [_make_provider_choice(name) for name in _list_providers()]
    provider = pick_alone("Choose a provider", choices)
    if provider is None:
        _say("nothing was changed")
        return
    variable = find_provider_class(provider).info.key_variable
    if variable and not find_key_location(variable) and _find_setup_error(provider):
        provider_actions.log_in(provider, is_checked=True)
    if missing := _find_setup_error(provider):
        raise missing
    model = provider if provider == "local" else _choose_model(provider)
    if model is None:
        _say("no model was chosen; the default model stays")
        return
    try:
        _ask_for_keys(provider, partial(_show_answer, model))
        fast_model = _find_fast_model(provider, model)
    except ModelUnavailableError as error:
        if not confirm(f"{error}. Make {model} the default model anyway?"):
            raise
        fast_model = None
    place = profiles_yaml.set_models(model, fast_model)
    change = f"{model} is now the default model"
    if fast_model:
        change += f", with {fast_model} as fast model"
    _say(f"{change}: {place}; start a session with: goose-like")


def _list_providers() -> list[str]:
    return [name for name, _ in list_working_providers() if name != "scripted"]


def _find_setup_error(name: str) -> GooseLikeError | None:
    """Return the error about what a provider still needs, whichever model is chosen."""
    model = "local" if name == "local" else f"{name}:model"
    return find_setup_error(find_provider_class(name), ModelChoice(model=model))


def _make_provider_choice(name: str) -> Choice[str]:
    info = find_provider_class(name).info
    return Choice(name, f"{name}: {info.summary}", (_describe_state(name),))


def _describe_state(provider: str) -> str:
    """Describe the key that a provider has or needs."""
    missing = _find_setup_error(provider)
    if isinstance(missing, CredentialError):
        return "needs a key"
    if missing:
        return "needs more"
    variable = find_provider_class(provider).info.key_variable
    place = find_key_location(variable)
    if place:
        return f"key from {place}"
    if variable:
        return "key if the server asks"
    return "no key needed"


def _choose_model(provider: str) -> str | None:
    """Let the person choose a model; the server is asked for its list first."""
    _say("asking for the list of models ...")
    offers = _ask_for_keys(provider, lambda: asyncio.run(fetch_offers(provider)))
    if not offers:
        raise UsageError(f"{provider} has no list of models; name one in profiles.yaml: processor: {provider}:MODEL")
    choices = []
    for offer in offers:
        cells = (format_window(offer.window), offer.price)
        choices.append(Choice(offer.label, offer.label, cells))
    return pick_alone("Choose the default model (window, $ per million tokens in / out)", choices)


def _ask_for_keys(provider: str, act: Callable[[], T]) -> T:
    """Return the result of an action. Ask for a key as often as the server refuses the stored key, or wants one."""
    while True:
        try:
            return act()
        except CredentialError as error:
            variable = find_provider_class(provider).info.key_variable
            if not variable or find_key_location(variable) == ENVIRONMENT:  # it would win over a stored key
                raise
            _say(str(error))
            provider_actions.log_in(provider, is_checked=True)


def _say(text: str) -> None:
    open_lines().write_line(text)


def _find_fast_model(provider: str, model: str) -> str | None:
    """Return the provider's own fast model if it answers. Other servers with the same protocol may not have it."""
    name = find_provider_class(provider).info.accelerator
    fast_model = f"{provider}:{name}"
    if not name or fast_model == model:
        return None
    try:
        _show_answer(fast_model)
    except GooseLikeError as error:
        _say(f"{error}; {model} does the work of the fast model, too")
        return None
    return fast_model


def _show_answer(model: str) -> None:
    lines = open_lines()
    lines.write_line(f"trying {model} ...")
    try:
        answer = asyncio.run(_try_model(model, lines.spin))
    finally:
        lines.stop_spinner()
    lines.write_line(f"{model} answers: {to_one_line(answer, 60)}")


async def _try_model(label: str, show_status: Callable[[str], None]) -> str:
    """Return the model's answer to a greeting. The embedded model takes seconds to load, so show its statuses.

    Raises:
        GooseLikeError: the model gave none.
    """
    model = open_model(ModelChoice(model=label))
    request = Request(model.name, "Answer in one short sentence.", [Message.user("Say hello.")], max_tokens=1_000)
    answer = ""
    try:
        async with aclosing(model.provider.stream(request)) as deltas:
            async for delta in deltas:
                if isinstance(delta, Status):
                    show_status(delta.text)
                elif isinstance(delta, MessageCompleted):
                    answer = delta.message.text
    finally:
        await model.provider.close()
    return answer
