"""ConCopilot's own `install`, `deploy` and downloads, in a worker that runs no component."""

import base64
import logging
import os
import sys
import types
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .connection import call


def build_handlers(staging: str, settings_file: str) -> dict[str, Callable[..., Any]]:
    """Load ConCopilot's settings and return the handlers.

    Args:
        staging: the folder used as local repository; goose_like moves from there into the real one.
        settings_file: the path of settings.yaml, or "" for ConCopilot's defaults.
    """
    logging.getLogger("[ConCopilot]").setLevel(logging.ERROR)  # `component check` has said more
    config = import_module("concopilot.package.config")
    settings = config.load_settings(settings_path=settings_file or os.devnull, skip_setup=True)
    settings.local_repo_path = staging
    config.env.default_repo_base_url = settings.repos[0].url.rstrip("/")
    sys.modules["concopilot.package.captcha"] = _captcha()
    import_module("concopilot.package.check").gpg = _sign  # type: ignore[attr-defined]
    return {"install": install, "deploy": deploy, "download": download}


def install(folders: list[str]) -> None:
    """Validate the components of these `.config` folders and copy them into the staging repository."""
    conpack = import_module("concopilot.package.conpack")
    for folder in folders:
        file = os.path.join(folder, "config.yaml")
        if not os.path.isfile(file):
            file = os.path.join(folder, "config.yml")
        conpack.install(folder, file)


def deploy(coordinates: list[str], user: str | None, password: str | None, is_signed: bool) -> None:
    """Upload a component from the staging repository."""
    repo = import_module("concopilot.package.repo")
    failures: list[str] = []
    repo.logger.error = lambda text, *args, **_: failures.append(str(text))  # upstream logs a refusal and goes on
    with import_module("requests").Session() as session:
        repo.to_remote_repo(session, *coordinates, name=user or "", pwd=password or "", gpg=is_signed)
    if failures:
        raise OSError(" ".join(failures[0].split()))


def download(coordinates: list[str]) -> None:
    """Download a component into the staging repository."""
    import_module("concopilot.package.repo").from_remote_repo(*coordinates)


def _sign(input_path: str, output_path: str, **_: Any) -> None:
    """Let goose_like sign a file: the keys are not in the sandbox."""
    with open(input_path, "rb") as file:
        signature = call("sign", data=base64.b64encode(file.read()).decode())
    with open(output_path, "wb") as file:
        file.write(base64.b64decode(signature))


def _captcha() -> types.ModuleType:
    """Build the captcha client that asks in the terminal in place of upstream's window."""
    module = types.ModuleType("concopilot.package.captcha")

    class CaptchaClient:
        captcha_text = ""

        def __init__(self, request_fn: Callable[[], bytes]) -> None:
            self._request = request_fn

        def open(self) -> None:
            picture = base64.b64encode(self._request()).decode()
            self.captcha_text = call("captcha", picture=picture) or ""

    module.CaptchaClient = CaptchaClient  # type: ignore[attr-defined]
    module.get_request_fn = (  # type: ignore[attr-defined]
        lambda session, captcha_url: lambda: session.get(captcha_url).content
    )
    return module
