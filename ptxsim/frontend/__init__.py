"""Reads PTX: the one place that says what a text of PTX means.

Whatever the grader knows of a submission's device code it knows from here: the layouts of kernel
parameters, the sizes of symbols, what the simulator executes. ptxas makes the cubin of the same
bytes, so what it would read otherwise must be refused here. tokens.py takes the text apart,
reader.py reads declarations, body.py functions.
"""

from ptxsim.frontend.constants import number
from ptxsim.frontend.library import LIBRARY_CALLS, with_own_library
from ptxsim.frontend.module import ptx_text, read_module
from ptxsim.frontend.reader import parse
from ptxsim.frontend.records import (
    SIZES,
    Address,
    Function,
    Instruction,
    Label,
    Location,
    Module,
    PtxError,
    Variable,
)

__all__ = [
    "LIBRARY_CALLS",
    "SIZES",
    "Address",
    "Function",
    "Instruction",
    "Label",
    "Location",
    "Module",
    "PtxError",
    "Variable",
    "number",
    "parse",
    "ptx_text",
    "read_module",
    "with_own_library",
]
