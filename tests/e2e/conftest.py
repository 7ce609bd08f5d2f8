import pytest
from command import Place


@pytest.fixture
def place(tmp_path):
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    return Place(tmp_path / "home", tmp_path / "work")
