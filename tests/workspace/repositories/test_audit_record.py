"""The audit's record: what the next session knows of a killed one."""

from pathlib import Path

from goose_like.workspace.repositories.audit_record import AcceptedState, AuditRecord
from goose_like.workspace.repositories.file_copy import FileCopy

STATE = AcceptedState(
    {Path("/r/.git"): {Path("/r/.git/config"): (1, 2)}},
    {Path("/r/.envrc"): {Path("/r/.envrc"): FileCopy(0o100644, b"\xff"), Path("/r/\udcff"): FileCopy(0, None)}},
    [Path("/r/.git/hooks")],
    ["/r/closed"],
)


def abandon(record: AuditRecord) -> None:
    """End a session as SIGKILL does: the lock is gone, the file stays."""
    record.close(is_kept=True)


def test_a_session_takes_over_from_a_killed_one_and_its_successors(root: Path) -> None:
    first = AuditRecord(root)
    assert first.former is None
    first.write(STATE)
    abandon(first)
    second = AuditRecord(root)
    assert second.former == STATE
    abandon(second)  # before it wrote anything
    third = AuditRecord(root)
    assert third.former == STATE
    third.write(AcceptedState({}, {}))
    assert AuditRecord(root.parent).former is None
    third.close()
    assert AuditRecord(root).former is None


def test_a_living_session_keeps_its_record(root: Path) -> None:
    first = AuditRecord(root)
    first.write(STATE)
    assert AuditRecord(root).former is None
    first.close()


def test_after_a_damaged_record_nothing_is_accepted(root: Path) -> None:
    record = AuditRecord(root)
    record.write(STATE)
    abandon(record)
    (file,) = [path for path in (root.parent / "goose").rglob("audits/*/*") if path.stat().st_size]
    for text in ("{", "[]", '{"repositories": 1}', file.read_text()[:-9]):
        file.write_text(text)
        record = AuditRecord(root)
        assert record.former == AcceptedState({}, {})
        record._path.unlink()
