"""Grades that are explained, in parallel, or studied: history, sweeps, profiles, ladders."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
