"""How a student's code is run: bubblewrap, Landlock, limits on work, filters of system calls."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
