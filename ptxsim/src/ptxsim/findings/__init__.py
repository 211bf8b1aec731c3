"""Turns what the engine saw into findings and counts, with their places."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
