"""The work of a problem, and in what a speed is told."""

from __future__ import annotations

from typing import Literal

from grader.model import Record, Size


class Unit(Record):
    """In what a speed is told."""

    name: str  # "TFLOPS"
    scale: float  # so many operations or bytes a second are 1
    of: Literal["operations", "bytes"]  # what is counted, and which peak of the GPU is asked about


TFLOPS = Unit(name="TFLOPS", scale=1e12, of="operations")
GB_S = Unit(name="GB/s", scale=1e9, of="bytes")


class Work(Record):
    """What one size of a problem asks for, as far as a bound on the speed needs it."""

    size: Size
    operations: int  # floating-point; 0 where these do not count
    bytes: int  # the fewest that must come from memory or go there
    elements: int  # of the outputs
    amount: int  # what the unit counts
    unit: Unit
    arithmetic: str = "f32"  # as of the problem

    def speed(self, seconds: float) -> float:
        """In the unit."""
        return self.amount / seconds / self.unit.scale

    def peak(self, tflops: float, dram_gb_s: float) -> float:
        """Of a GPU, in the unit. tflops: of ``arithmetic``."""
        per_second = tflops * 1e12 if self.unit.of == "operations" else dram_gb_s * 1e9
        return per_second / self.unit.scale
