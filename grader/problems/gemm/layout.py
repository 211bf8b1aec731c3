"""How a product's operands lie and what their numbers are; whose kernels a library's are."""

import math
import re
import textwrap
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from grader.base import convert
from grader.problems import operands
from ptxsim.plan import Record
from ptxsim.text import Message, listed, phrase, verbatim

Format = Literal["f32", "f16", "bf16"]
Sum = Literal["f32", "f16"]

FP32_ROUNDOFF = 2.0**-24
_LARGEST_EXACT = 2.0**11  # FP16 holds every whole number up to this
_DEVIATIONS = 10  # of a sum: it exceeds them less than once in 10²¹ sums
_WHOLE = ((5, 16), (4, 8), (3, 4), (2, 2), (1, 1))  # bits of a magnitude, and the least of them


class Numbers(Record):
    """One format of the matrices."""

    words: str  # in a title: "FP16"
    precision: str  # in a header: "half precision (FP16)"
    element: operands.Element
    main: str  # the file to hand in
    others: tuple[operands.Element, ...] = ()  # of the same bits, that a program may use instead
    include: str = ""  # the header that declares the type
    values: operands.Values = operands.EXPOSING  # of the inputs, when sums are FP32
    roundoff: float | None = None  # of the one rounding of an FP32 sum; None: it is not rounded


FORMATS: Mapping[Format, Numbers] = convert(
    msgspec.toml.decode(Path(__file__).with_name("formats.toml").read_bytes()),
    dict[Format, Numbers],
)


def input_values(numbers: Numbers, sums: Sum, k: int) -> operands.Values:
    """For sums in FP16, whole numbers with as many bits as a sum of ``k`` products leaves room
    for."""
    if sums != "f16":
        return numbers.values
    for bits, least in _WHOLE:
        most = 2 * least - 1
        square = sum(each * each for each in range(least, most + 1)) / least
        if min(_DEVIATIONS * math.sqrt(k) * square, k * most * most) <= _LARGEST_EXACT:
            return operands.Steps(bits=bits - 1, least=least)
    return operands.Steps(bits=0, least=1)


def tolerance(k: int, numbers: Numbers = FORMATS["f32"], sums: Sum = "f32") -> float:
    """Return the tolerance, in units of the scale."""
    if sums == "f16":
        return 0.5
    cut = 0 if isinstance(numbers.values, operands.Exposing) else k
    return FP32_ROUNDOFF * (2 + 8 * math.sqrt(k) + cut)


# --- layout ------------------------------------------------------------------------------------

_ORDERS = {"row": phrase("row-major"), "col": phrase("column-major")}
_HEADER = Path(__file__).with_name("header.in").read_text(encoding="utf-8")
# Matrix: rows, columns, and the names of its two indices.
_MATRICES = {"A": ("m", "k", "i", "p"), "B": ("k", "n", "p", "j"), "C": ("m", "n", "i", "j")}


class Layout(Record):
    """Storage order of a matrix: consecutive columns for "row", consecutive rows for "col"."""

    A: operands.Order = "row"
    B: operands.Order = "col"
    C: operands.Order = "col"

    def __str__(self) -> str:
        return str(self.words)

    @property
    def words(self) -> Message:
        """``A row-major, B column-major, C column-major``."""
        orders = {name: _ORDERS[self.of(name)] for name in _MATRICES}
        if self.A == self.B == self.C:
            return phrase("all {order}", order=orders["A"])
        return listed(
            phrase("{name} {order}", name=name, order=order) for name, order in orders.items()
        )

    def of(self, name: str) -> operands.Order:
        order: operands.Order = getattr(self, name)
        return order

    def element(self, name: str) -> str:
        """How host and device code address an element: ``A[i * k + p]``."""
        rows, columns, i, j = _MATRICES[name]
        if self.of(name) == "row":
            return f"{name}[{i} * {columns} + {j}]"
        return f"{name}[{i} + {j} * {rows}]"

    def mistakes(self) -> tuple[Message, Message, Message]:
        """Describe the mistake of taking A, B or C for the other layout."""

        def right(name: str) -> Message:
            order, element = _ORDERS[self.of(name)], self.element(name).replace(" * ", "*")
            return phrase("{name} is {order}, {element}", name=name, order=order, element=element)

        def misread(name: str) -> Message:
            other = _ORDERS["col" if self.of(name) == "row" else "row"]
            return phrase(
                "{name} was read as if {order}: {right}", name=name, order=other, right=right(name)
            )

        transposed = phrase("C came out transposed: {right}", right=right("C"))
        return misread("A"), misread("B"), transposed


def header(layout: Layout, numbers: Numbers = FORMATS["f32"]) -> str:
    """``gemm.cuh`` for this layout and format."""
    rows = [
        f"//   {name}  {_MATRICES[name][0]}×{_MATRICES[name][1]}, "
        f"{str(_ORDERS[layout.of(name)]) + ':':<14} {layout.element(name)}"
        for name in _MATRICES
    ]
    types = " or ".join(each.name for each in (numbers.element, *numbers.others))
    advice = (
        f"Specialise run_custom for {types} in {numbers.main}. The vectors are already on the "
        "device; take the pointers for your kernel with d_A.data().get()."
    )
    words = {
        "{precision}": numbers.precision,
        "{matrices}": "\n".join(rows),
        "{advice}": textwrap.fill(advice, 97, initial_indent="// ", subsequent_indent="// "),
        "{include}": f"#include <{numbers.include}>\n" if numbers.include else "",
    }
    text = _HEADER
    for name, value in words.items():
        text = text.replace(name, value)
    return text


# --- libraries ---------------------------------------------------------------------------------

_OWN_FILE = re.compile(
    r"(?:cutlass/(?:gemm|conv)/[a-z_]+/[a-z0-9_]*(?:mma|gemm|gemv)[a-z0-9_]*\.h(?:pp)?"
    r"|cublasdx/[a-z0-9_/]+\.hpp)$"
)
_OWN_CLASS = re.compile(
    r"Gemm(?:Universal|Batched|Array|SplitKParallel)?(?:Adapter|Streamk)?|GemmShape"
    r"|Mma(?:Pipelined|Multistage|SingleStage|Policy|Simt|SimtPolicy|TensorOp|TensorOpPolicy)"
    r"|Gemm(?:Identity|Horizontal|SplitK\w*)ThreadblockSwizzle"
    r"|Collective(?:Mma|Epilogue)|MainloopSm\d+\w*|LinearCombination"
)
_ENOUGH = 4  # distinct classes; nobody calls four classes of his own so by chance
_SHOWN = 2  # pieces of evidence in the message


def evidence(names: Collection[str], files: Collection[str]) -> Message | None:
    """names: the identifiers in the kernel's mangled name. files: where its code comes from."""
    own = sorted({match[0] for name in files if (match := _OWN_FILE.search(name))})
    if own:
        return phrase("its code comes from {files}", files=_some(own))
    classes = sorted({name for name in names if _OWN_CLASS.fullmatch(name)})
    if "cutlass" in names and len(classes) >= _ENOUGH:
        return phrase("its name instantiates cutlass's {classes}", classes=_some(classes))
    return None


def _some(names: list[str]) -> Message:
    more = len(names) - _SHOWN
    shown = verbatim(", ".join(names[:_SHOWN]))
    return phrase("{names} and {more} more", names=shown, more=more) if more > 0 else shown
