"""A certificate for servers of tests."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


def make_server_context(folder: Path) -> ssl.SSLContext:
    """Make a certificate for `localhost` as the file `cert` in a folder, and the context of a server that has it."""
    line = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj /CN=x"
    line += " -addext subjectAltName=DNS:localhost"
    subprocess.run(line.split(), cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    return context
