"""Why a kernel is as fast as it is: machine code, counts, work and a card → bounds and advice.

Pure: it knows no folder, sandbox, toolchain, cache or device; ``study.explaining`` feeds it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
