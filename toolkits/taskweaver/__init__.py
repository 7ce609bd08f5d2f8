"""TaskWeaver plugins in a code kernel: the toolkit `code`."""

from .toolkit import CodeToolkit

__all__ = ["CodeToolkit"]
