"""The audit's record: what the next session knows of a killed one."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from goose_like.workspace.repositories.audit_record import AcceptedState, AuditRecord
from goose_like.workspace.repositories.file_copy import FileCopy

STATE = AcceptedState(
    {
        Path("/r/.run"): {Path("/r/.run/a"): FileCopy(0o100755, b"")},
        Path("/r/.envrc"): {Path("/r/.envrc"): FileCopy(0o100644, b"\xff"), Path("/r/\udcff"): FileCopy(0, None, 7)},
    },
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
    third.write(AcceptedState())
    assert AuditRecord(root.parent).former is None
    third.close()
    assert AuditRecord(root).former is None


def test_the_oldest_record_counts(root: Path) -> None:
    records = [AuditRecord(root), AuditRecord(root)]
    for record, state in zip(records, (STATE, AcceptedState()), strict=True):
        record.write(state)
    records[0].write(AcceptedState(closed=["/first"]))  # shorter than before
    os.utime(records[0]._path, (1, 1))
    for record in records:
        abandon(record)
    assert AuditRecord(root).former == AcceptedState(closed=["/first"])


def test_sessions_that_start_and_end_at_once_disturb_no_record(root: Path) -> None:
    first = AuditRecord(root)
    first.write(STATE)

    def start(_: int) -> AcceptedState | None:
        record = AuditRecord(root)
        record.write(AcceptedState())
        record.close()
        return record.former

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(start, range(200))) == {None}
    assert first._path.exists()
    first.close()


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
    for text in ("{", "[]", '{"files": 1}', file.read_text()[:-9]):
        file.write_text(text)
        record = AuditRecord(root)
        assert record.former == AcceptedState()
        record._path.unlink()
