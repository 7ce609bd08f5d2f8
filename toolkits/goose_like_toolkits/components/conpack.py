"""`conpack`: the same by ConCopilot's own command line, for scripts that were written for that.

What a command needs is imported by it: help comes at once, and a library that is missing is told in one line.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from goose_like.cli.exit import run_guarded
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.terminal.escape import escape_controls
from goose_like_toolkits.components.commands.extra import require_extra

PASSWORD_VARIABLE = "CONPACK_REPO_USER_PWD"

_COMMANDS = {
    "build": "place components' configuration in .runtime, install what they need, and construct them",
    "run": "build a copilot and let it work",
    "install": "check components and copy their .config folders to the local repository",
    "deploy": "install components, then send them to a remote repository",
}
_ALL = tuple(_COMMANDS)

_FLAGS: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "--settings": ("FILE", "the settings file (~/.concopilot/settings.yaml)", _ALL),
    "--working-directory": ("DIR", "where the component runs, and .runtime is made (the current folder)", _ALL),
    "--group-id": ("GROUP_ID", "with the next two: which component, by its coordinates", ("build", "run")),
    "--artifact-id": ("ARTIFACT_ID", "", ("build", "run")),
    "--version": ("VERSION", "", ("build", "run")),
    "--config-file": ("FILE", "which component, by its config.yaml", ("build", "run")),
    "--src-folder": ("DIR", "which component, by the folder that has its .config (the current folder)", _ALL),
    "--recursive": ("", "every component in the folders below the source folder", ("build", "install", "deploy")),
    "--skip-setup": ("", "install nothing of setup.pip; `install` and `deploy` never do", _ALL),
    "--pip-params": ("WORDS", "more words for pip, in one argument", _ALL),
    "--repo-user-name": ("NAME", "the user's name at the remote repository", ("deploy",)),
    "--repo-user-pwd": ("PASSWORD", f"its password; better in the variable {PASSWORD_VARIABLE}", ("deploy",)),
    "--gpg-passphrase": ("WORDS", "sign with it; better in the variable CONPACK_GPG_PASSPHRASE", ("deploy",)),
    "--gnupg-home": ("DIR", "the folder of GPG keys (GPG's own)", ("deploy",)),
    "--add-current-folder-to-path": ("", "import packages from the current folder", _ALL),
    "--add-working-directory-to-path": ("", "import packages from the working directory", _ALL),
    "--add-src-folder-to-path": ("", "import packages from the source folder", _ALL),
    "--help-cmd": ("", "what the command takes, instead of doing it", _ALL),
}
"""Each flag with the word for its value (none: it takes none), what it means, and the commands that heed it. All are
accepted everywhere, as by the original."""


def main() -> None:
    """The console script."""
    sys.exit(run_guarded(lambda: execute(sys.argv[1:])))


def execute(words: Sequence[str]) -> int:
    """Does what a command line says; gives the exit code.

    Raises:
        GooseLikeError: the command line is wrong, or something failed.
    """
    given, rest = _parser().parse_known_args(words)
    command = rest.pop(0).strip().lower() if rest and not rest[0].startswith("-") else None
    if command is None or command == "help" or given.help_cmd:
        subject = rest[0].strip().lower() if command == "help" and rest else command
        if subject is not None and subject not in ("help", *_COMMANDS):
            raise _unknown(subject)
        print(help_of(subject if subject in _COMMANDS else None))
        return 0
    if command not in _COMMANDS:
        raise _unknown(command)
    require_extra()
    if command in ("build", "run"):
        return _used(command, given, rest)
    if rest:
        raise UsageError(f"unknown argument {rest[0]!r}; {did_you_mean(rest[0], _FLAGS)}")
    return _packed(command, given)


def help_of(command: str | None) -> str:
    """What a command takes, or all that there is."""
    if command is None:
        lines = ["usage: conpack build|run|install|deploy|help [FLAG]...", ""]
        lines += [f"  {name:<8} {what}" for name, what in _COMMANDS.items()]
        lines += [
            "",
            "`conpack help COMMAND` and `conpack COMMAND --help-cmd` tell what a command takes.",
            "",
            "flags:",
        ]
    else:
        takes_more = " [ARGUMENT]..." if command in ("build", "run") else ""
        lines = [f"usage: conpack {command} [FLAG]...{takes_more}", "", f"{_COMMANDS[command].capitalize()}.", ""]
    for flag, (value, what, heeded) in _FLAGS.items():
        if command is None or command in heeded:
            lines.append(f"  {f'{flag}={value}' if value else flag:<34} {what}".rstrip())
    if command in ("build", "run"):
        lines += ["", "What else is given goes to the component's constructor."]
    return "\n".join(lines)


def _unknown(command: str) -> UsageError:
    return UsageError(f"unknown command {command!r}; {did_you_mean(command, [*_COMMANDS, 'help'])}")


class _Parser(argparse.ArgumentParser):
    """Tells in one sentence what is wrong."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; `conpack help` tells what there is")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="conpack", add_help=False)
    parser.add_argument("-h", "--help", dest="help_cmd", action="store_true")
    for flag, (value, _, _) in _FLAGS.items():
        if value:
            parser.add_argument(flag)
        else:
            parser.add_argument(flag, action="store_true")
    return parser


def _packed(command: str, given: argparse.Namespace) -> int:
    """Installs or deploys what is in the source folder."""
    from goose_like_toolkits.components.repositories.packing import Sent, deploy_all, install
    from goose_like_toolkits.components.repositories.repository import LocalRepository
    from goose_like_toolkits.components.repositories.settings import read_settings

    settings = read_settings(_path(given.settings))
    repository = LocalRepository(settings.local)
    paths, is_recursive, roots = [_source(given)], given.recursive, _roots(given)
    if command == "install":
        install(paths, repository, _said, is_recursive=is_recursive, roots=roots)
        return 0
    name = given.repo_user_name
    password = given.repo_user_pwd or (os.environ.get(PASSWORD_VARIABLE) if name else None)
    sent = Sent(None, name, password, given.gpg_passphrase, _path(given.gnupg_home))
    deploy_all(paths, settings, repository, sent, _said, is_recursive=is_recursive, roots=roots)
    return 0


def _used(command: str, given: argparse.Namespace, rest: Sequence[str]) -> int:
    """Builds or runs each component that is meant; gives the exit code of the first that fails."""
    from goose_like_toolkits.components.commands.running import Wanted, build, run
    from goose_like_toolkits.components.repositories.repository import Repositories
    from goose_like_toolkits.components.repositories.settings import read_settings

    repositories = Repositories.of(read_settings(_path(given.settings)), tell=_told)
    for component in _meant(given):
        wanted = Wanted(
            repositories=repositories,
            component=component,
            working_directory=Path(given.working_directory or "."),
            is_setup_skipped=given.skip_setup,
            pip_parameters=tuple((given.pip_params or "").split()),
            roots=_roots(given),
            arguments=tuple(rest),
        )
        if code := build(wanted) if command == "build" else run(wanted):
            return code
    return 0


def _meant(given: argparse.Namespace) -> Sequence[Any]:
    """The coordinates or the config files of components."""
    from goose_like_toolkits.components.described.coordinates import Coordinates
    from goose_like_toolkits.components.repositories.sources import config_files

    parts = {"--group-id": given.group_id, "--artifact-id": given.artifact_id, "--version": given.version}
    missing = [flag for flag, value in parts.items() if not value]
    if not missing:
        return [Coordinates(*parts.values())]
    if len(missing) < len(parts):
        raise UsageError(f"coordinates are three: give {' and '.join(missing)}, too")
    if given.config_file:
        if not os.path.isfile(given.config_file):
            raise UsageError(f"there is no file {given.config_file}; give a component's config.yaml")
        return [Path(given.config_file)]
    return config_files(_source(given), is_recursive=given.recursive)


def _path(given: str | None) -> Path | None:
    return Path(given) if given else None


def _source(given: argparse.Namespace) -> Path:
    return Path((given.src_folder or "").strip() or ".")


def _roots(given: argparse.Namespace) -> tuple[Path, ...]:
    """The folders to import packages from, as flags say it."""
    wanted = (
        (given.add_current_folder_to_path, "."),
        (given.add_working_directory_to_path, given.working_directory or "."),
        (given.add_src_folder_to_path, _source(given)),
    )
    return tuple(dict.fromkeys(Path(folder).absolute() for is_wanted, folder in wanted if is_wanted))


def _said(words: str) -> None:
    print(escape_controls(words), flush=True)


def _told(words: str) -> None:
    print(escape_controls(words), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
