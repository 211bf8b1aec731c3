"""The ruling on a whole submission: the GPU's sizes and the simulator together."""

from __future__ import annotations

import msgspec
import pytest

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
from tests.support import outcomes

SIZE = Size.of(m=512, n=512, k=512)
CASE = Case(id="performance-0", size=SIZE)
RACE = Finding(
    kind=Kind.RACE, severity=Severity.ERROR, message=verbatim("race"), file="sgemm.cu", line=7
)


def outcome(*findings: Finding, stopped: str | None = None) -> CaseOutcome:
    return outcomes.outcome(CASE, *findings, stopped=stopped, times=None if stopped else (2.0, 1.0))


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
