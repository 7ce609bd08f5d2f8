from taskweaver.plugin import Plugin, register_plugin


@register_plugin
class First(Plugin):
    def __call__(self):
        return "first"


@register_plugin
class Second(Plugin):
    def __call__(self):
        return "second"
