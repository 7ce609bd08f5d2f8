"""The hook of a build that writes the commit into the package, for `goose-like --version`."""

import os
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds a file with the commit to a wheel and an sdist. An editable install reads the commit of its checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file. A wheel that is built from an sdist already has it, and a copy without git has no commit."""
        sys.path.insert(0, self.root)
        from goose_like.core.version import COMMIT_FILE, read_commit

        package = os.path.join(self.root, "goose_like")
        self._file = ""
        commit = read_commit(package)
        if version == "editable" or not commit or os.path.exists(os.path.join(package, COMMIT_FILE)):
            return
        descriptor, self._file = tempfile.mkstemp(prefix="goose-like-")
        with open(descriptor, "w") as file:
            file.write(f"{commit}\n")
        os.chmod(self._file, 0o644)
        build_data["force_include"][self._file] = f"goose_like/{COMMIT_FILE}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary file."""
        if self._file:
            os.unlink(self._file)
