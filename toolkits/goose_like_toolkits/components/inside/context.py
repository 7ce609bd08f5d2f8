"""Context: what the components of a copilot share."""

from collections.abc import Mapping
from typing import Any

from .asset import Asset
from .class_dict import ClassDict


class Context(ClassDict):
    """A `storage`, the `assets` by their ids, and the `user_interface`."""

    def __init__(
        self,
        /,
        *,
        storage: Any = None,
        assets: Mapping[str, Any] | None = None,
        user_interface: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.storage = storage
        self.assets = Asset.convert_assets(assets)
        self.user_interface = user_interface
