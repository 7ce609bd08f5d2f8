"""All that a context can do."""

from taskweaver.plugin import Plugin, register_plugin, test_plugin


@register_plugin
class Reporter(Plugin):
    def __call__(self, file_name="report.txt", kind="txt", value="all is well", desc=None):
        return self.ctx.add_artifact(name="report", file_name=file_name, type=kind, val=value, desc=desc)

    def path(self, file_name="own.bin"):
        id, path = self.ctx.create_artifact_path("own", file_name, "file", "written by the plugin")
        with open(path, "wb") as file:
            file.write(b"\0\1")
        return id, path

    def where(self):
        return self.ctx.env_id, self.ctx.session_id, self.ctx.execution_id, self.ctx.execution_idx

    def user(self):
        return self.ctx.get_session_var("user", "nobody"), self.ctx.get_session_var("absent")

    def say(self, text):
        self.log("warning", text)
        return self.ctx.wrap_text_with_delimiter_temporal(text)


@test_plugin(name="it writes", description="a report is an artifact")
def test_writes(report):
    assert report() == "test_artifact_id_0"
    assert report.ctx._artifacts[0]["file_name"] == "report.txt"


@test_plugin(name="it knows its key")
def test_key(report):
    """The environment comes with the plugin."""
    assert report.get_env("KEY") == "k1"
    assert report.user() == ("ada", None)


@test_plugin()
def test_wrong(report):
    assert report.name == "somebody else"


@test_plugin()
def test_leaves(report):
    raise SystemExit(3)
