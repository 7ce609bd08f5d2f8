"""The toolkit `reasoner`: questions to a model that only thinks."""

from .toolkit import ReasonerToolkit

__all__ = ["ReasonerToolkit"]
