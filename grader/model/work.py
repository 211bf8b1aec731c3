"""A submission on disk, and what nvcc makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ptxsim.records import Record


class SourceFile(Record):
    name: str  # path inside the submission folder, '/' separated
    sha256: str
    size: int  # bytes


class Submission(Record):
    """The file to hand in and any local headers, exactly as read; not yet compiled."""

    student: str  # the name in the list of submissions
    folder: Path  # absolute; for messages only: it is never read again
    files: tuple[SourceFile, ...]  # sorted by name; what the build may see
    contents: Mapping[str, bytes]  # of ``files`` by name: what is compiled, hashed and shown
    sha256: str  # over names and contents of ``files``
    main: str  # of ``files``: the one that is compiled
    defines: tuple[str, ...] = ()  # macros that the build gets: "BM=64"


class KernelInfo(Record):
    """One __global__ function as its cubin describes it."""

    name: str  # mangled
    registers: int  # per thread
    shared_bytes: int  # static, per block
    spill_bytes: int  # stores plus loads, per thread


class Build(Record):
    """What nvcc made of a submission."""

    arch: str  # e.g. "sm_80"
    ptx: Path  # with line info
    cubin: Path
    host_library: Path  # the host function, linked against no CUDA runtime
    kernels: tuple[KernelInfo, ...]
    command: str  # the command lines of the compilers, for the report
    log: str  # what the compilers printed, cut to a readable length
    seconds: float  # wall
    cached: bool  # an identical build was found and used
