"""Records, errors, texts in a student's language, the table of GPUs, our own C++.

Every record is frozen. A ``Size`` gives the dimensions of one run by name; what they mean is the
problem's affair. The result document is exactly ``Result`` in JSON: every key always present, null
where it does not apply. Imports nothing of ours but ``ptxsim``'s records.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
