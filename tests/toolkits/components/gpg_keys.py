"""A throw-away folder of GPG keys, with an agent of its own that ends with it."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def secret_key(passphrase: str) -> Iterator[Path]:
    """A folder with the secret key of Ada. Its path is short: the agent's socket lies in it."""
    with tempfile.TemporaryDirectory(prefix="gpg-", ignore_cleanup_errors=True) as folder:
        hash_little(Path(folder))
        command = ["gpg", "--homedir", folder, "--batch", "--pinentry-mode", "loopback", "--passphrase", passphrase]
        made = [*command, "--quick-gen-key", "Ada <ada@example.org>", "ed25519"]
        ended = subprocess.run(made, capture_output=True, check=False)
        assert ended.returncode == 0, ended.stderr
        try:
            yield Path(folder)
        finally:
            end_agent(Path(folder))


def hash_little(folder: Path) -> None:
    """Has the agent of this folder of keys protect them by few rounds; to find out how many this machine can do in a
    tenth of a second, each agent takes seconds."""
    (folder / "gpg-agent.conf").write_text("s2k-count 65536\n")


def end_agent(folder: Path) -> None:
    """Ends the agent that gpg started for this folder of keys."""
    subprocess.run(["gpgconf", "--homedir", str(folder), "--kill", "gpg-agent"], check=False)
