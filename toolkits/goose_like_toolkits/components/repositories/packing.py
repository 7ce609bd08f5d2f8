"""Components installed and deployed: checked before, all of them or none."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.terminal.escape import escape_controls
from goose_like_toolkits.components.described.checking import check_file
from goose_like_toolkits.components.described.coordinates import Coordinates
from goose_like_toolkits.components.described.definition import Definition, read_definition

from .deploying import deploy, require_new, target_for
from .progress import Tell, slow
from .repository import LocalRepository
from .settings import Settings, address_of
from .signing import Signer, ask_hidden, ask_passphrase
from .sources import config_files, remember_packages, topmost_package

_SERVED = ("concopilot", "goose_like_stage")
"""Packages that are there for every component."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Who deploys: to where, in the place of what the settings say, and with which name, password and key.

    `insecure` is of `to`, as in the settings.
    """

    to: str | None = None
    user_name: str | None = None
    password: str | None = None
    passphrase: str | None = None
    gnupg_home: Path | None = None
    insecure: bool = False


def checked(files: Iterable[Path]) -> list[Definition]:
    """The components of these config files.

    Raises:
        GooseLikeError: one of them is faulty, or two have the same coordinates; the text tells all faults.
    """
    definitions: dict[Coordinates, Definition] = {}
    wrong = []
    for file in files:
        wrong += [str(fault) for fault in check_file(file) if not fault.is_warning]
        definition = read_definition(file).value
        if definition is None:
            continue
        other = definitions.setdefault(definition.coordinates, definition)
        if other is not definition:
            wrong.append(f"{file}: {definition.coordinates} is {other.file}, too; give one of them another version")
    if wrong:
        raise GooseLikeError(escape_controls("nothing is done, mend these first:\n" + "\n".join(wrong)))
    return list(definitions.values())


def install(
    paths: Sequence[Path],
    repository: LocalRepository,
    tell: Tell,
    *,
    is_recursive: bool = True,
    roots: Sequence[Path] = (),
) -> list[Definition]:
    """Installs the components at these paths in the local repository, and remembers where their code is.

    Raises:
        GooseLikeError: one of them is faulty or can't be copied; then none is installed.
    """
    files = [file for path in paths for file in config_files(path, is_recursive=is_recursive)]
    definitions = checked(dict.fromkeys(files))
    repository.install((definition.file.parent, definition.coordinates) for definition in definitions)
    found = {str(one.coordinates): topmost_package(one.file, one.package, roots) for one in definitions}
    known = {coordinates: package for coordinates, package in found.items() if package}
    remember_packages(known, found.keys() - known.keys())
    for one in definitions:
        tell(f"{one.coordinates} installed in {repository.folder_of(one.coordinates)}")
        if str(one.coordinates) not in known and one.package.partition(".")[0] not in _SERVED:
            tell(
                f"  its package {one.package!r} is not where its configuration is: install it with pip, or name its "
                "folder by `path` in the profile"
            )
    return definitions


def deploy_all(
    paths: Sequence[Path],
    settings: Settings,
    repository: LocalRepository,
    sent: Sent,
    tell: Tell,
    *,
    is_recursive: bool = True,
    roots: Sequence[Path] = (),
) -> None:
    """Installs the components at these paths, then sends them to the remote repository.

    Raises:
        GooseLikeError: as `install`; or the remote does not take them.
    """
    if sent.to is not None:
        settings = settings.model_copy(update={"remotes": (address_of(sent.to, insecure=sent.insecure),)})
    files = [file for path in paths for file in config_files(path, is_recursive=is_recursive)]
    wanted = [definition.coordinates for definition in checked(dict.fromkeys(files))]
    credentials = _credentials(sent)
    with ExitStack() as stack:
        kinds = {one.is_snapshot for one in wanted}
        targets = {kind: stack.enter_context(closing(target_for(settings, kind, credentials))) for kind in kinds}
        for coordinates in wanted:
            target = targets[coordinates.is_snapshot]
            with slow(f"asking {target.name} for {coordinates}", tell):
                require_new(coordinates, target)
        passphrase = ask_passphrase(sent.passphrase)
        signer = None if passphrase is None else Signer(passphrase, sent.gnupg_home)
        install(paths, repository, tell, is_recursive=is_recursive, roots=roots)
        for coordinates in wanted:
            target = targets[coordinates.is_snapshot]
            count = deploy(repository.folder_of(coordinates), coordinates, target, signer, tell)
            signed = "signed" if signer else "not signed, as no passphrase was given"
            tell(f"{coordinates} deployed to {target.name}: {count} file{'s' * (count != 1)}, {signed}")


def _credentials(sent: Sent) -> tuple[str, str] | None:
    if sent.user_name is None:
        if sent.password is not None:
            raise UsageError("a password without a user name; give --repo-user-name, too")
        return None
    if sent.password is not None:
        return sent.user_name, sent.password
    if sys.stdin and sys.stdin.isatty():
        return sent.user_name, ask_hidden(f"password of {sent.user_name}: ")
    raise UsageError("a user name without a password; give --repo-user-pwd, or the variable CONPACK_REPO_USER_PWD")
