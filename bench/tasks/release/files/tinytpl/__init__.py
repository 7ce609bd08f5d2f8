from tinytpl.template import render

__version__ = "1.2.0"
__all__ = ["__version__", "render"]
