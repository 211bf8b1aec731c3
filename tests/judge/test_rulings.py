"""The ruling on a whole submission: the GPU's sizes and the simulator together."""

from __future__ import annotations

import math

import msgspec
import pytest

from grader.base import Bound, Limit
from grader.base.errors import GraderError, MachineError, OutOfTime, Rejected, ToolchainError
from grader.base.finding import Finding, Kind
from grader.base.records import Verdict
from grader.judge import rulings
from grader.judge.rulings import Ruling
from grader.labs.lab import Case, Lab, load_lab
from grader.labs.shape import Rules
from grader.run.protocol import CaseOutcome
from ptxsim.findings.finding import Severity
from ptxsim.message import verbatim
from ptxsim.records import Size
from tests.support.pages import H200
from tests.support.product import GEMM
from tests.support.results import NOTHING_KNOWN
from tests.support.results import outcome as outcome_of

SIZE = Size.of(m=512, n=512, k=512)
CASE = Case(id="performance-0", size=SIZE)
RACE = Finding(
    kind=Kind.RACE, severity=Severity.ERROR, message=verbatim("race"), file="sgemm.cu", line=7
)


def outcome(*findings: Finding, stopped: str | None = None) -> CaseOutcome:
    return outcome_of(CASE, *findings, stopped=stopped, times=None if stopped else (2.0, 1.0))


def lab(**rules: str) -> Lab:
    return msgspec.structs.replace(
        load_lab(), performance=(CASE,), rules=msgspec.convert(rules, Rules)
    )


def ruled(simulated: Verdict, *seen: Finding, findings: str = "fail") -> Ruling:
    public = rulings.rule([CASE], [outcome()], lab())
    beside = Ruling(verdict=simulated, findings=seen)
    return rulings.conclude(public, lab(findings=findings), simulated=beside, yardsticks={})


@pytest.mark.parametrize(
    ("findings", "simulated", "verdict", "total"),
    [
        ("fail", Verdict.AC, Verdict.AC, 50.0),
        ("fail", Verdict.WA, Verdict.WA, 0.0),
        ("fail", Verdict.TLE, Verdict.TLE, 0.0),
        ("fail", Verdict.IE, Verdict.AC, 50.0),
        ("warn", Verdict.WA, Verdict.AC, 50.0),
    ],
)
def test_the_simulator_decides_if_the_lab_says_so(
    findings: str, simulated: Verdict, verdict: Verdict, total: float
) -> None:
    seen = () if simulated is Verdict.AC else (RACE,)
    ruling = ruled(simulated, *seen, findings=findings)
    assert ruling.verdict is verdict
    assert ruling.score is not None and ruling.score.total == total
    assert ruling.explain == (verdict is Verdict.AC)
    assert ruling.findings == seen and ruling.cases[0].verdict is Verdict.AC


@pytest.mark.parametrize("simulated", Verdict)
def test_the_simulator_never_makes_a_gpu_verdict_better(simulated: Verdict) -> None:
    for verdict in set(Verdict) - {Verdict.AC}:
        assert rulings.with_the_simulator(verdict, simulated, Rules(findings="fail")) is verdict


def test_what_is_only_slow_is_explained() -> None:
    small = msgspec.structs.replace(outcome(), id="correctness-0", timing=None)
    cases = [Case(id="correctness-0", size=SIZE), CASE]
    late = [small, outcome(stopped="time")]
    for simulated, seen, explain in (
        (Verdict.AC, (), True),
        (Verdict.IE, (), True),
        (Verdict.WA, (RACE,), False),
        (Verdict.AC, (RACE,), False),
    ):
        beside = Ruling(verdict=simulated, findings=seen)
        public = rulings.rule(cases, late, lab())
        ruling = rulings.conclude(public, lab(), simulated=beside, yardsticks={})
        assert (ruling.verdict, ruling.explain) == (Verdict.TLE, explain)
        assert ruling.score is not None and ruling.score.total == 0
    for seen_here, explain in ((late, True), ([outcome(RACE), small], False)):
        public = rulings.rule(cases, seen_here, load_lab())
        assert rulings.conclude(public, load_lab()).explain == explain


@pytest.mark.parametrize(
    ("share", "gpu", "holds"),
    [(1.0, "H200", True), (0.99, "H200", False), (math.nan, "H200", False), (0.99, "A100", True)],
)
def test_an_exceeded_bound_is_an_error_of_ours(share: float, gpu: str, holds: bool) -> None:
    cases = ruled(Verdict.AC).cases
    assert cases[0].timing is not None
    most = Limit(resource="issue", speed=share * cases[0].timing.scored_speed)
    bound = Bound(
        gpu=gpu, size=SIZE.dims, speed=1, resource="issue", limits=(most,), peak=60, most=most
    )
    why = msgspec.structs.replace(NOTHING_KNOWN, size=SIZE.dims, bounds=(bound,))
    found, notes = rulings.refute(why, cases, H200, GEMM.info())
    assert (found == why, not notes) == (holds, holds)
    if not holds:
        (note,) = notes
        assert (note.kind, note.severity) == (Kind.BOUND_EXCEEDED, Severity.NOTE)
        assert not found.bounds and found.missing == note.message
        for speed in (cases[0].timing.scored_speed, most.speed):
            assert f"{speed:.4g}" in str(note.message)


@pytest.mark.parametrize(
    ("failure", "verdict"),
    [
        (Rejected(Verdict.CE, verbatim("error")), Verdict.CE),
        (OutOfTime("out of time"), Verdict.TLE),
        (MachineError("no room"), Verdict.IE),
        (ToolchainError("no nvcc"), Verdict.IE),
    ],
)
def test_a_grading_that_ends_early_has_a_verdict(failure: GraderError, verdict: Verdict) -> None:
    assert rulings.from_failure(failure).verdict is verdict
