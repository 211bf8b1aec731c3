"""Result documents made by hand, for the tests of what comes after the judge."""

from __future__ import annotations

import msgspec

from grader.model import (
    SCHEMA,
    SCHEMA_VERSION,
    BuildInfo,
    CaseResult,
    Environment,
    ErrorStats,
    Finding,
    KernelInfo,
    Kind,
    LabRef,
    Mismatch,
    Result,
    Severity,
    SourceFile,
    SubmissionRef,
    Verdict,
    verbatim,
    wrong_elements,
)
from tests.support.product import GEMM

SHA = "0123456789abcdef" * 4
RIGHT = CaseResult(
    id="cpu-0",
    size={"m": 1, "n": 1, "k": 1},
    amount=2,
    verdict=Verdict.AC,
    message=verbatim(""),
    seconds=0.01,
    error=ErrorStats(
        max=1e-8,
        rms=1e-8,
        tolerance=6e-7,
        wrong=0,
        first_mismatch=None,
        tile_map=(),
        tile_edge=1,
        operand="C",
        shape=(1, 1),
    ),
    timing=None,
)
WRONG = CaseResult(
    id="cpu-1",
    size={"m": 4, "n": 6, "k": 5},
    amount=240,
    verdict=Verdict.WA,
    message=wrong_elements(9, 24),
    seconds=0.02,
    error=ErrorStats(
        max=None,
        rms=None,
        tolerance=1e-6,
        wrong=9,
        first_mismatch=Mismatch(
            index=(1, 4),
            element="C[row 1, column 4]",
            got=None,
            want=-1.25,
            got_text="nan",
        ),
        tile_map=("..", ".#", "+#"),
        tile_edge=2,
        operand="C",
        shape=(4, 6),
    ),
    timing=None,
)
RACE = Finding(
    kind=Kind.RACE,
    severity=Severity.ERROR,
    message=verbatim("two threads touch tile[3] with no barrier between them"),
    file="sgemm.cu",
    line=3,
    block=(1, 0, 0),
    thread=(7, 0, 0),
    count=12,
)


def make_result(student: str = "alice", **changes: object) -> Result:
    """An accepted result, with ``changes`` to its fields."""
    result = Result(
        schema=SCHEMA,
        version=SCHEMA_VERSION,
        created="2026-01-02T03:04:05+00:00",
        lab=LabRef(id="sgemm", sha256=SHA),
        problem=GEMM.info(),
        submission=SubmissionRef(
            student=student,
            sha256=SHA,
            files=(SourceFile(name="sgemm.cu", sha256=SHA, size=100),),
        ),
        environment=Environment(
            grader="0.1.0",
            device="cpu",
            gpu=None,
            cuda="13.0.88",
            host="here",
            slurm=None,
            sandbox="rlimits",
        ),
        build=BuildInfo(
            ok=True,
            command="nvcc",
            log="",
            seconds=1.5,
            kernels=(
                KernelInfo(
                    name="_Z5sgemmILi8EEvPKfS1_Pfiii",
                    registers=96,
                    shared_bytes=8448,
                    spill_bytes=0,
                ),
            ),
        ),
        cases=(RIGHT,),
        findings=(),
        lines=(),
        verdict=Verdict.AC,
        score=None,
        error=None,
    )
    return msgspec.structs.replace(result, **changes)
