"""Device printf and assert, which the driver would handle in the process that launches the kernel.

The driver formats what a kernel prints in the host process, from a format that the program holds:
on an H200 (driver 580.159.04, 2026-11-21) a wild format killed the process that measures. So a
build for a GPU defines these functions itself, and they print nothing. The simulator has its own
(``ptxsim/engine/control/print.cpp``) and maps calls of these names to it.
"""

from __future__ import annotations

from ptxsim.frontend.records import Function, Instruction, Module
from ptxsim.records import Record


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
LIBRARY_CALLS = {name: len(stub.parameters) for name, stub in _STUBS.items()}


def with_own_library(ptx: bytes) -> bytes:
    """nvcc's PTX with the declarations of these functions replaced by definitions."""
    for name, stub in _STUBS.items():
        head = stub.head(name)
        body = "".join(f"\t{statement};\n" for statement in stub.body)
        ptx = ptx.replace(f".extern {head};".encode(), f"{head}{{\n{body}}}\n".encode(), 1)
    return ptx


def taken_names(module: Module) -> list[str]:
    """The functions among these that the module defines in another way: the simulator and the GPU
    would then run different programs."""
    return [name for name, stub in _STUBS.items() if not _is_ours(module.functions.get(name), stub)]


def _is_ours(function: Function | None, stub: _Stub) -> bool:
    if function is None:
        return True
    opcodes = [item.opcode if isinstance(item, Instruction) else "" for item in function.body]
    return not function.entry and opcodes == [statement.split()[0] for statement in stub.body]
