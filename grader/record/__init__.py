"""Host library → one ``Plan`` for each size.

The library is called three times, sandboxed, against ptxsim's stand-in for the CUDA runtime, whose
sink is the recorder (``recorder/``, C++).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
