"""The PTX of a submission, read for a stage of the grader: what cannot be read ends the grading."""

from __future__ import annotations

from pathlib import Path

from ptxsim.errors import Reason, RefusedProgram
from ptxsim.frontend.library import taken_names
from ptxsim.frontend.reader import parse
from ptxsim.frontend.records import Module, PtxError
from ptxsim.records import Finding, Kind, Place, Severity

_ASSEMBLY = "// begin inline asm"  # nvcc writes it before what asm() holds


def ptx_text(path: Path) -> str:
    """The very bytes of a file, a character each: nothing may turn a carriage return into a line
    feed, which would end a comment that goes on for ptxas."""
    return path.read_bytes().decode("latin-1")


def read_module(ptx: str, source_root: Path) -> Module:
    """The module, in which source paths are relative to ``source_root``.

    Raises RefusedProgram: ASSEMBLY where inline assembly must be the cause, else UNREADABLE, for
    then nvcc wrote something that is not known here yet.
    """
    try:
        module = parse(ptx, source_root)
    except PtxError as error:
        raise _refusal(error, _ASSEMBLY in ptx) from None
    taken = taken_names(module)
    if taken:
        message = f"{taken[0]} is a function of CUDA's; give yours another name"
        raise RefusedProgram(Reason.ASSEMBLY, message)
    return module


def _refusal(error: PtxError, assembly: bool) -> RefusedProgram:
    place = error.location if error.location is not None and error.location.inside else None
    where = f"{place.file}:{place.line}: " if place else ""
    if not assembly:
        return RefusedProgram(
            Reason.UNREADABLE, f"{where}the grader cannot read what nvcc made of this: {error}"
        )
    message = (
        f"the grader cannot read the PTX that inline assembly makes here ({error}); "
        "write plain instructions and declarations, as nvcc itself does"
    )
    finding = Finding(
        kind=Kind.UNSUPPORTED,
        severity=Severity.ERROR,
        place=Place(file=place.file, line=place.line) if place else None,
        text=message,
    )
    return RefusedProgram(Reason.ASSEMBLY, where + message, (finding,))
