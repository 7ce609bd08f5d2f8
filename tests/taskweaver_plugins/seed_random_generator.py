from taskweaver.plugin import Plugin, register_plugin


@register_plugin
class RandomGenerator(Plugin):
    def __call__(self, n: int):
        import random

        return [random.randint(1, 100) for _ in range(n)]
