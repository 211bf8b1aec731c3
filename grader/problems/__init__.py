"""The problems that labs can ask, behind one protocol (``problem.py``).

A problem has an interface, operands, inputs, a reference, a tolerance, work and traffic, and
baselines. ``gemm/`` is the product of matrices. No other room names a problem.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
