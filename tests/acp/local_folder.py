"""A task environment of harbor in a folder of this machine. It runs in harbor's own Python; see `test_harbor.py`."""

import asyncio
import re
import shutil
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult  # pyright: ignore[reportMissingImports]

_PLACES = re.compile(r"(?<![\w./-])/(app|logs|tests|installed-agent|opt/harbor-acp-venv)(?=[/\s'\";]|$)")
"""The places in a container that harbor's files and commands name."""


class LocalFolder(BaseEnvironment):
    """An environment whose root is a folder in that of the trial. Nothing is installed."""

    @staticmethod
    def type() -> str:
        return "local-folder"

    def _validate_definition(self) -> None:
        """Accept any definition: nothing is built from it."""

    @property
    def _root(self) -> Path:
        return self.trial_paths.trial_dir / "root"

    def _find(self, path: str) -> Path:
        return self._root / path.removeprefix("/")

    def _move_places(self, text: str) -> str:
        return _PLACES.sub(lambda place: f"{self._root}{place[0]}", text)

    async def start(self, force_build: bool) -> None:
        for place in ("/app", "/opt", "/logs/agent", "/logs/verifier", "/logs/artifacts"):
            self._find(place).mkdir(parents=True)
        # Harbor's side of the protocol runs there; it needs a Python with the protocol's SDK.
        self._find("/opt/harbor-acp-venv").symlink_to(sys.prefix)

    async def stop(self, delete: bool) -> None:
        """Keep the folder for the test."""

    def _copy(self, source: Path | str, target: Path | str) -> None:
        place = Path(target)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(self._move_places(Path(source).read_text()))

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self._copy(source_path, self._find(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._find(target_dir), copy_function=self._copy, dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy(self._find(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._find(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        words = ("bash", "-c", self._move_places(command))
        folder = self._find(cwd or "/app")
        process = await asyncio.create_subprocess_exec(
            *words, cwd=folder, env=self._merge_env(env), stdout=PIPE, stderr=PIPE
        )
        out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode or 0)
