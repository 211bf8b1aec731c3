"""How often each key occurs: bytes in 256 bins, or ints in 4096. Counts are whole numbers, so every
one must be exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from grader.problems.cub import CubProblem
from grader.problems.expected import Cause, Expected, Recomputed
from grader.problems.operands import INT32, UINT8, UINT32, Operand, Whole
from grader.problems.problem import GB_S, Dim, Interface
from ptxsim.plan import Record, Size
from ptxsim.text import Message, counted, phrase

if TYPE_CHECKING:
    from grader.problems.inputs import Places, Source

_HERE = Path(__file__).parent
_KEYS = {  # by name: the type of a key, how many bins there are, and the lab's title
    "bytes": (UINT8, 256, phrase("counts of bytes in 256 bins")),
    "ints": (INT32, 4096, phrase("counts of ints in 4096 bins")),
}


class HistogramOptions(Record):
    """A lab file's own field for this problem."""

    keys: Literal["bytes", "ints"] = "bytes"


class Histogram(CubProblem):
    name = "histogram"
    dims = (Dim(name="n", most=1 << 28),)
    kinds = ("skewed", "equal")
    unit = GB_S
    routine = "DeviceHistogram::HistogramEven"
    output = "counts"
    profiled = (1 << 20, 1 << 26)
    questions = ("peak", "limits", "divergence", "traffic")
    advice = ("bank-conflicts", "few-bytes-on-the-way")
    Options = HistogramOptions

    def __init__(self, options: Record | None = None) -> None:
        super().__init__(options)
        assert isinstance(self.options, HistogramOptions)
        self._element, self._bins, self._title = _KEYS[self.options.keys]
        self.gpu_libraries = (_HERE / f"{self.options.keys}.cu",)

    @property
    def title(self) -> Message:
        return self._title

    @property
    def interface(self) -> Interface:
        return Interface(
            main="histogram.cu",
            header="histogram.cuh",
            text=(_HERE / "histogram.cuh").read_text(encoding="utf-8"),
            vectors=(self._element, UINT32),
            dims=1,
            element=self._element,
        )

    def operands(self, size: Size) -> tuple[Operand, ...]:
        bins, element = self._bins, self._element
        values = {
            "": Whole(below=bins),
            "skewed": Whole(below=bins, often=240, first=bins // 3, few=3),
            "equal": Whole(below=bins, course="equal"),
        }[size.inputs]
        return (
            Operand(name="keys", role="in", shape=size.extents, element=element, values=values),
            Operand(name="counts", role="out", shape=(bins,), element=UINT32),
        )

    def reference(self, xp: Any, size: Size, inputs: Sequence[Any]) -> tuple[Expected, ...]:
        return (Expected(want=xp.bincount(inputs[0], minlength=self._bins)),)

    def tolerance(self, size: Size) -> float:
        return 0.0

    def recomputed(
        self, size: Size, inputs: Sequence[Source], places: Sequence[Places]
    ) -> Recomputed:
        """Every key counts, so all are drawn again."""
        import numpy as np  # a lab is read without it

        from grader.problems.inputs import in_parts

        def part(along: Places) -> Any:
            return self.reference(np, size, [inputs[0].at(along).astype(np.int64)])[0].want

        want = sum(in_parts(size["n"], part))[places[0]]
        return Recomputed(outputs=(Expected(want=want),), tolerance=0.0)

    def causes(self, size: Size, inputs: Sequence[Any]) -> Iterator[Cause]:
        """Only whole blocks of keys count."""
        import numpy as np

        n = size["n"]
        for kept in sorted({n >> bits << bits for bits in range(1, 14)} - {0, n}, reverse=True):
            words = counted(
                "the last of n = {n} elements is missing",
                "the last {count} of n = {n} elements are missing",
                n - kept,
                n=n,
            )
            outputs = self.reference(np, size, [inputs[0][:kept]])
            yield Cause(words=words, outputs=outputs, tolerance=0.0)
