"""C = A·B in FP32, FP16 or BF16. A, B and C each row-major or column-major, as the lab says.

This is about FP32; ``layout.py`` has what other formats change. An element is correct if
``|C - Cref| / s <= tolerance(K)`` with the scale ``s = ‖row i of A‖ · ‖column j of B‖ / √K``, the
typical size of a sum of K products with random signs. docs/verification.md derives the tolerance,
``u·(2 + 8·√K)`` with u = 2⁻²⁴, and shows which shortcuts the inputs (``inputs.py``) expose.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from grader.problems.expected import Cause, Expected, Recomputed
from grader.problems.gemm import layout as formats
from grader.problems.gemm.layout import FORMATS, Format, Layout, Sum, tolerance
from grader.problems.operands import OnGpu, Operand, Tools
from grader.problems.problem import TFLOPS, Dim, Interface, Problem
from ptxsim.plan import Record, Size
from ptxsim.text import Message, clauses, phrase

if TYPE_CHECKING:  # NumPy takes a tenth of a second, and a lab can be read without it
    from grader.problems.gemm.products import Doubles
    from grader.problems.inputs import Places, Source

CHECKS = Path(__file__).with_name("checks.cu")
MAX_EXTENT = 65536  # larger sizes fit no device's memory: 65536² floats are 16 GiB
# On a GPU the reference is cuBLAS in FP32, with rounding errors of its own: two errors, twice the
# tolerance. From the product in FP64, what passes there is three away at most.
REFERENCE_MARGIN = 2.0
_RECOMPUTED_MARGIN = REFERENCE_MARGIN + 1
# Products of two numbers' parts that an FP32 product needs: of two parts of 11 bits, both smaller
# ones' is below its rounding; of three of 8 bits, three products are.
_PRODUCTS_OF_PARTS = {"f16": 3, "tf32": 3, "bf16": 6}


class Options(Record):
    """A lab file's own fields for this problem."""

    layout: Layout = Layout()
    baseline: Literal["best", "cublas", "cublaslt"] = "best"
    type: Format = "f32"
    accumulate: Sum = "f32"
    split_into: Literal["f16", "bf16", "tf32"] | None = None

    def __post_init__(self) -> None:
        if self.accumulate == "f16" and self.type != "f16":
            raise ValueError(f"accumulate: f16 needs type: f16, not {self.type}")
        if self.split_into and self.type != "f32":
            raise ValueError(f"split_into: {self.split_into} needs type: f32, not {self.type}")


# In the order of the ladder reference/hgemm.
TENSOR_ADVICE = (
    *("few-blocks", "use-tensor-cores", "fragments-from-global", "matrix-conflicts"),
    *("tiles-through-registers", "few-stages", "exposed-fragments", "small-warp-tile"),
    *("copying-consumers", "small-block-tile", "no-multicast", "blocks-by-turns", "long-wave"),
    *("warps-on-hopper", "tail", "split-warps"),
)


ASKED = (
    *("operations", "peak", "limits", "loop", "transposition", "tiling", "tile"),
    *("tile-traffic", "naive-traffic", "bandwidth-bound", "divergence"),
)


class Gemm(Problem):
    name = "gemm"
    dims = tuple(Dim(name=name, most=MAX_EXTENT) for name in ("m", "n", "k"))
    unit = TFLOPS
    baseline = "cuBLAS"
    # Each level of Strassen's scheme saves 1/8 of the products; no FP32 scheme saves a third.
    unavoidable = 2 / 3
    output = "C"
    formula = "2·M·N·K"
    linear = (("A",), ("B",))
    depth = "K"
    Options = Options
    questions: tuple[str, ...] = (*ASKED, "tensor-cores", "cp-async", "cute")
    gpu_sources = (CHECKS,)
    modules = ("grader.problems.gemm.products",)
    gpu_modules = ("grader.problems.gemm.on_gpu",)
    advice: tuple[str, ...] = (
        *("few-blocks", "global-sum", "no-tile", "bank-conflicts", "split-warps", "rolled-loop"),
        *("small-tile", "more-for-each-thread", "scalar-loads", "scalar-shared", "exposed-loads"),
        *("two-barriers", "through-registers", "long-wave", "tail", "register-banks"),
    )

    def __init__(self, options: Record | None = None) -> None:
        super().__init__(options)
        assert isinstance(self.options, Options)
        self.layout = self.options.layout
        self.admitted = self.options.baseline
        self.kind, self.sums = self.options.type, self.options.accumulate
        self.numbers = FORMATS[self.kind]
        self.split_into = self.options.split_into
        if self.split_into:
            self.arithmetic = f"{self.split_into}.f32/{_PRODUCTS_OF_PARTS[self.split_into]}"
        elif self.kind != "f32":
            self.arithmetic = f"{self.kind}.{self.sums}"
        if self.arithmetic != "f32":
            self.advice = TENSOR_ADVICE
            self.questions = (*ASKED, "on-tensor-cores", "cp-async", "cute")

    @property
    def title(self) -> Message:
        type_, layout = self.numbers.words, self.layout.words
        if self.split_into:
            return phrase("C = A·B in FP32, on tensor cores in parts, {layout}", layout=layout)
        if self.numbers.roundoff is None:
            return phrase("C = A·B in {type}, {layout}", type=type_, layout=layout)
        words = phrase("C = A·B in {type}, sums in {sums}, {layout}", type=type_, layout=layout)
        return words.given(sums=FORMATS[self.sums].words)

    @property
    def interface(self) -> Interface:
        element = self.numbers.element
        return Interface(
            main=self.numbers.main,
            header="gemm.cuh",
            text=formats.header(self.layout, self.numbers),
            vectors=(element, element, element),
            dims=3,
            element=element,
            others=self.numbers.others,
        )

    def operands(self, size: Size) -> tuple[Operand, ...]:
        m, n, k = size.extents
        element, values = self.numbers.element, formats.input_values(self.numbers, self.sums, k)
        a, b = (
            Operand(name=name, role="in", shape=shape, order=order, element=element, values=values)
            for name, shape, order in (("A", (m, k), self.layout.A), ("B", (k, n), self.layout.B))
        )
        c = Operand(name="C", role="out", shape=(m, n), order=self.layout.C, element=element)
        return a, b, c

    # --- right or wrong ---

    def tolerance(self, size: Size) -> float:
        return tolerance(size["k"], self.numbers, self.sums)

    def reference(self, xp: Any, size: Size, inputs: Sequence[Any]) -> tuple[Expected, ...]:
        a, b, _ = self.operands(size)
        return (self._product(a.wide(inputs[0]), b.wide(inputs[1])),)

    def criterion(self, k: int, margin: float = 1.0) -> tuple[float, float, float]:
        """The tolerance of sums that are off by ``margin`` times as much; what an element's scale
        has of the right value on top, since it may be rounded; and the scale, where it is fixed,
        or 0."""
        if self.sums == "f16":
            return tolerance(k, self.numbers, self.sums), 0.0, 1.0
        most = margin * tolerance(k, self.numbers, self.sums)
        return most, (self.numbers.roundoff or 0.0) / most, 0.0

    def recomputed(
        self, size: Size, inputs: Sequence[Source], places: Sequence[Places]
    ) -> Recomputed:
        """From the rows of A and the columns of B that these elements need."""
        from grader.problems.gemm.products import make_parts

        a, b, c = self.operands(size)
        rows, columns = c.index(places[0])
        a_rows, b_columns, at = make_parts((a, b), inputs, rows, columns)
        found = self._product(a_rows, b_columns, _RECOMPUTED_MARGIN)
        return Recomputed(
            outputs=(Expected(want=found.want[at], scale=found.scale[at]),),
            tolerance=self.criterion(size["k"], _RECOMPUTED_MARGIN)[0],
        )

    def _product(self, a: Doubles, b: Doubles, margin: float = 1.0) -> Expected:
        """A·B, and the scale of every element."""
        from grader.problems.gemm.products import product

        found = product(a, b)
        _, rounded, fixed = self.criterion(a.shape[1], margin)
        scale = (fixed or found.scale) + rounded * abs(found.want)
        return msgspec.structs.replace(found, scale=scale)

    def causes(self, size: Size, inputs: Sequence[Any]) -> Iterator[Cause]:
        a, b, c = self.operands(size)
        words = self.layout.mistakes()
        for wrong in sorted(itertools.product((False, True), repeat=3), key=sum):
            if any(wrong):
                read_a, read_b = (
                    (_other(x) if flag else x).wide(values)
                    for x, flag, values in zip((a, b), wrong, inputs, strict=False)
                )
                found = self._product(read_a, read_b)
                if wrong[2]:  # what was stored in the other order, read in this one
                    found = Expected(want=_stored(found.want, c), scale=_stored(found.scale, c))
                cause = clauses(text for text, flag in zip(words, wrong, strict=True) if flag)
                yield Cause(words=cause, outputs=(found,), tolerance=self.tolerance(size))

    # --- fast or slow ---

    def work(self, size: Size) -> int:
        """2·M·N·K: a product and a sum for each term."""
        return 2 * size["m"] * size["n"] * size["k"]

    def from_a_library(self, names: Collection[str], files: Collection[str]) -> Message | None:
        return formats.evidence(names, files)

    def on_gpu(self, tools: Tools) -> OnGpu:
        from grader.problems.gemm.on_gpu import GemmOnGpu

        return GemmOnGpu(self, tools)


def _other(operand: Operand) -> Operand:
    """The operand, if its memory were read in the other order."""
    return msgspec.structs.replace(operand, order="col" if operand.order == "row" else "row")


def _stored(values: Doubles, target: Operand) -> Doubles:
    """Return the contents of ``target`` when a program stores ``values`` in the other order."""
    stored: Doubles = target.logical(_other(target).flat(values))
    return stored
