"""Its constructor needs a configuration that may be missing."""

from taskweaver.plugin import Plugin, register_plugin


@register_plugin
class NeedsKey(Plugin):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.key = self.config["key"]

    def __call__(self):
        return self.key
