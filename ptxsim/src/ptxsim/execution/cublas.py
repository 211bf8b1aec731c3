"""The functions of cuBLAS, as cublas.toml lists them: for the library's compiler, and a header."""

import re
from pathlib import Path

import msgspec

from ptxsim.record import Record


class LibraryCall(Record):
    """``name`` and ``arguments`` as in cublas_v2.h, but for "cublas" and the handle."""

    name: str
    operation: str
    operands: list[list[str]]
    arguments: list[str]

    @property
    def spoken(self) -> str:
        """Its name in programs."""
        return f"cublas{self.name.removesuffix('_v2')}"

    @property
    def letter(self) -> str:
        """The type of its numbers; G: its arguments say."""
        return self.name.removeprefix("I")[0].upper()


_TABLE = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes())
FUNCTIONS = {
    name: LibraryCall(
        name=name,
        operation=operation,
        operands=[each.split() for each in row["operands"]],
        arguments=arguments.split(),
    )
    for operation, row in _TABLE["functions"].items()
    for names, arguments in row["names"]
    for name in names.split()
}
COMPUTATIONS: dict[str, tuple[int, list[list[int]]]] = _TABLE["computations"]
_TYPES = {name: kind for kind, names in _TABLE["arguments"].items() for name in names.split()}
INTS = {name for name, kind in _TYPES.items() if "*" not in kind and kind != "long long"}
_NUMBERS = {"S": "float", "D": "double", "C": "cuComplex", "Z": "cuDoubleComplex", "H": "__half"}
_PASSED = {"const T*": "const void*", "const T* const*": "const void*", "T*": "Result*"}


def macros() -> tuple[str, ...]:
    """The functions with their parameters and arguments, as an option of the sink's compiler."""
    kinds = {each: _PASSED.get(kind, "int") for each, kind in _TYPES.items()}
    kinds |= dict.fromkeys(("alpha", "beta"), "const Scalar*")
    kinds |= {each: kind for each, kind in _TYPES.items() if kind == "long long"}
    rows = []
    for each in FUNCTIONS.values():
        given = ", ".join(f"{kinds[name]} {name}" for name in each.arguments)
        passed = ", ".join(each.arguments)
        rows.append(f"CUBLAS({each.name}, (void* handle, {given}), {passed})")
    return (f"-DCUBLAS_FUNCTIONS={' '.join(rows)}",)


def header() -> str:
    """The text of a cublas_v2.h."""
    parts = _TABLE["header"]
    lines = [parts["begin"]]
    for name, members in parts["enums"].items():
        values = ", ".join(f"{member} = {value}" for member, value in members.items())
        lines.append(f"typedef enum {{ {values} }} {name};")
    lines.append(parts["end"])
    for each in FUNCTIONS.values():
        types = _TYPES | ({"result": "int*"} if each.name.startswith("I") else {})
        given = ", ".join(f"{types[name]} {name}" for name in each.arguments)
        given = re.sub(r"\bT\b", _NUMBERS.get(each.letter, "void"), given)
        lines.append(f"cublasStatus_t cublas{each.name}(cublasHandle_t handle, {given});")
        if each.name.endswith("_v2"):
            lines.append(f"#define {each.spoken} cublas{each.name}")
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", ""])
