"""Results and outcomes made by hand, for the tests of the judge and of what comes after it."""

from pathlib import Path

import msgspec

from grader.base.explanation import Explanation
from grader.base.finding import Finding
from grader.base.result import SCHEMA, SCHEMA_VERSION, Result
from grader.labs.lab import Case
from grader.run.protocol import CaseOutcome
from grader.run.statistics import Pair, summarise
from ptxsim.text import verbatim
from tests.support.product import GEMM, speed

# An accepted result of the simulator, with a wrong case and a finding beside the right one.
_DOCUMENT = msgspec.json.decode(Path(__file__).with_name("result.json").read_bytes(), type=Result)
SHA = _DOCUMENT.lab.sha256
RIGHT, WRONG = _DOCUMENT.cases
(RACE,) = _DOCUMENT.findings
NOTHING_KNOWN = Explanation(
    arch="sm_90", size={"m": 1024, "n": 1024, "k": 1024}, operations=2, bytes=12, kernels=(),
    counts=(), tile=None, bounds=(), advice=(), missing=None,
)  # fmt: skip


def make_result(student: str = "alice", **changes: object) -> Result:
    """An accepted result, with ``changes`` to its fields."""
    given: dict[str, object] = {
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "problem": GEMM.info(),
        "submission": msgspec.structs.replace(_DOCUMENT.submission, student=student),
        "cases": (RIGHT,),
        "findings": (),
        **changes,
    }
    return msgspec.structs.replace(_DOCUMENT, **given)


def begun(case: Case) -> CaseOutcome:
    """It has not run."""
    return CaseOutcome(id=case.id, size=case.size.dims, amount=GEMM.amount(case.size))


def outcome(
    case: Case,
    *findings: Finding,
    wrong: int = 0,
    times: tuple[float, float] | None = None,
    **changes: object,
) -> CaseOutcome:
    """It ran to its end, unless ``stopped`` is among the changes. times: milliseconds of submission
    and baseline, in each of six repetitions."""
    plain = msgspec.structs.replace(
        begun(case),
        message=verbatim(f"{wrong} of 6 elements are wrong" if wrong else ""),
        seconds=1.0,
        findings=findings,
    )
    if not changes.get("stopped"):
        assert RIGHT.error
        changes["error"] = msgspec.structs.replace(RIGHT.error, wrong=wrong)
    if times:
        pairs = [[Pair(bench_ms=times[0], baseline_ms=times[1])] * 6]
        changes["timing"] = summarise(pairs, speed(case.size))
    return msgspec.structs.replace(plain, **changes)
