"""Copies of git repositories that a person names, below the cache folder."""

import hashlib
import re
import subprocess
from pathlib import Path

from goose_like.config.paths import cache_folder, lock_folder
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.workspace.programs import GIT_OPTIONS, build_git_environment, find_program

_GITHUB = re.compile(r"[\w-]+/[\w.-]+")
# No hook and no filter of the repository runs, and no other program brings it.
_OPTIONS = (*GIT_OPTIONS, "-c", "protocol.ext.allow=never")


def expand_address(address: str) -> str:
    """Return the address of a git repository. OWNER/NAME is one of GitHub."""
    if _GITHUB.fullmatch(address):
        return f"https://github.com/{address}"
    return address


def fetch_copy(address: str, kind: str, revision: str = "") -> Path:
    """Fetch a git repository as it is now, and return the folder of the copy. OWNER/NAME is one of GitHub.

    `kind` says what the person wants of it, such as `recipes`. Without a revision, it is the newest one. Only an
    absolute path names a local folder.

    Raises:
        GooseLikeError: git fails.
    """
    address = expand_address(address)
    if revision.startswith("-"):
        raise UsageError(f"{revision!r} is no revision of a repository")
    key = f"{address}#{revision}" if revision else address
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    parent = cache_folder() / kind
    copy = parent / digest
    parent.mkdir(parents=True, exist_ok=True)
    with lock_folder(parent):
        is_new = not copy.exists()
        if is_new:
            _run_git(kind, parent, "clone", "--quiet", "--depth=1", "--no-tags", "--", address, str(copy))
        if revision or not is_new:
            _run_git(kind, copy, "fetch", "--quiet", "--depth=1", "origin", revision or "HEAD")
            _run_git(kind, copy, "reset", "--quiet", "--hard", "FETCH_HEAD")
    return copy


def _run_git(kind: str, folder: Path, *words: str) -> None:
    """Run git in a folder of ours: a project may hold a repository in `https:/HOST/NAME`, which git would clone."""
    here = Path.cwd()  # a project's own `git` must not run
    program = find_program("git", here)
    if program is None:
        raise UsageError("there is no git on the PATH outside this folder; install it, or name a file")
    done = subprocess.run(
        [program, *_OPTIONS, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=build_git_environment(here),
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit code {done.returncode}"
        for line in lines:
            if line.startswith("fatal: "):
                reason = line.removeprefix("fatal: ")
        raise GooseLikeError(f"the {kind} can't be fetched: {reason}")
