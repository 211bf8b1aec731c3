"""What the answers need of a kernel.

A stored result names the layout only in the problem's title, so it is read from there.
"""

from __future__ import annotations

import itertools

from grader.hardware import gpus
from grader.hardware.gpus import MULTIPROCESSORS, Multiprocessor, occupancy
from grader.model import (
    KernelCounts,
    KernelInfo,
    Occupancy,
    Record,
    SassLoop,
)
from grader.problems.gemm.layout import Layout
from grader.problems.gemm.numbers import FORMATS, Numbers
from grader.problems.questions import Evidence

SECTOR = 32  # bytes
LANES = 32
EDGE = 1024  # of the naive kernel's example


class Asked(Record):
    """Reads of global memory, of all kernels."""

    requests: int  # of loads and cp.async
    sectors: int  # of loads and cp.async
    bytes: int  # of loads and cp.async, if every lane were active
    bulk_sectors: int  # of bulk copies, which belong to no lane

    @property
    def moved(self) -> int:
        """Bytes, bulk copies included."""
        return SECTOR * (self.sectors + self.bulk_sectors)

    @property
    def used(self) -> float:
        """Bytes that lanes ask for, over those that move for them."""
        return self.bytes / (SECTOR * self.sectors)

    @property
    def lane(self) -> float:
        """Bytes that each lane asks for at a time."""
        return self.bytes / LANES / self.requests


def asked_of(evidence: Evidence) -> Asked:
    kinds = [(each.global_loads, each.global_copies) for each in evidence.why.counts]
    loads = [load for pair in kinds for load in pair]
    return Asked(
        requests=sum(each.requests for each in loads),
        sectors=sum(each.cost for each in loads),
        bytes=sum(each.bytes for each in loads),
        bulk_sectors=sum(each.bulk_loads.cost for each in evidence.why.counts),
    )


def layout_of(evidence: Evidence) -> Layout:
    title = evidence.result.problem.title
    orders = itertools.product(("row", "col"), repeat=3)
    layouts = (Layout(A=a, B=b, C=c) for a, b, c in orders)  # type: ignore[arg-type]
    return next((each for each in layouts if title.endswith(f", {each}")), Layout())


def numbers_of(evidence: Evidence) -> Numbers:
    kind = evidence.result.problem.arithmetic.partition(".")[0]
    return next((FORMATS[name] for name in FORMATS if name == kind), FORMATS["f32"])


def loop_of(evidence: Evidence) -> SassLoop | None:
    kernels = evidence.why.kernels
    return next((each.loop for each in kernels if each.name == evidence.counts.name), None)


def kernel_of(evidence: Evidence) -> KernelInfo | None:
    build = evidence.result.build
    kernels = build.kernels if build else ()
    return next((each for each in kernels if each.name == evidence.counts.name), None)


def uses_shared_memory(evidence: Evidence) -> bool:
    info = kernel_of(evidence)
    return bool(evidence.counts.shared_bytes or (info and info.shared_bytes))


def executed(counts: KernelCounts, *kinds: str) -> int:
    return sum(each.count for each in counts.mix if each.kind.split(".")[0] in kinds)


def resident(evidence: Evidence) -> Occupancy | None:
    counts, info = evidence.counts, kernel_of(evidence)
    sm = multiprocessor(evidence)
    if info is None or sm is None:
        return None
    shared = info.shared_bytes + counts.shared_bytes
    return occupancy(sm, block=counts.block, registers=info.registers, shared_bytes=shared)


def multiprocessor(evidence: Evidence) -> Multiprocessor | None:
    return MULTIPROCESSORS.get(int("".join(filter(str.isdigit, evidence.why.arch))))


def card_of(evidence: Evidence) -> gpus.Gpu | None:
    info = evidence.result.environment.gpu
    return gpus.of(info) if info else None
