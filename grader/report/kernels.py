"""Kernels as the assembler and the launches describe them, in the same words everywhere."""

from __future__ import annotations

from grader.hardware.gpus import MULTIPROCESSORS, occupancy
from grader.model import (
    NOTHING,
    KernelInfo,
    KernelLaunch,
    Message,
    Occupancy,
    Record,
    Result,
    phrase,
    verbatim,
)

_LIMITS = {
    "registers": phrase("registers"),
    "shared memory": phrase("shared memory"),
    "warps": phrase("warps"),
    "blocks": phrase("blocks"),
}


class KernelRow(Record):
    """One kernel in one shape of launch."""

    kernel: KernelInfo
    launch: KernelLaunch | None  # null: not launched at the largest size, or not known
    shared_bytes: int  # static and dynamic, per block
    occupancy: Occupancy | None  # null: unknown, or not even one block fits

    @property
    def block(self) -> str:
        """``16×16``, or "" when it is not known."""
        if self.launch is None:
            return ""
        x, y, z = self.launch.block
        sides = (x, y, z) if z > 1 else (x, y) if y > 1 else (x,)
        return "×".join(map(str, sides))

    @property
    def resident(self) -> Message:
        """Warps, and what limits them: ``32 of 64 (registers)``; empty when it is not known."""
        held = self.occupancy
        if held is None:
            return NOTHING
        return phrase(
            "{part} of {whole} ({limit})",
            part=held.warps,
            whole=held.of_warps,
            limit=_LIMITS.get(held.limited_by, verbatim(held.limited_by)),
        )


def kernel_rows(result: Result) -> tuple[KernelRow, ...]:
    """Every kernel of the build, once for each shape it was launched in."""
    if result.build is None:
        return ()
    rows = []
    for kernel in result.build.kernels:
        launches = [launch for launch in result.launches if launch.kernel == kernel.name]
        rows += [_row(kernel, launch, result.build.arch) for launch in launches or (None,)]
    return tuple(rows)


def _row(kernel: KernelInfo, launch: KernelLaunch | None, arch: str | None) -> KernelRow:
    digits = (arch or "").removeprefix("sm_").rstrip("af")  # sm_90a holds what sm_90 does
    sm = MULTIPROCESSORS.get(int(digits)) if digits.isdecimal() else None
    shared = kernel.shared_bytes + (launch.shared_bytes if launch else 0)
    held = (
        occupancy(sm, block=launch.block, registers=kernel.registers, shared_bytes=shared)
        if sm and launch
        else None
    )
    return KernelRow(kernel=kernel, launch=launch, shared_bytes=shared, occupancy=held)
