"""Records shared by all stages. Imports nothing of ours.

Every record is frozen. Sizes are ``Mnk`` = (M, N, K): A is row-major M×K (``A[i*K + p]``), B is
column-major K×N (``B[p + j*K]``), C is column-major M×N (``C[i + j*M]``), all float32.
The result document is exactly ``Result`` in JSON: every key always present, null where it does
not apply.
"""

from __future__ import annotations

from grader.model.base import (
    Dim3,
    Mnk,
    Record,
    Severity,
    Verdict,
)
from grader.model.explanation import (
    Advice,
    Bound,
    Explanation,
    KernelCounts,
    KernelSass,
    Limit,
    Occupancy,
    OpcodeCount,
    SassLine,
    SassLoop,
    Tile,
    Traffic,
)
from grader.model.findings import (
    Finding,
    LineCount,
    Thread,
)
from grader.model.plan import (
    Allocation,
    Copy,
    Launch,
    Memset,
    Plan,
    PointerSlot,
    SymbolWrite,
)
from grader.model.result import (
    SCHEMA,
    SCHEMA_VERSION,
    BuildInfo,
    CaseResult,
    Environment,
    ErrorStats,
    GpuInfo,
    KernelLaunch,
    LabRef,
    Mismatch,
    Result,
    Run,
    Score,
    Share,
    SlurmInfo,
    Standing,
    StandingRung,
    SubmissionRef,
    Timing,
    Watched,
)
from grader.model.work import (
    Build,
    KernelInfo,
    KernelParam,
    SourceFile,
    Submission,
)

__all__ = [
    "SCHEMA",
    "SCHEMA_VERSION",
    "Advice",
    "Allocation",
    "Bound",
    "Build",
    "BuildInfo",
    "CaseResult",
    "Copy",
    "Dim3",
    "Environment",
    "ErrorStats",
    "Explanation",
    "Finding",
    "GpuInfo",
    "KernelCounts",
    "KernelInfo",
    "KernelLaunch",
    "KernelParam",
    "KernelSass",
    "LabRef",
    "Launch",
    "Limit",
    "LineCount",
    "Memset",
    "Mismatch",
    "Mnk",
    "Occupancy",
    "OpcodeCount",
    "Plan",
    "PointerSlot",
    "Record",
    "Result",
    "Run",
    "SassLine",
    "SassLoop",
    "Score",
    "Severity",
    "Share",
    "SlurmInfo",
    "SourceFile",
    "Standing",
    "StandingRung",
    "Submission",
    "SubmissionRef",
    "SymbolWrite",
    "Thread",
    "Tile",
    "Timing",
    "Traffic",
    "Verdict",
    "Watched",
]
