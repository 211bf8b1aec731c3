"""How often each key occurs: bytes in 256 bins, or ints in 4096. Counts are whole numbers, so every
one must be exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from grader.problems.cub import CubProblem
from grader.problems.expected import Cause, Expected, Recomputed
from grader.problems.operands import INT32, UINT8, UINT32, Element, Operand, Whole
from grader.problems.problem import GB_S, Dim, Interface
from ptxsim.plan import Record, Size
from ptxsim.text import Message, counted, phrase

if TYPE_CHECKING:
    from grader.problems.inputs import Places, Source

_HERE = Path(__file__).parent
_CHUNK, _THREADS = 1 << 16, 8  # keys that are drawn at a time: they stay in the L2
_BLOCKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)  # keys of a block's part


class _Keys(Record):
    """One type of keys."""

    element: Element
    bins: int  # keys are below
    title: Message


_KEYS = {
    "bytes": _Keys(element=UINT8, bins=256, title=phrase("counts of bytes in 256 bins")),
    "ints": _Keys(element=INT32, bins=4096, title=phrase("counts of ints in 4096 bins")),
}


class Options(Record):
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
    advice = ("few-blocks", "bank-conflicts", "few-bytes-on-the-way")
    Options = Options

    def __init__(self, options: Record | None = None) -> None:
        super().__init__(options)
        assert isinstance(self.options, Options)
        self._keys = _KEYS[self.options.keys]
        self.gpu_libraries = (_HERE / f"{self.options.keys}.cu",)

    @property
    def title(self) -> Message:
        return self._keys.title

    @property
    def interface(self) -> Interface:
        return Interface(
            main="histogram.cu",
            header="histogram.cuh",
            text=(_HERE / "histogram.cuh").read_text(encoding="utf-8"),
            vectors=(self._keys.element, UINT32),
            dims=1,
            element=self._keys.element,
        )

    def operands(self, size: Size) -> tuple[Operand, ...]:
        bins, element = self._keys.bins, self._keys.element
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
        return (Expected(want=xp.bincount(inputs[0], minlength=self._keys.bins)),)

    def tolerance(self, size: Size) -> float:
        return 0.0

    def recomputed(
        self, size: Size, inputs: Sequence[Source], places: Sequence[Places]
    ) -> Recomputed:
        """Every key counts, so all are drawn again, in threads: for 2²⁸ one would take long."""
        import numpy as np  # a lab is read without it

        def part(first: int) -> Any:
            keys = inputs[0].at(np.arange(first, min(size["n"], first + _CHUNK)))
            return np.bincount(keys.astype(np.int64), minlength=self._keys.bins)

        with ThreadPoolExecutor(max_workers=_THREADS) as pool:
            counts = sum(pool.map(part, range(0, size["n"], _CHUNK)))
        return Recomputed(outputs=(Expected(want=counts[places[0]]),), tolerance=0.0)

    def causes(self, size: Size, inputs: Sequence[Any]) -> Iterator[Cause]:
        import numpy as np

        n = size["n"]
        for kept in sorted({n // block * block for block in _BLOCKS} - {0, n}, reverse=True):
            missing = counted(
                "the last of n = {n} elements is missing",
                "the last {count} of n = {n} elements are missing",
                n - kept,
                n=n,
            )
            outputs = self.reference(np, size, [inputs[0][:kept]])
            yield Cause(words=missing, outputs=outputs, tolerance=0.0)
