"""The toolkit `screen`: screenshots for models that can see."""

from .toolkit import ScreenToolkit

__all__ = ["ScreenToolkit"]
