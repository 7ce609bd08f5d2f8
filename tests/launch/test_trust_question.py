"""The question about a project's files, when a front-end fails to ask it."""

from goose_like.config.trust import is_refused, is_trusted, read_project_config
from goose_like.core.events import Answer
from goose_like.core.notifier import Notifier
from goose_like.launch.trust import settle_project_trust


class FailingOnce(Notifier):
    """A front-end that fails to ask the first question, and allows the others."""

    def __init__(self):
        self.asked = 0
        self.logged = []

    def log(self, content):
        self.logged.append(content)

    async def ask(self, question):
        self.asked += 1
        if self.asked == 1:
            raise ConnectionError("the editor is gone")
        return Answer(choice="allow", by="person")


async def test_a_front_end_that_fails_skips_the_files_this_time_only(home, tmp_path):
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / ".goose-like").mkdir()
    (root / ".goose-like/profiles.yaml").write_text("review: {limits: {steps: 5}}")
    front = FailingOnce()
    first = await settle_project_trust(root, front, is_trusted_now=False)
    assert first.files == {}
    assert front.logged[0].startswith("denied, as the front-end failed to ask: ConnectionError: the editor is gone")
    assert front.logged[1].startswith("skipped untrusted files: ")
    project = read_project_config(root)
    assert not is_refused(project)
    assert not is_trusted(project)
    second = await settle_project_trust(root, front, is_trusted_now=False)
    assert list(second.files) == ["profiles.yaml"]
