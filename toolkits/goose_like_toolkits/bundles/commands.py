"""The work of the commands `goose-like bundle ...`."""

import sys
from collections.abc import Sequence
from difflib import unified_diff

from goose_like.config.bundles import Bundle, list_broken_bundles, list_bundles, list_names, read_bundle
from goose_like.core.errors import DeniedError, UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.terminal.escape import escape_invisible, to_one_line
from goose_like.terminal.interaction import confirm, has_person
from goose_like.terminal.report_table import print_fitted, print_table

from ..skills.packages import find_package_plugins
from .contents import Contents
from .report import PERMISSIONS, describe_bundle, format_changes, list_permissions
from .sources import PACKAGE, Marketplace, Place, find_place, normalize_source, open_source, shorten_source
from .store import install, open_copy, read_files, remove

_SHOWN_CHARS = 90


def add_bundle(source: str, member: str, *, is_sure: bool) -> None:
    """Show a bundle, ask, and install it. Print the list of a marketplace instead, if no bundle of it is named.

    Raises:
        GooseLikeError: it is no bundle, or cannot be fetched.
        DeniedError: the person said no, or nobody is there to ask.
    """
    origin = normalize_source(source)
    place = find_place(open_source(origin), member)
    if isinstance(place, Marketplace):
        _print_marketplace(place, source)
        return
    with open_copy(place) as (root, contents):
        name = contents.bundle.name
        if read_bundle(name):
            raise UsageError(f"there is a bundle {name!r}; goose-like bundle update {name}, or remove it first")
        _print_lines(describe_bundle(root, contents))
        _ask(f"Add {name}?", is_sure=is_sure)
        contents.bundle = contents.bundle.model_copy(update={"source": origin, "member": member})
        install(root, contents)
    print(f"added; new sessions use it. To see it again: goose-like bundle show {name}")


def _ask(question: str, *, is_sure: bool) -> None:
    if is_sure:
        return
    if not has_person():
        raise DeniedError("nobody is there to ask; look at the lines above, then add --yes")
    if not confirm(question):
        raise DeniedError("nothing changed")


def _print_lines(lines: list[str]) -> None:
    print_fitted("\n".join(lines))


def _print_marketplace(market: Marketplace, source: str) -> None:
    """Print the bundles of a list."""
    rows = []
    for name, entry in market.entries.items():
        description = to_one_line(str(entry.get("description") or ""), _SHOWN_CHARS)
        rows.append((escape_invisible(name), description))
    print_table(("bundle", "description"), rows, "this list is empty")
    print(f"\nto look at one and add it: goose-like bundle add {source} NAME", file=sys.stderr)


def print_bundles() -> None:
    """Print the installed bundles, and the packages that bring one."""
    rows = []
    bundles = list_bundles()
    for bundle in bundles:
        source = f"{shorten_source(bundle.source)} {bundle.member}".strip()
        cells = (bundle.name, bundle.version, bundle.layout, source)
        rows.append(tuple(map(escape_invisible, cells)))
    print_table(("name", "version", "layout", "from"), rows, "there are no bundles; see goose-like help bundles")
    plugins, problems = find_package_plugins()
    for plugin in plugins:
        if not any(bundle.source == f"{PACKAGE}{plugin.package}" for bundle in bundles):
            print(
                f"the package {plugin.package} brings a bundle, of which sessions use the skills alone; "
                f"for its servers: goose-like bundle add {plugin.package}",
                file=sys.stderr,
            )
    for problem in (*problems, *list_broken_bundles()):
        print(escape_invisible(problem), file=sys.stderr)


def show_bundle(name: str, member: str) -> None:
    """Print what an installed bundle contains and may do, or one that could be added. Nothing runs.

    Raises:
        GooseLikeError: there is no such bundle.
    """
    bundle = read_bundle(name)
    if bundle:
        _print_lines(describe_bundle(bundle.root, _read_installed(bundle)))
        return
    if name in list_names():
        raise _make_unknown_error(name)
    place = find_place(open_source(normalize_source(name)), member)
    if isinstance(place, Marketplace):
        _print_marketplace(place, name)
        return
    with open_copy(place) as (root, contents):
        _print_lines(describe_bundle(root, contents))


def _read_installed(bundle: Bundle) -> Contents:
    return Contents(bundle, bundle.read_part("hooks"), bundle.read_part("servers"))


def update_bundles(name: str, *, is_sure: bool) -> None:
    """Show what changed in the source of one bundle, or of all, and ask whether to use it.

    Raises:
        UsageError: there is no such bundle.
        DeniedError: the person said no, or nobody is there to ask.
    """
    bundles = [_find_bundle(name)] if name else list_bundles()
    for bundle in bundles:
        _update(bundle, is_sure=is_sure)


def _find_bundle(name: str) -> Bundle:
    bundle = read_bundle(name)
    if bundle is None:
        raise _make_unknown_error(name)
    return bundle


def _make_unknown_error(name: str) -> UsageError:
    if name in list_names():
        return UsageError(f"the bundle {name!r} can't be read; add it again, or remove it")
    return UsageError(f"no bundle {name!r}; {did_you_mean(name, list_names())}")


def _update(bundle: Bundle, *, is_sure: bool) -> None:
    source = shorten_source(bundle.source)
    place = find_place(open_source(bundle.source), bundle.member)
    if not isinstance(place, Place):
        raise UsageError(f"{source} is a list of bundles now; remove {bundle.name}, and add one of it")
    with open_copy(place) as (root, contents):
        if contents.bundle.name != bundle.name:
            raise UsageError(f"{source} has the bundle {contents.bundle.name!r} now, not {bundle.name!r}")
        changes = format_changes(read_files(bundle.root), read_files(root))
        permissions_before = list_permissions(bundle.root, _read_installed(bundle))
        permissions_now = list_permissions(root, contents)
        if not changes and permissions_before == permissions_now:
            print(f"{bundle.name} is up to date")
            return
        _print_lines(_describe_update(bundle, contents, permissions_before, permissions_now))
        _print_lines(["files:", *changes])
        _ask(f"Update {bundle.name}?", is_sure=is_sure)
        contents.bundle = contents.bundle.model_copy(update={"source": bundle.source, "member": bundle.member})
        install(root, contents)
    print(f"updated {bundle.name}; new sessions use it")


def _describe_update(bundle: Bundle, contents: Contents, before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Describe in lines how the version and the permissions of a bundle change, and what is not used of it."""
    version = contents.bundle.version
    title = bundle.name
    if version != bundle.version:
        title = f"{bundle.name} {bundle.version} -> {version}"
    lines = [title, f"from {shorten_source(bundle.source)}"]
    if before == now:
        lines.append("it runs and reaches the same as before")
    else:
        lines.append(f"{PERMISSIONS}:")
        _, _, *diff = unified_diff(before, now, lineterm="", n=0)
        lines += [line for line in diff if not line.startswith("@@")]
    lines += [f"not used: {problem}" for problem in contents.problems]
    return list(map(escape_invisible, lines))


def remove_bundle(name: str) -> None:
    """Remove a bundle with its data, also one that cannot be read.

    Raises:
        UsageError: there is no such bundle.
    """
    if name not in list_names():
        raise _make_unknown_error(name)
    remove(name)
    print(f"removed {name} and its data")
