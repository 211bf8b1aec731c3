"""The rungs of ``reference/`` and their results → one document per GPU → table and page."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
