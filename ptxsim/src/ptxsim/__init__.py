"""A SIMT simulator of PTX: runs nvcc's code on the CPU and watches every access.

frontend/ reads the text, lowering/ turns instructions into operations of the engine and shares
registers, engine/ (C++) interprets warps over shadowed memory, simulator.py runs whole plans,
sampling.py counts a few blocks of large ones, findings/ turns events into records. README.md has an
example.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxsim.launching import Module as Module
    from ptxsim.report import FindingsError as FindingsError
    from ptxsim.report import Report as Report
    from ptxsim.tensor_maps import Output as Output
    from ptxsim.tensor_maps import TensorMap as TensorMap
    from ptxsim.tensor_maps import Texture as Texture

__all__ = ["FindingsError", "Module", "Output", "Report", "TensorMap", "Texture"]
_HOMES = {"Module": "launching", "Report": "report", "FindingsError": "report"}


def __getattr__(name: str) -> object:
    """Load what somebody asks for, and no more."""
    if name not in __all__:
        raise AttributeError(f"module 'ptxsim' has no attribute {name!r}")
    return getattr(import_module(f"ptxsim.{_HOMES.get(name, 'tensor_maps')}"), name)
