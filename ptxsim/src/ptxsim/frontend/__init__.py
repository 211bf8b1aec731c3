"""Reads PTX: the only place that gives a PTX text its meaning.

The layouts of kernel parameters, the sizes of symbols and the simulated instructions all come from
here. ptxas makes the cubin from the same bytes, so this reader rejects any text that ptxas would
read differently. tokens.py splits the text, reader.py reads declarations, body.py functions.
"""

from ptxsim.frontend.declarations import number
from ptxsim.frontend.module import (
    LIBRARY_CALLS,
    SIMULATED_CALLS,
    ptx_text,
    read_module,
    with_own_library,
)
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
    "SIMULATED_CALLS",
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
