"""Stored documents: results, profiles, what lies beside them, and the measured ladders that ship.

The result document is exactly ``Result`` in JSON: every key always present, null where it does not
apply.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
