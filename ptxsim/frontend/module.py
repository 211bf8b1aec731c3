"""PTX text → module, or the reason why it is not read."""

from __future__ import annotations

from pathlib import Path

from ptxsim.errors import Reason, RefusedProgram
from ptxsim.frontend.library import taken_names
from ptxsim.frontend.reader import parse
from ptxsim.frontend.records import Module, PtxError
from ptxsim.message import phrase
from ptxsim.records import Place

_ASSEMBLY = "// begin inline asm"  # nvcc writes it before the text of an asm()


def ptx_text(path: Path) -> str:
    """The bytes of a file, one character each. Nothing may turn a carriage return into a line feed:
    that would end a comment which continues for ptxas."""
    return path.read_bytes().decode("latin-1")


def read_module(ptx: str, source_root: Path) -> Module:
    """The module, in which source paths are relative to ``source_root``.

    Raises RefusedProgram: ASSEMBLY if the module holds inline assembly, which is then the cause;
    UNREADABLE if nvcc wrote all of it; TAKEN_NAME for a function of CUDA's.
    """
    try:
        module = parse(ptx, source_root)
    except PtxError as error:
        raise _refusal(error, _ASSEMBLY in ptx) from None
    taken = taken_names(module)
    if taken:
        why = phrase("{name} is a function of CUDA's", name=taken[0])
        raise RefusedProgram(Reason.TAKEN_NAME, why)
    return module


def _refusal(error: PtxError, assembly: bool) -> RefusedProgram:
    at = error.location
    place = Place(file=at.file, line=at.line) if at is not None and at.inside else None
    return RefusedProgram(
        Reason.ASSEMBLY if assembly else Reason.UNREADABLE, error.message, (), place
    )
