import subprocess

from goose_like.core.version import read_commit


def test_the_commit_of_a_worktree_and_of_packed_references_is_found(tmp_path):
    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", tmp_path, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    (tmp_path / "toolkits/goose_like_toolkits").mkdir(parents=True)
    (tmp_path / "toolkits/goose_like_toolkits/__init__.py").touch()
    git("add", ".")
    git("commit", "-q", "-m", "one")
    commit = git("rev-parse", "HEAD")[:7]
    git("worktree", "add", "-q", "tree")
    found = [read_commit(str(tmp_path / "goose_like")), read_commit(str(tmp_path / "tree/goose_like"))]
    git("pack-refs", "--all")
    found += [read_commit(str(tmp_path / "goose_like")), read_commit(str(tmp_path / "tree/goose_like"))]
    assert found == [commit] * 4
    assert read_commit(str(tmp_path / "tree/deeper/goose_like")) == ""


def test_the_repository_of_a_person_who_copied_the_package_is_not_ours(tmp_path):
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    assert read_commit(str(tmp_path / "goose_like")) == ""
