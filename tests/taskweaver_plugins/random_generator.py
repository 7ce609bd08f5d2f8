import random

from taskweaver.plugin import Plugin, register_plugin


@register_plugin
class RandomGenerator(Plugin):
    def __call__(self, n: int):
        low, high = self.config.get("range", [1, 100])
        return [random.randint(low, high) for _ in range(n)]
