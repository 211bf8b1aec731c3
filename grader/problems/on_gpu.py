"""What a problem does on a GPU, and what it gets there. backends/gpu/ has the other half.

All arrays are CuPy's, flat, in the order of the memory. Everything runs on ``Tools.stream``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import CDLL
from pathlib import Path
from typing import Any, Protocol

from grader.model import ErrorStats, Size
from grader.problems.operands import Launch, Values


class Tools(Protocol):
    """What the GPU's worker lends to a problem."""

    @property
    def stream(self) -> Any: ...  # CuPy's; it is the current one

    def functions(self, source: Path) -> Any:
        """A CuPy module: CUDA C++ compiled for this GPU by nvcc, once, and kept in the cache."""

    def library(self, source: Path) -> CDLL:
        """The same for host functions behind a C interface; they bring the CUDA runtime along."""

    def fill(self, out: Any, key: bytes, values: Values) -> None:
        """The elements that ``inputs.values`` gives for this key."""


class OnGpu(Protocol):
    """One problem on one GPU, at any size."""

    @property
    def library(self) -> str:
        """Name and version of what the baselines call: their choice is kept for these."""

    @property
    def baselines_are_right(self) -> bool:
        """Whether the outputs of a baseline may serve as the reference."""

    def baselines(
        self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """What the lab admits to compare with, by name. Raises MachineError if there is none."""

    def refer(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Launch the reference into ``outputs``."""

    def prove(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
        """How far the reference is from being right, by another way to compute it: 1 is what
        rounding explains. NaN is wrong."""

    def compare(
        self, size: Size, inputs: Sequence[Any], got: Sequence[Any], want: Sequence[Any]
    ) -> ErrorStats:
        """The submission's outputs against the reference's."""
