"""A SIMT simulator of PTX: runs nvcc's code on the CPU and watches every access.

frontend/ reads the text, lowering/ turns instructions into operations of the engine and shares
registers, engine/ (C++) interprets warps over shadowed memory, simulator.py runs whole plans,
sampling.py counts a few blocks of large ones, findings/ turns events into records. README.md has an
example.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
