"""What a vendor's server has for a model, less what a server refused."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .known_models import find_known_model

if TYPE_CHECKING:
    from .remedies import Remedy


def find_native(provider: str, name: str, remedies: "Iterable[Remedy]") -> frozenset[str]:
    """Find the names in `native` of a model without those that a server refused, as its remedies say."""
    refused = {remedy.key for remedy in remedies if remedy.kind == "no_native_tool"}
    return frozenset(find_known_model(provider, name).native) - refused
