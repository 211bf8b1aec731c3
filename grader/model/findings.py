"""What the simulator sees: mistakes with their places, and counts by source line."""

from __future__ import annotations

from grader.model.base import Dim3, Record, Severity


class Thread(Record):
    """A place in the launch grid."""

    block: Dim3
    thread: Dim3


class Finding(Record):
    """One thing worth saying about the student's code, with the place it points at.

    kind is one of: out-of-bounds, misaligned, race, uninitialized-read, barrier-divergence,
    endless-loop, bank-conflict, uncoalesced, spill, tensor-core, input-modified, canary,
    bad-launch, impossible-time, untimed-work, forbidden-call, host-crash, unsupported,
    relocated.
    """

    kind: str
    severity: Severity
    message: str  # one sentence a student understands
    file: str | None = None  # inside the submission where possible
    line: int | None = None
    block: Dim3 | None = None
    thread: Dim3 | None = None
    count: int = 1  # how many times it happened


class LineCount(Record):
    """What one source line did in one run of the simulator, summed over all threads."""

    file: str
    line: int
    instructions: int  # warp instructions issued
    flops: int  # thread-level floating-point operations, FMA = 2
    global_requests: int  # warp-level global loads and stores
    global_sectors: int  # 32-byte sectors those requests touched
    global_bytes: int  # bytes the active threads asked for
    shared_requests: int
    shared_wavefronts: int  # PTX level: ptxas may merge requests
    shared_bytes: int
