"""A result made readable: terminal, page, formats of other systems. All of it is pure."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
