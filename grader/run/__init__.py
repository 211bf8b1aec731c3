"""Plans → outcomes, behind one protocol (``protocol.py``).

``simulator/`` starts a sandboxed process that reads and simulates PTX, ``gpu/`` one that replays
plans and times them beside the baseline.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
