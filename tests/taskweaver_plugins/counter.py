"""Several YAMLs may name this file: each has its own count, here in the object and there in the module."""

from taskweaver.plugin import Plugin, register_plugin

counts: list = []


@register_plugin
class Counter(Plugin):
    def __init__(self, name, ctx, config):
        super().__init__(name, ctx, config)
        self.count = config.get("start", 0)

    def __call__(self):
        self.count += 1
        counts.append(self.count)
        return self.name, self.count, len(counts), __name__
