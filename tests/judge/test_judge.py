"""The judge: its rules one by one, what counts as a library, and the ruling on a submission."""

import math
from typing import Any

import msgspec
import pytest

from grader.base.errors import GraderError, MachineError, OutOfTime, Rejected, ToolchainError
from grader.base.finding import Finding, Kind
from grader.base.records import BuildInfo, Verdict
from grader.judge import rulings
from grader.judge import verdicts as judge
from grader.judge.launches import library_kernels, refusal
from grader.judge.rulings import Ruling
from grader.labs.lab import Case, Lab, load_lab
from grader.labs.shape import Rules
from grader.model.records import Bound, Limit
from grader.problems.problem import Problem
from grader.problems.reduction.reduction import Reduction
from grader.results.case import CaseResult
from grader.run.protocol import CaseOutcome
from grader.study.explaining import refute
from ptxsim import Declarations
from ptxsim.findings import Severity
from ptxsim.plan import Launch, Plan, Size
from ptxsim.text import NOTHING, verbatim
from tests.support.files import table, values
from tests.support.pages import H200, LINES
from tests.support.product import GEMM
from tests.support.results import NOTHING_KNOWN, RIGHT, begun
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
        begun(Case(id="cpu-0", size=SIZE)).refused(
            Rejected(Verdict.FE, verbatim("calls cublasSgemm"))
        ),
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
    for arithmetic in ("f16.f32", "bf16.f32", "f16.f32/3"):
        found, said = judge.judge_case(outcome(note), rules, arithmetic)
        assert found is (Verdict.RF if broken else Verdict.AC)
        assert str(said).endswith(broken or "")
    if broken is not NARROW:  # where sums are in FP16
        assert judge.judge_case(outcome(note), rules, "f16.f16") == (Verdict.AC, NOTHING)


def case(name: str) -> CaseOutcome:
    return begun(Case(id=name, size=SIZE))


def judged(count: int, seen: list[CaseOutcome]) -> tuple[CaseOutcome, ...]:
    """``count`` cases, of which these were seen."""
    cases = [case(f"cpu-{i}") for i in range(count)]
    return judge.judge_cases(cases, seen, RULES, GEMM.arithmetic)


def verdicts(results: tuple[CaseOutcome, ...]) -> list[Verdict | None]:
    return [result.verdict for result in results]


def test_nothing_after_a_time_limit_counts_even_if_it_ran() -> None:
    seen = [outcome(name="cpu-0"), outcome(name="cpu-2"), outcome(name="cpu-1", stopped="time")]
    results = judged(4, seen)
    assert verdicts(results) == [Verdict.AC, Verdict.TLE, None, None]
    assert [str(result.message) for result in results[2:]] == [
        "not run: 2×3×5 did not end in time"
    ] * 2
    assert judge.overall(results) is Verdict.TLE


def test_running_out_of_the_time_for_all_cases_is_a_time_limit() -> None:
    results = judged(3, [outcome(name="cpu-0")])
    assert verdicts(results) == [Verdict.AC, Verdict.TLE, None]
    assert str(results[1].message) == "the time for all sizes is used up"
    assert str(results[2].message) == "not run: at 2×3×5 the time for all sizes was used up"


def test_the_reason_for_not_running_is_the_real_one() -> None:
    """A simulator goes on after a runtime error or a deadlock; a GPU's context does not."""
    outside = outcome(finding(Kind.OUT_OF_BOUNDS), name="cpu-0")
    results = judged(3, [outside])
    assert verdicts(results) == [Verdict.RE, Verdict.TLE, None]
    assert "time for all sizes" in str(results[1].message) and "time for all" in str(
        results[2].message
    )

    deadlock = outcome(finding(Kind.BARRIER_DIVERGENCE), name="cpu-0", stopped="deadlock")
    results = judged(2, [deadlock, outcome(name="cpu-1")])
    assert verdicts(results) == [Verdict.TLE, Verdict.AC]

    late = outcome(finding(Kind.OUT_OF_BOUNDS), name="cpu-0", stopped="time")
    results = judged(3, [late, outcome(name="cpu-1")])
    assert verdicts(results) == [Verdict.RE, None, None]
    assert {str(result.message) for result in results[1:]} == {"not run: 2×3×5 did not end in time"}

    crash = outcome(name="cpu-0", stopped="crash", message=verbatim("cudaErrorIllegalAddress"))
    refusal = case("cpu-2").refused(Rejected(Verdict.FE, verbatim("calls cublasSgemm")))
    results = judged(3, [crash, refusal])
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


@pytest.mark.parametrize(("given", "expected"), values(__file__, "worst.txt"))
def test_the_submission_gets_the_worst_or_the_first_that_decides(given: str, expected: str) -> None:
    results = [result(Verdict(word)) for word in given.split()] + [result(None)]
    assert judge.overall(results) is Verdict(expected)


def test_findings_are_merged_by_kind_and_place_errors_first_and_hints_behind_warnings() -> None:
    note = finding(Kind.RELOCATED, line=3, severity=Severity.NOTE)
    hint, warning = (
        finding(kind, line=line, severity=Severity.WARNING)
        for kind, line in ((Kind.HINT, 2), (Kind.RACE, 9))
    )
    seen = [
        outcome(note, hint, finding(Kind.RACE, count=2), finding(Kind.INPUT_MODIFIED, line=None)),
        outcome(finding(Kind.RACE, count=5), finding(Kind.RACE, line=8), warning),
    ]
    merged = judge.merge_findings(seen)
    assert [(f.kind, f.line, f.count) for f in merged] == [
        ("race", 7, 7),
        ("input-modified", None, 1),
        ("race", 8, 1),
        ("race", 9, 1),
        ("hint", 2, 1),
        ("relocated", 3, 1),
    ]


def test_counts_come_from_the_largest_case_that_ran_to_its_end() -> None:
    def counted(extent: int, stopped: str | None = None) -> CaseOutcome:
        line = msgspec.structs.replace(LINES[0], line=extent)
        counted_case = Case(id=f"cpu-{extent}", size=Size.of(m=extent, n=1, k=1))
        return outcome_of(counted_case, stopped=stopped, lines=(line,))

    seen = [counted(1), counted(8), counted(9, "time"), counted(4)]
    assert [line.line for line in judge.line_counts(seen)] == [8]
    assert judge.line_counts([counted(9, "time")]) == ()


CUTLASS = "/usr/lib/include/cutlass"
INSTANCE = (
    "_ZN7cutlass6KernelINS_4gemm6kernel4GemmINS1_11threadblock12MmaPipelinedINS1_9GemmShapeILi128E"
    "Li128ELi8EEENS4_9MmaPolicyINS1_4warp7MmaSimtIS7_fEEEEEEEEvNT_6ParamsE"
)


def launch(kernel: str) -> Launch:
    return Launch(
        kernel=kernel, grid=(1, 1, 1), block=(1, 1, 1), shared_bytes=0, params=b"", pointers=()
    )


def noted(kernel: str, *origins: str, problem: Problem = GEMM) -> tuple[str, ...]:
    plan = Plan(size=Size.of(m=1, n=1, k=1), allocations=(), operations=(launch(kernel),))
    declared = Declarations(entries={}, symbols={}, origins={kernel: origins} if origins else {})
    return tuple(str(note.message) for note in library_kernels([plan], declared, problem))


@pytest.mark.parametrize("file", [each for (each,) in values(__file__, "cutlass.txt")])
def test_code_from_the_library_counts_whatever_the_kernel_is_called(file: str) -> None:
    (message,) = noted("_Z4mine5Bytes", f"{CUTLASS}/{file}", "/usr/include/sm_32_intrinsics.hpp")
    assert message == f"mine is a library's kernel: its code comes from cutlass/{file}"


def test_the_library_among_the_submitted_files_is_known_by_what_it_instantiates() -> None:
    (message,) = noted(INSTANCE)
    assert message.startswith("cutlass::Kernel<…> is a library's kernel: its name instantiates")


@pytest.mark.parametrize(("kernel", "origins"), table(__file__, "no_cutlass.txt"))
def test_a_name_alone_and_cute_do_not_count(kernel: str, origins: str) -> None:
    assert noted(kernel, *origins.replace("$CUTLASS", CUTLASS).split()) == ()


@pytest.mark.parametrize(("kernel", "file", "evidence"), values(__file__, "cub.txt"))
def test_cubs_sum_is_known_under_any_name_and_its_parts_are_allowed(
    kernel: str, file: str, evidence: str | None
) -> None:
    found = noted(kernel, f"/usr/include/{file}", problem=Reduction())
    assert len(found) == (evidence is not None)
    assert all(str(evidence) in each for each in found)


def test_the_lab_decides() -> None:
    build = BuildInfo(ok=True, command="", log="", seconds=0.0, kernels=())
    plan = Plan(
        size=Size.of(m=1, n=1, k=1), allocations=(), operations=(), setup=(launch(INSTANCE),)
    )
    notes = library_kernels([plan], Declarations(entries={}, symbols={}), GEMM)
    refused = refusal(notes, Rules(), build)
    assert refused is not None
    assert refused.verdict is Verdict.RF
    assert refusal(notes, Rules(libraries="allow"), build) is None
    assert refusal((), Rules(), build) is None


# --- the GPU's sizes and the simulator together


SQUARE = Size.of(m=512, n=512, k=512)
CASE = Case(id="performance-0", size=SQUARE)
A_RACE = Finding(
    kind=Kind.RACE, severity=Severity.ERROR, message=verbatim("race"), file="sgemm.cu", line=7
)


def timed(*findings: Finding, stopped: str | None = None) -> CaseOutcome:
    return outcome_of(CASE, *findings, stopped=stopped, times=None if stopped else (2.0, 1.0))


def lab(**rules: str) -> Lab:
    return msgspec.structs.replace(
        load_lab(), performance=(CASE,), rules=msgspec.convert(rules, Rules)
    )


def ruled(simulated: Verdict, *seen: Finding, findings: str = "fail") -> Ruling:
    public = rulings.rule([begun(CASE)], [timed()], lab())
    beside = Ruling(verdict=simulated, findings=seen)
    return rulings.conclude(public, lab(findings=findings), simulated=beside, yardsticks={})


@pytest.mark.parametrize(
    ("findings", "simulated", "verdict", "total"), values(__file__, "simulated.txt")
)
def test_the_simulator_decides_if_the_lab_says_so(
    findings: str, simulated: str, verdict: str, total: float
) -> None:
    seen = () if simulated == "AC" else (A_RACE,)
    ruling = ruled(Verdict[simulated], *seen, findings=findings)
    assert ruling.verdict.name == verdict
    assert ruling.score is not None and ruling.score.total == total
    assert ruling.explain == (verdict == "AC")
    assert ruling.findings == seen and ruling.cases[0].verdict is Verdict.AC


@pytest.mark.parametrize("simulated", Verdict)
def test_the_simulator_never_makes_a_gpu_verdict_better(simulated: Verdict) -> None:
    for verdict in set(Verdict) - {Verdict.AC}:
        assert rulings.with_the_simulator(verdict, simulated, Rules(findings="fail")) is verdict


def test_what_is_only_slow_is_explained() -> None:
    small = msgspec.structs.replace(timed(), id="correctness-0", timing=None)
    cases = [begun(Case(id="correctness-0", size=SQUARE)), begun(CASE)]
    late = [small, timed(stopped="time")]
    for simulated, seen, explain in (
        (Verdict.AC, (), True),
        (Verdict.IE, (), True),
        (Verdict.WA, (A_RACE,), False),
        (Verdict.AC, (A_RACE,), False),
    ):
        beside = Ruling(verdict=simulated, findings=seen)
        public = rulings.rule(cases, late, lab())
        ruling = rulings.conclude(public, lab(), simulated=beside, yardsticks={})
        assert (ruling.verdict, ruling.explain) == (Verdict.TLE, explain)
        assert ruling.score is not None and ruling.score.total == 0
    for seen_here, explain in ((late, True), ([timed(A_RACE), small], False)):
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
        gpu=gpu, size=SQUARE.dims, speed=1, resource="issue", limits=(most,), peak=60, most=most
    )
    why = msgspec.structs.replace(NOTHING_KNOWN, size=SQUARE.dims, bounds=(bound,))
    found, notes = refute(why, cases, H200, GEMM.info())
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
