"""The screen: a picture of it."""

from .toolkit import ScreenToolkit

__all__ = ["ScreenToolkit"]
