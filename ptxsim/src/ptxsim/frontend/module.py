"""PTX text → module, or the reason why it is not read."""

from pathlib import Path

from ptxsim.findings.names import plain_name
from ptxsim.frontend.local_arrays import move_apart
from ptxsim.frontend.reader import parse
from ptxsim.frontend.records import Function, Instruction, PtxError, PtxModule
from ptxsim.outcome import Reason, RefusedProgram
from ptxsim.plan.limits import MOST_NAME
from ptxsim.plan.records import Place
from ptxsim.record import Record
from ptxsim.text import phrase


class _Stub(Record):
    """A function as nvcc declares it, and the body that the build gives it."""

    parameters: tuple[str, ...]  # types
    returns: str  # as the declaration has it
    body: tuple[str, ...]  # statements

    def head(self, name: str) -> str:
        listed = ",\n".join(
            f"\t.param .{t} {name}_param_{i}" for i, t in enumerate(self.parameters)
        )
        return f".func {self.returns}{name}\n(\n{listed}\n)\n"


_STUBS = {
    "vprintf": _Stub(
        parameters=("b64", "b64"),
        returns=" (.param .b32 func_retval0) ",
        body=("st.param.b32 [func_retval0], 0", "ret"),
    ),
    "__assertfail": _Stub(
        parameters=("b64", "b64", "b32", "b64", "b64"), returns="", body=("trap", "ret")
    ),
}
# By name: how many parameters each takes.
LIBRARY_CALLS = {name: len(stub.parameters) for name, stub in _STUBS.items()}
# What the simulator has itself: malloc and its kin are the driver's on a GPU.
SIMULATED_CALLS = LIBRARY_CALLS | {"malloc": 1, "__cuda_syscall_aligned_malloc": 2, "free": 1}


def with_own_library(ptx: bytes) -> bytes:
    """nvcc's PTX with the declarations of these functions replaced by definitions."""
    for name, stub in _STUBS.items():
        head = stub.head(name)
        body = "".join(f"\t{statement};\n" for statement in stub.body)
        ptx = ptx.replace(f".extern {head};".encode(), f"{head}{{\n{body}}}\n".encode(), 1)
    return ptx


def _is_ours(function: Function, stub: _Stub | None) -> bool:
    if stub is None:
        return False
    opcodes = [item.opcode if isinstance(item, Instruction) else "" for item in function.body]
    return not function.entry and opcodes == [statement.split()[0] for statement in stub.body]


_NVVM_7, _HEADER = "// Based on NVVM 7.", 1000  # characters
_ASSEMBLY = "// begin inline asm"  # nvcc writes it before the text of an asm()


def ptx_text(ptx: bytes) -> str:
    """One character for each byte. Nothing may turn a carriage return into a line feed:
    that would end a comment which continues for ptxas."""
    return ptx.decode("latin-1")


def read_module(ptx: str, source_root: Path) -> PtxModule:
    """The module, in which source paths are relative to ``source_root``.

    Raises RefusedProgram: ASSEMBLY if the module holds inline assembly, which is then the cause;
    UNREADABLE if nvcc wrote all of it; TAKEN_NAME for a function of CUDA's; LONG_NAME for a kernel
    or a variable whose name, which plans and results hold, is too long.
    """
    try:
        module = parse(ptx, source_root)
    except PtxError as error:
        raise _refusal(error, _ASSEMBLY in ptx) from None
    module.split_by_index = _NVVM_7 in ptx[:_HEADER]
    for name in SIMULATED_CALLS:  # the simulator and the GPU would run different programs
        function = module.functions.get(name)
        if function is not None and not _is_ours(function, _STUBS.get(name)):
            why = phrase("{name} is a function of CUDA's", name=name)
            raise RefusedProgram(Reason.TAKEN_NAME, why)
    entries = (name for name, function in module.functions.items() if function.entry)
    variables = (each.name for each in module.variables if each.space != "shared")
    for name in (*entries, *variables):
        if len(name) > MOST_NAME:
            why = phrase(
                "the name {name} has {count} characters, and at most {most} are read",
                name=plain_name(name),
                count=len(name),
                most=MOST_NAME,
            )
            raise RefusedProgram(Reason.LONG_NAME, why)
    move_apart(module)
    return module


def _refusal(error: PtxError, assembly: bool) -> RefusedProgram:
    at = error.location
    place = Place(file=at.file, line=at.line) if at is not None and at.inside else None
    return RefusedProgram(
        Reason.ASSEMBLY if assembly else Reason.UNREADABLE, error.message, (), place
    )
