"""Facts about a problem for the rooms that do not ask it, and how wrong an output is."""

from __future__ import annotations

from typing import Literal

from grader.base.gpus import GpuInfo
from ptxsim.plan import Record


class Mismatch(Record):
    index: tuple[int, ...]  # of the element, from 0: (row, column) of a matrix
    element: str  # by name: "C[row 3, column 5]"
    got: float | None  # null stands for NaN or infinity, which JSON cannot hold; see got_text
    want: float | int  # a whole number if the elements are
    got_text: str  # as printed: "nan", "inf", "1.25"


class Strip(Record):
    """A wrong element drawn: its share of each input that it should hold, in their order, or a map
    of them."""

    element: str  # "C[row 3, column 5]"
    operand: str  # "in"; of a product both: "A·B"
    # "." there, "-" missing, "2" there several times or with a wrong factor, "x" something else in
    # its place, "+" several of these. In a map, whose rows are lines: "o" there, and should not be.
    signs: str
    edge: int  # inputs, or products, that a sign stands for
    corner: str = ""  # of a map, its first input: "in[row 7, column 0]"


class ErrorStats(Record):
    max: float | None  # largest |got - want| / scale, of 1 where all must agree; null: not finite
    rms: float | None
    tolerance: float
    wrong: int  # elements outside the tolerance
    first_mismatch: Mismatch | None
    # Rows of '.', '+', '#': right, some wrong, all wrong; of a matrix by tiles, of a vector line by
    # line; () when right, and for a scalar.
    tile_map: tuple[str, ...]
    # Elements along each edge of one sign of tile_map; of a vector, how many a sign stands for.
    tile_edge: int
    operand: str  # the output: "C"
    shape: tuple[int, ...]  # of that output
    strips: tuple[Strip, ...] = ()  # of a few wrong elements that nothing else explains


class ProblemInfo(Record):
    """Facts about the problem that a report needs."""

    name: str  # "gemm"
    title: str  # "C = A·B in FP32, …"
    unit: str  # of speeds: "TFLOPS"
    scale: float  # so many operations or bytes a second are 1 of it
    counts: Literal["operations", "bytes"]
    baseline: str  # what speeds are compared with: "cuBLAS"
    main: str  # the file to hand in: "sgemm.cu"
    dims: tuple[str, ...]  # of a size: ("m", "n", "k")
    output: str  # the operand that a report is about: "C"
    formula: str  # of the operations: "2·M·N·K"; "" where they do not count
    questions: tuple[str, ...]  # that the report answers, by name
    # What may do the operations: "f32", or tensor cores by types of inputs and sums: "f16.f32";
    # "f16.f32/3" where each takes three products.
    arithmetic: str = "f32"

    def like(self, other: ProblemInfo) -> bool:
        """Whether speeds compare: the same task, in the same layout, beside the same baseline."""
        return (self.name, self.title, self.baseline) == (other.name, other.title, other.baseline)

    def speed(self, amount: int, milliseconds: float) -> float:
        return amount / (milliseconds * 1e-3) / self.scale

    def peak(self, gpu: GpuInfo) -> float | None:
        """Return the GPU's peak in ``unit``; null where it is not known."""
        if self.counts == "bytes":
            return gpu.dram_gb_s * 1e9 / self.scale if gpu.dram_gb_s else None
        tflops = gpu.peak_tflops(self.arithmetic)
        return tflops * 1e12 / self.scale if tflops else None
