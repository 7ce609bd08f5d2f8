"""The private /tmp folder."""

from pathlib import Path

import pytest

from tests.workspace.workspace_harness import create_confined, needs_sandbox, run_script


@needs_sandbox
async def test_what_killed_sessions_left_is_removed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr("goose_like.workspace.private_tmp._UNLOCKED_S", -1)
    old, other = tmp_path / "tmp/goose-like-tmp-old", tmp_path / "tmp/somebody"
    old.mkdir(parents=True)
    other.mkdir()
    living, _ = create_confined(root)
    async with living, create_confined(root)[0] as workspace:
        assert living.tmp.exists()
        await run_script(workspace, "true")
        assert workspace.tmp.parent == old.parent
        await workspace.close()
        assert living.tmp.exists()
    assert (old.exists(), other.exists()) == (False, True)
