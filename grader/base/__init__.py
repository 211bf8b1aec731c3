"""Verdicts, findings, errors, texts in a student's language, the table of GPUs, our own C++.

Every record is frozen. What fewer than most rooms need has a room of its own. Imports nothing of
ours but ``ptxsim``'s doors.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
