from taskweaver.plugin import Plugin, register_plugin

try:
    import no_such_reader
except ImportError:
    raise ImportError("Please install no_such_reader with `pip install no_such_reader`.") from None


@register_plugin
class ReadsImages(Plugin):
    def __call__(self, image_path):
        return no_such_reader.read(image_path)
