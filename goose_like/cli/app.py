"""The commands: each reads its options, calls one function and gives its exit code.

Imports stand in the functions: `--help` and a mistyped option must not wait for what only a run needs.
"""

import os
import shlex
import sys
from enum import StrEnum
from typing import Annotated, Any, cast

import typer

from goose_like import __version__
from goose_like.core.errors import GooseLikeError

from .exit import guarded

app = typer.Typer(
    name="goose-like",
    help="A developer agent for the shell. Without a command it begins a session.",
    epilog='Try: goose-like run "explain what this repository does"',
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,  # Rich help costs a third of the time of `--help`
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
session_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Talk over several turns; start, resume and list sessions."
)
profile_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Which models and toolkits: show, check, make and edit profiles."
)
toolkit_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="What the agent can do: list, show and write toolkits."
)
provider_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Where models come from: list and check providers, keep keys."
)
trust_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="What you allowed for good: projects, and answers to questions."
)
app.add_typer(session_app, name="session")
app.add_typer(profile_app, name="profile")
app.add_typer(toolkit_app, name="toolkit")
app.add_typer(provider_app, name="provider")
app.add_typer(trust_app, name="trust")


class OutputFormat(StrEnum):
    text = "text"
    json = "json"
    stream_json = "stream-json"


class Sandbox(StrEnum):
    read_only = "read-only"
    workspace = "workspace"
    workspace_network = "workspace+network"
    full = "full"


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


class Form(StrEnum):
    markdown = "markdown"
    html = "html"
    json = "json"


class Approval(StrEnum):
    auto = "auto"
    ask = "ask"
    plan = "plan"
    yolo = "yolo"


def _session_names() -> list[tuple[str, str]]:
    from goose_like.sessions.index import list_sessions

    return [(listed.name, listed.about[:60]) for listed in list_sessions()]


def _profile_names() -> list[str]:
    from goose_like.config.profile import sources

    return sorted({source.name for source in sources()})


def _own_profile_names() -> list[str]:
    from goose_like.cli.commands.profile_editor import is_own
    from goose_like.config.profile import sources

    return sorted({source.name for source in sources() if is_own(source.file)})


def _toolkit_names() -> list[str]:
    from goose_like.core.entry_points import found

    return list(found("goose_like.toolkit"))


def _model_names() -> list[str]:
    from goose_like.core.entry_points import found

    return [f"{name}:" for name in found("goose_like.provider")]


def _help_topics(context: typer.Context) -> list[str]:
    from .help import names_below

    return names_below(app, context.params.get("words") or [])


ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-p",
        help="Profile to use [default: default; local where no key is set].",
        autocompletion=_profile_names,
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", help="PROVIDER:MODEL instead of the profile's processor.", autocompletion=_model_names
    ),
]
SandboxOption = Annotated[
    Sandbox | None,
    typer.Option(
        help="read-only: write nowhere. workspace: here only, no network (or +network). full: no confinement."
    ),
]
ApprovalOption = Annotated[
    Approval | None,
    typer.Option(help="auto: ask for what is beyond the sandbox. ask: for all. plan: read and plan. yolo: never ask."),
]
NameArgument = Annotated[str, typer.Argument(help="Which session.", autocompletion=_session_names)]
PlanOption = Annotated[
    str | None, typer.Option(help="Begin with the work planned in a file, Markdown with a list or YAML.")
]
ArgsOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE,...", help="Values for the variables of the plan.")
]
TrustOption = Annotated[bool, typer.Option("--trust", help="Use the project's .goose-like/profiles.yaml this time.")]


@app.callback(invoke_without_command=True)
def _without_command(
    context: typer.Context,
    profile: ProfileOption = None,
    model: ModelOption = None,
    sandbox: SandboxOption = None,
    approval: ApprovalOption = None,
    trust: TrustOption = False,
) -> None:
    how = (profile, model, sandbox, approval)
    if context.invoked_subcommand is None:
        from goose_like.cli.chat.startup import has_prompt, open_session

        if not has_prompt():
            print(context.get_help())
            raise typer.Exit(2)
        raise typer.Exit(open_session(how, is_trusted=trust))
    if trust or any(how):
        raise typer.BadParameter(f"options stand behind the command, e.g. goose-like {context.invoked_subcommand} -h")


@app.command(epilog='Example: goose-like run --max-turns 20 "make the tests in tests/ pass"')
def run(
    text: Annotated[list[str] | None, typer.Argument(help="The task; - at its end adds standard input.")] = None,
    file: Annotated[str | None, typer.Option("-i", "--input", help="Read the task from a file.")] = None,
    profile: ProfileOption = None,
    model: ModelOption = None,
    output_format: Annotated[OutputFormat, typer.Option(help="What stdout carries.")] = OutputFormat.text,
    max_turns: Annotated[int | None, typer.Option(min=1, help="Model requests at most [default: 128].")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0.000001, help="US dollars at most.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Input and output tokens at most.")] = None,
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Seconds at most.")] = None,
    session: Annotated[
        str | None,
        typer.Option(help="Name of the session to write, or with --resume to go on.", autocompletion=_session_names),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a session [default: newest here].")] = False,
    no_session: Annotated[bool, typer.Option("--no-session", help="Keep nothing.")] = False,
    sandbox: SandboxOption = None,
    approval: ApprovalOption = None,
    trust: TrustOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Do one task: progress on stderr, the answer on stdout.

    Exit codes: 0 done, 1 error, 2 usage, 3 steps, 4 cost, 5 tokens, 6 denied, 7 no sandbox, 75 rate limit,
    76 key, 77 model unavailable, 124 time, 130 SIGINT, 143 SIGTERM.
    """
    from .options import begin, finish, settled_profile
    from .run import Run, read_task, run_once

    if no_session and (resume or session):
        raise typer.BadParameter("--no-session keeps nothing, so it does not go with --session or --resume")
    task = read_task(text or [], file)
    limits = {"steps": max_turns, "cost_usd": max_cost, "tokens": max_tokens, "time_s": timeout}
    kept = None
    if no_session:
        chosen = settled_profile(profile, model, sandbox, approval, is_trusted=trust)
    else:
        how = (profile, model, sandbox, approval)
        chosen, kept = begin(*how, session=session, is_resumed=resume, is_trusted=trust)
    asked = Run(
        text=task,
        profile=chosen.profile,
        limits=chosen.profile.limits.model_copy(
            update={name: value for name, value in limits.items() if value is not None}
        ),
        session=kept,
        output_format=output_format.value,
        is_quiet=quiet,
    )
    raise typer.Exit(finish(run_once(asked), chosen, kept))


@session_app.command("start", epilog="Example: goose-like session start --profile local")
def session_start(
    name: Annotated[str | None, typer.Argument(help="A name for it [default: a short one is made].")] = None,
    plan: PlanOption = None,
    args: ArgsOption = None,
    profile: ProfileOption = None,
    model: ModelOption = None,
    sandbox: SandboxOption = None,
    approval: ApprovalOption = None,
    trust: TrustOption = False,
) -> None:
    """Start a session and talk; Ctrl-C stops a turn, Ctrl-D leaves."""
    if args and not plan:
        raise typer.BadParameter("--args fills in a plan, so it goes with --plan")
    _start(name, plan, args, (profile, model, sandbox, approval), is_trusted=trust)


@session_app.command("planned", epilog="Example: goose-like session planned --plan plan.md --args name=parser")
def session_planned(
    plan: Annotated[str, typer.Option(help="The file with the work, Markdown with a list or YAML.")],
    args: ArgsOption = None,
    profile: ProfileOption = None,
    model: ModelOption = None,
    sandbox: SandboxOption = None,
    approval: ApprovalOption = None,
    trust: TrustOption = False,
) -> None:
    """Start a session with planned work."""
    _start(None, plan, args, (profile, model, sandbox, approval), is_trusted=trust)


def _start(
    name: str | None,
    plan: str | None,
    args: list[str] | None,
    how: tuple[str | None, str | None, str | None, str | None],
    *,
    is_trusted: bool,
) -> None:
    from goose_like.cli.chat.startup import open_session

    work: dict[str, Any] = {}
    if plan:
        from goose_like.config.task_file import read_arguments, read_plan

        planned = read_plan(plan, read_arguments(args or []))
        work = {"plan": planned.tasks, "first": planned.first}
    raise typer.Exit(open_session(how, session=name, is_trusted=is_trusted, **work))


@session_app.command("resume", epilog="Example: goose-like session resume")
def session_resume(
    name: Annotated[
        str | None, typer.Argument(help="Which [default: the newest of this folder].", autocompletion=_session_names)
    ] = None,
    profile: ProfileOption = None,
    model: ModelOption = None,
    sandbox: SandboxOption = None,
    approval: ApprovalOption = None,
    trust: TrustOption = False,
) -> None:
    """Go on with a session."""
    from goose_like.cli.chat.startup import open_session

    how = (profile, model, sandbox, approval)
    raise typer.Exit(open_session(how, session=name, is_resumed=True, is_trusted=trust))


@session_app.command("list", epilog="Example: goose-like session list --here")
def session_list(
    words: Annotated[
        list[str] | None, typer.Argument(help="Only those with these words in name, folder or what you said.")
    ] = None,
    here: Annotated[bool, typer.Option("--here", help="Only those of this folder.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Not only the newest 20.")] = False,
) -> None:
    """List the sessions, newest first: name, age, folder, turns, cost, tokens, what about."""
    from goose_like.cli.commands.session import show_sessions

    show_sessions(words or [], cwd=os.getcwd() if here else None, has_all=every)


@session_app.command("show", epilog="Example: goose-like session show NAME")
def session_show(name: NameArgument) -> None:
    """Show a session: its turns and how they ended, the files written, what it took."""
    from goose_like.cli.commands.session_export import show_session

    show_session(name)


@session_app.command("export", epilog="Example: goose-like session export NAME -o talk.html")
def session_export(
    name: NameArgument,
    form: Annotated[
        Form | None, typer.Option("--format", help="How [default: by the ending of FILE, else markdown].")
    ] = None,
    file: Annotated[str | None, typer.Option("-o", "--output", help="The file to write [default: stdout].")] = None,
) -> None:
    """Write a session as Markdown, as a web page, or as JSON that `session import` reads."""
    from pathlib import Path

    from goose_like.cli.commands.session_export import export_session

    export_session(name, form.value if form else None, Path(file) if file else None)


@session_app.command("import", epilog="Example: goose-like session import talk.json")
def session_import(
    file: Annotated[str, typer.Argument(help="What `session export --format json` or goose 0.9 wrote.")],
    name: Annotated[str | None, typer.Option(help="A name for it [default: its own, where that is free].")] = None,
) -> None:
    """Make a new session of a file; `session resume` goes on with it."""
    from pathlib import Path

    from goose_like.cli.commands.session_export import import_session

    import_session(Path(file), name)


@session_app.command("fork", epilog="Example: goose-like session fork NAME --at 2")
def session_fork(
    name: NameArgument,
    at: Annotated[int | None, typer.Option(help="Only what stands before this turn [default: all].")] = None,
    new: Annotated[str | None, typer.Option("--name", help="A name for it [default: a short one is made].")] = None,
) -> None:
    """Make a new session that begins as another did, which may be open and stays as it is."""
    from goose_like.cli.commands.session_export import fork_session

    fork_session(name, at, new)


@session_app.command("rename", epilog="Example: goose-like session rename NAME parser")
def session_rename(name: NameArgument, new: Annotated[str, typer.Argument(help="Its new name.")]) -> None:
    """Give a session another name."""
    from goose_like.sessions.index import rename

    rename(name, new)
    print(f"{name!r} is {new!r} now; go on with it: goose-like session resume {shlex.quote(new)}")


@session_app.command("clear", epilog="Example: goose-like session clear --keep 10 --yes")
def session_clear(
    keep: Annotated[int, typer.Option(min=0, help="How many of the newest stay.")],
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
) -> None:
    """Delete all sessions but the newest, after asking; those that are open stay."""
    from goose_like.cli.commands.session import clear_sessions

    clear_sessions(keep, is_agreed=yes)


@profile_app.command("list", epilog="Example: goose-like profile list")
def profile_list() -> None:
    """List the profiles and the files that they are in."""
    from goose_like.cli.commands.inspect import show_profiles

    show_profiles()


@profile_app.command("show", epilog="Example: goose-like profile show local")
def profile_show(
    name: Annotated[
        str | None,
        typer.Argument(help="Which profile [default: what `run` would take].", autocompletion=_profile_names),
    ] = None,
) -> None:
    """Show a profile as it works, with all that it extends."""
    from goose_like.cli.commands.inspect import show_profile

    show_profile(name)


@profile_app.command("check", epilog="Example: goose-like profile check default")
def profile_check(
    name: Annotated[
        str | None,
        typer.Argument(help="Which profile [default: what `run` would take].", autocompletion=_profile_names),
    ] = None,
) -> None:
    """Tell where each value of a profile comes from, and check that it can be used."""
    from goose_like.cli.commands.inspect import check_profile

    from .options import chosen_profile, finish

    chosen = chosen_profile(name)
    raise typer.Exit(finish(check_profile(chosen.profile, chosen.source), chosen))


@profile_app.command("new", epilog="Example: goose-like profile new careful --from default")
def profile_new(
    name: Annotated[str, typer.Argument(help="A name for it.")],
    base: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="The profile that it extends [default: NAME's own, else default].",
            autocompletion=_profile_names,
        ),
    ] = None,
) -> None:
    """Add a profile to your profiles.yaml that extends another."""
    from goose_like.cli.commands.profile_editor import add_profile

    print(f"added {name!r} to {add_profile(name, base)}; change it: goose-like profile edit {name}")


@profile_app.command("edit", epilog="Example: goose-like profile edit")
def profile_edit(
    name: Annotated[
        str | None,
        typer.Argument(help="Which of your profiles [default: the whole file].", autocompletion=_own_profile_names),
    ] = None,
) -> None:
    """Edit your profiles in $VISUAL or $EDITOR; what is wrong is told with its line before it is saved."""
    from goose_like.cli.commands.profile_edit import edit_profile

    edit_profile(name)


@profile_app.command("use", epilog="Example: goose-like profile use local")
def profile_use(name: Annotated[str, typer.Argument(help="Which profile.", autocompletion=_profile_names)]) -> None:
    """Take this profile from now on when none is named."""
    from goose_like.cli.commands.profile_editor import use_profile

    print(f"without --profile, {name!r} is used from now on: {use_profile(name)}")


@profile_app.command("schema", epilog="Example: goose-like profile schema > profiles.schema.json")
def profile_schema() -> None:
    """Print the JSON Schema of profiles.yaml, for editors."""
    from goose_like.cli.commands.profile_editor import schema_text

    print(schema_text(), end="")


@toolkit_app.command("list", epilog="Example: goose-like toolkit list")
def toolkit_list() -> None:
    """List the installed toolkits."""
    from goose_like.cli.commands.inspect import show_toolkits

    show_toolkits()


@toolkit_app.command("show", epilog="Example: goose-like toolkit show developer")
def toolkit_show(name: Annotated[str, typer.Argument(help="Which toolkit.", autocompletion=_toolkit_names)]) -> None:
    """Show a toolkit's tools as a model is told of them."""
    from goose_like.cli.commands.inspect import show_toolkit

    from .options import finish

    raise typer.Exit(finish(show_toolkit(name)))


@toolkit_app.command("new", epilog="Example: goose-like toolkit new my-tools")
def toolkit_new(
    name: Annotated[str, typer.Argument(help="Its name in profiles.")],
    path: Annotated[str, typer.Option(help="The folder in which its own is made.")] = ".",
) -> None:
    """Write the package of a new toolkit, with a test that needs no model."""
    from pathlib import Path

    from goose_like.cli.commands.toolkit_new import write_toolkit

    folder = write_toolkit(name, Path(path))
    print(f"wrote {folder}; next: pip install -e {shlex.quote(f'{folder}[test]')}")


@provider_app.command("list", epilog="Example: goose-like provider list")
def provider_list() -> None:
    """List the providers of models and what each still needs."""
    from goose_like.cli.commands.inspect import show_providers

    show_providers()


@provider_app.command("check", epilog="Example: goose-like provider check openai")
def provider_check(name: Annotated[str, typer.Argument(help="Which provider, or PROVIDER:MODEL.")]) -> None:
    """Ask a provider's server for its models: is it there, is the key accepted. Costs nothing."""
    from goose_like.cli.commands.inspect import check_provider

    from .options import finish

    raise typer.Exit(finish(check_provider(name)))


@provider_app.command("login", epilog="Example: goose-like provider login openai < key.txt")
def provider_login(
    name: Annotated[str, typer.Argument(help="Which provider.")],
    no_check: Annotated[bool, typer.Option("--no-check", help="Keep the key without asking the server.")] = False,
) -> None:
    """Keep a provider's API key: asked for unseen, or read from standard input."""
    from goose_like.cli.commands.provider_login import log_in, read_key

    from .options import finish

    raise typer.Exit(finish(log_in(name, read_key(name), is_checked=not no_check)))


@provider_app.command("logout", epilog="Example: goose-like provider logout openai")
def provider_logout(name: Annotated[str, typer.Argument(help="Which provider.")]) -> None:
    """Forget the API key that `provider login` kept."""
    from goose_like.cli.commands.provider_login import log_out

    log_out(name)


@trust_app.command("add", epilog="Example: goose-like trust add .")
def trust_add(folder: Annotated[str, typer.Argument(help="A folder of the project.")] = ".") -> None:
    """Trust the profiles that a project brings, as they are now; changed ones are asked about anew."""
    from goose_like.cli.commands.trust import add_trust

    add_trust(folder)


@trust_app.command("list", epilog="Example: goose-like trust list")
def trust_list() -> None:
    """List what you allowed for good, by folder."""
    from goose_like.cli.commands.trust import show_trust

    show_trust()


@trust_app.command("forget", epilog="Example: goose-like trust forget 1")
def trust_forget(
    what: Annotated[str, typer.Argument(help="A number of `trust list`, or a folder for all that is allowed there.")],
) -> None:
    """Take back what you allowed for good."""
    from goose_like.cli.commands.trust import forget_trust

    forget_trust(what)


@app.command(epilog="Example: goose-like doctor")
def doctor(profile: ProfileOption = None) -> None:
    """Tell what is installed and set, which model would be used and why, and what to do next."""
    from goose_like.cli.commands.inspect import show_doctor

    from .options import finish

    raise typer.Exit(finish(show_doctor(profile)))


@app.command("help", epilog="Example: goose-like help run")
def show_help(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND|TOPIC]...", help="Which.", autocompletion=_help_topics)
    ] = None,
) -> None:
    """Show the page of a command, or of a topic: profiles, toolkits, sandbox, keys, exit-codes, ..."""
    from pydoc import pager

    from .help import page

    pager(page(app, words or []))


@app.command(epilog="Example: goose-like completion bash")
def completion(shell: Annotated[Shell, typer.Argument(help="Which shell's.")]) -> None:
    """Print a script that makes a shell complete commands, options and names; source it in the shell's start file."""
    from .shell_completion import SCRIPTS

    print(SCRIPTS[shell.value].strip())


@app.command(hidden=True)
def complete(words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """What the last word may become: the scripts of `completion` ask for it."""
    from .shell_completion import print_candidates

    print_candidates(app, words or [])


@app.command(epilog="Example: goose-like version")
def version() -> None:
    """Print the version."""
    print(f"goose-like {__version__}")


def _add_plugins() -> None:
    """Subcommands of installed packages; all of them are imported, so they should be light."""
    from goose_like.core.entry_points import found, load

    for name in found("goose_like.cli"):
        try:
            app.add_typer(cast(typer.Typer, load("goose_like.cli", name)), name=name)
        except GooseLikeError as error:  # the other commands work without it
            print(f"goose-like: left out: {error}", file=sys.stderr)


def run_command_line() -> int:
    """What the words of the command line ask for; its exit code."""
    return guarded(_run)


def _run() -> None:
    _add_plugins()
    app(prog_name="goose-like")
