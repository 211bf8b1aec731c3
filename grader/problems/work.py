"""The work of a problem, and the unit in which its speed is reported."""

from __future__ import annotations

from typing import Literal

from ptxsim.records import Record, Size


class Unit(Record):
    """Unit in which speeds are reported."""

    name: str  # "TFLOPS"
    scale: float  # so many operations or bytes a second are 1
    of: Literal["operations", "bytes"]  # what is counted, and which peak of the GPU is asked about


TFLOPS = Unit(name="TFLOPS", scale=1e12, of="operations")
GB_S = Unit(name="GB/s", scale=1e9, of="bytes")


class Work(Record):
    """Work of one size, as far as a bound on the speed needs it."""

    size: Size
    operations: int  # floating-point; 0 where these do not count
    bytes: int  # the fewest that must come from memory or go there
    elements: int  # of the outputs
    amount: int  # what the unit counts
    unit: Unit
    arithmetic: str = "f32"  # as of the problem

    def speed(self, seconds: float) -> float:
        """Return the speed in the unit."""
        return self.amount / seconds / self.unit.scale

    def peak(self, tflops: float, dram_gb_s: float) -> float:
        """Return a GPU's peak in the unit."""
        per_second = tflops * 1e12 if self.unit.of == "operations" else dram_gb_s * 1e9
        return per_second / self.unit.scale
