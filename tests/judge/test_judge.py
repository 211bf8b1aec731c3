"""The judge's rules, one by one; the same outcomes always give the same verdicts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from grader.base.errors import Rejected
from grader.base.finding import Finding, Kind
from grader.base.records import Verdict
from grader.base.result import CaseResult
from grader.judge import verdicts as judge
from grader.labs.lab import Case
from grader.labs.shape import Rules
from grader.run.protocol import CaseOutcome, refused
from ptxsim.findings.finding import Severity
from ptxsim.message import NOTHING, verbatim
from ptxsim.records import Size
from tests.support.files import table
from tests.support.pages import LINES
from tests.support.product import GEMM
from tests.support.results import RIGHT
from tests.support.results import outcome as outcome_of

SIZE = Size.of(m=2, n=3, k=5)
RULES = Rules()


def finding(
    kind: Kind, line: int | None = 7, severity: Severity = Severity.ERROR, count: int = 1
) -> Finding:
    place = ("sgemm.cu", line) if line else (None, None)
    words = verbatim(f"{kind.value}!")
    return Finding(
        kind=kind, severity=severity, message=words, file=place[0], line=place[1], count=count
    )


def outcome(*findings: Finding, name: str = "cpu-0", **changes: Any) -> CaseOutcome:
    return outcome_of(Case(id=name, size=SIZE), *findings, **changes)


def described(words: str) -> Finding:
    """Make a finding of a kind, a severity other than an error, and perhaps no line."""
    kind, *more = words.split()
    severity = next((Severity[word.upper()] for word in more if word != "nowhere"), Severity.ERROR)
    return finding(Kind(kind), line=None if "nowhere" in more else 7, severity=severity)


RULINGS = {
    "slow, by a limit that says so": (
        outcome(stopped="time", message=verbatim("a launch did not end within 10 s")),
        Verdict.TLE,
        "a launch did not end within 10 s",
    ),
    "refused": (
        refused("cpu-0", SIZE, Rejected(Verdict.FE, verbatim("calls cublasSgemm"))),
        Verdict.FE,
        "calls cublasSgemm",
    ),
}
for name, kinds, wrong, stopped, verdict, message in table(__file__, "rulings.txt"):
    found = [described(words) for words in kinds.split(", ") if words]
    seen = outcome(*found, wrong=int(wrong), stopped=stopped or None)
    RULINGS[name] = (seen, Verdict(verdict), message)


@pytest.mark.parametrize(("seen", "verdict", "message"), RULINGS.values(), ids=RULINGS.keys())
def test_one_case(seen: CaseOutcome, verdict: Verdict, message: str) -> None:
    found, said = judge.judge_case(seen, RULES)
    assert (found, str(said)) == (verdict, message)


def test_tensor_cores_may_be_allowed() -> None:
    seen = outcome(finding(Kind.TENSOR_CORE, severity=Severity.NOTE))
    assert judge.judge_case(seen, Rules(tensor_cores="allow")) == (Verdict.AC, NOTHING)


FP32_SUMS = "this lab asks for sums in FP32"
NARROW = "allows tensor cores for numbers of 16 bits and more"
INSTRUCTIONS = dict(table(__file__, "tensor_instructions.txt"))


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_tensor_cores_are_for_16_bits_and_the_labs_sums(instruction: str) -> None:
    broken = {"too narrow": NARROW, "sums": FP32_SUMS}.get(INSTRUCTIONS[instruction])
    note = finding(Kind.TENSOR_CORE, severity=Severity.NOTE)
    note = msgspec.structs.replace(note, message=verbatim(f"{instruction} runs on tensor cores"))
    rules = Rules(tensor_cores="allow")
    for arithmetic in ("f16.f32", "bf16.f32"):
        found, said = judge.judge_case(outcome(note), rules, arithmetic)
        assert found is (Verdict.RF if broken else Verdict.AC)
        assert str(said).endswith(broken or "")
    if broken is not NARROW:  # where sums are in FP16
        assert judge.judge_case(outcome(note), rules, "f16.f16") == (Verdict.AC, NOTHING)


def cases(count: int) -> list[Case]:
    return [Case(id=f"cpu-{i}", size=SIZE) for i in range(count)]


def verdicts(results: tuple[CaseResult, ...]) -> list[Verdict | None]:
    return [result.verdict for result in results]


def test_nothing_after_a_time_limit_counts_even_if_it_ran() -> None:
    seen = [outcome(name="cpu-0"), outcome(name="cpu-2"), outcome(name="cpu-1", stopped="time")]
    results = judge.judge_cases(cases(4), seen, GEMM, RULES)
    assert verdicts(results) == [Verdict.AC, Verdict.TLE, None, None]
    assert [str(result.message) for result in results[2:]] == [
        "not run: 2×3×5 did not end in time"
    ] * 2
    assert judge.overall(results) is Verdict.TLE


def test_running_out_of_the_time_for_all_cases_is_a_time_limit() -> None:
    results = judge.judge_cases(cases(3), [outcome(name="cpu-0")], GEMM, RULES)
    assert verdicts(results) == [Verdict.AC, Verdict.TLE, None]
    assert str(results[1].message) == "the time for all sizes is used up"
    assert str(results[2].message) == "not run: at 2×3×5 the time for all sizes was used up"


def test_the_reason_for_not_running_is_the_real_one() -> None:
    """A simulator goes on after a runtime error or a deadlock; a GPU's context does not."""
    outside = outcome(finding(Kind.OUT_OF_BOUNDS), name="cpu-0")
    results = judge.judge_cases(cases(3), [outside], GEMM, RULES)
    assert verdicts(results) == [Verdict.RE, Verdict.TLE, None]
    assert "time for all sizes" in str(results[1].message) and "time for all" in str(
        results[2].message
    )

    deadlock = outcome(finding(Kind.BARRIER_DIVERGENCE), name="cpu-0", stopped="deadlock")
    results = judge.judge_cases(cases(2), [deadlock, outcome(name="cpu-1")], GEMM, RULES)
    assert verdicts(results) == [Verdict.TLE, Verdict.AC]

    late = outcome(finding(Kind.OUT_OF_BOUNDS), name="cpu-0", stopped="time")
    results = judge.judge_cases(cases(3), [late, outcome(name="cpu-1")], GEMM, RULES)
    assert verdicts(results) == [Verdict.RE, None, None]
    assert {str(result.message) for result in results[1:]} == {"not run: 2×3×5 did not end in time"}

    crash = outcome(name="cpu-0", stopped="crash", message=verbatim("cudaErrorIllegalAddress"))
    refusal = refused("cpu-2", SIZE, Rejected(Verdict.FE, verbatim("calls cublasSgemm")))
    results = judge.judge_cases(cases(3), [crash, refusal], GEMM, RULES)
    assert verdicts(results) == [Verdict.RE, None, Verdict.FE]
    assert str(results[0].message) == "cudaErrorIllegalAddress"
    assert str(results[1].message).startswith("not run: 2×3×5 ended with a runtime error")


def result(verdict: Verdict | None) -> CaseResult:
    return msgspec.structs.replace(RIGHT, verdict=verdict, error=None)


def test_only_slow_means_right_wherever_it_ended_in_time() -> None:
    right, slow, wrong, unrun = map(result, (Verdict.AC, Verdict.TLE, Verdict.WA, None))
    note = finding(Kind.RELOCATED, severity=Severity.NOTE)

    assert judge.only_slow([right, slow, unrun], [note])
    assert not judge.only_slow([slow, unrun], [])
    assert not judge.only_slow([right, unrun], [])
    assert not judge.only_slow([right, wrong, slow], [])
    assert not judge.only_slow([right, slow], [note, finding(Kind.RACE)])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("AC AC", "AC"),
        ("AC WA AC", "WA"),
        ("WA RE TLE", "RE"),
        ("AC TLE", "TLE"),
        ("WA FE RE RF", "FE"),
        ("RE RF FE", "RF"),
        ("RE IE", "IE"),
    ],
)
def test_the_submission_gets_the_worst_or_the_first_that_decides(given: str, expected: str) -> None:
    results = [result(Verdict(word)) for word in given.split()] + [result(None)]
    assert judge.overall(results) is Verdict(expected)


def test_findings_are_merged_by_kind_and_place_errors_first() -> None:
    note = finding(Kind.RELOCATED, line=3, severity=Severity.NOTE)
    seen = [
        outcome(note, finding(Kind.RACE, count=2), finding(Kind.INPUT_MODIFIED, line=None)),
        outcome(finding(Kind.RACE, count=5), finding(Kind.RACE, line=8)),
    ]
    merged = judge.merge_findings(seen)
    assert [(f.kind, f.line, f.count) for f in merged] == [
        ("race", 7, 7),
        ("input-modified", None, 1),
        ("race", 8, 1),
        ("relocated", 3, 1),
    ]


def test_counts_come_from_the_largest_case_that_ran_to_its_end() -> None:
    def counted(extent: int, stopped: str | None = None) -> CaseOutcome:
        line = msgspec.structs.replace(LINES[0], line=extent)
        case = Case(id=f"cpu-{extent}", size=Size.of(m=extent, n=1, k=1))
        return outcome_of(case, stopped=stopped, lines=(line,))

    seen = [counted(1), counted(8), counted(9, "time"), counted(4)]
    assert [line.line for line in judge.line_counts(seen, GEMM)] == [8]
    assert judge.line_counts([counted(9, "time")], GEMM) == ()
