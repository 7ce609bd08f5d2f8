import near
from taskweaver.plugin import register_plugin

from .near import Near


@register_plugin
def uses_near():
    return near.WORD, Near.__module__
