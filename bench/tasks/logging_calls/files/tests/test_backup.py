from backup.copy import copy_files
from backup.names import choose_name
from backup.scan import find_files


def test_backup(tmp_path):
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "a.txt").write_text("a")
    files = find_files(source)
    assert copy_files(files, source, tmp_path / "target") == 1
    assert (tmp_path / "target" / "sub" / "a.txt").read_text() == "a"


def test_names(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    assert choose_name(tmp_path / "a.txt").name == "a-1.txt"
