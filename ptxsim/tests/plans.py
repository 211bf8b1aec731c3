"""Plans of a few launches, as tests need them."""

from __future__ import annotations

from typing import Any

from harness import FIRST_ADDRESS, SPACING
from ptxsim.records import Allocation, Launch, Operation, Plan, Size


def allocated(*sizes: int) -> tuple[Allocation, ...]:
    """Allocations A, B, C, … of these sizes in bytes."""
    return tuple(
        Allocation(name="ABCDEF"[i], address=FIRST_ADDRESS + i * SPACING, size=size)
        for i, size in enumerate(sizes)
    )


def launched(kernel: str, *given: Allocation, **fields: Any) -> Launch:
    """A launch of one warp with pointers to these allocations, unless ``fields`` say otherwise."""
    params = b"".join(each.address.to_bytes(8, "little") for each in given)
    shape = {"grid": (1, 1, 1), "block": (32, 1, 1), "shared_bytes": 0}
    return Launch(**{**shape, "kernel": kernel, "params": params, "pointers": (), **fields})


def planned(
    allocations: tuple[Allocation, ...], *operations: Operation, inputs: int = 2, outputs: int = 1
) -> Plan:
    size = Size.of(m=1, n=1, k=1)
    return Plan(
        size=size, allocations=allocations, operations=operations, inputs=inputs, outputs=outputs
    )
