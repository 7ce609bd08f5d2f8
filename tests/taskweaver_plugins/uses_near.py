import near
from taskweaver.plugin import register_plugin

from . import near as same_near
from .near import Near


@register_plugin
def uses_near():
    return near.WORD, same_near.WORD, Near.__module__
