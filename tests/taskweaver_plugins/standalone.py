from taskweaver.plugin import Plugin, register_plugin


@register_plugin
class Standalone(Plugin):
    def __call__(self, text: str):
        return text.upper()


if __name__ == "__main__":
    from taskweaver.plugin.context import temp_context

    with temp_context() as temp_ctx:
        print(Standalone(name="standalone", ctx=temp_ctx, config={})(text="hello"))
