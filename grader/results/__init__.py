"""Stored documents: results, what lies beside them, and the measured ladders that ship."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
