"""The reasoner: a model thinks about a problem, aside."""

from .toolkit import ReasonerToolkit

__all__ = ["ReasonerToolkit"]
